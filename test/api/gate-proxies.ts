/** nginx and Caddy with the configuration of docs/gate.md, in front of a server of the test. */
import type { ChildProcess } from 'node:child_process';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { packageFile } from '../../src/package-root.js';
import { run, startServer } from '../export/tools.js';

/** A site that asks at the gate: the documented one, with other ports and another rule. */
export interface GatedSite {
  port: number;
  /** Of `ipatlas serve`. */
  gatePort: number;
  /** Of the server of the site. */
  sitePort: number;
  rule?: string;
  /** Whether everybody is let in while the gate does not answer; only nginx. */
  letsIn?: boolean;
  /** More directives of the site. */
  more?: string;
}

/** Returns the configuration of docs/gate.md for a site. */
function documented(language: string, { port, gatePort, sitePort, rule = 'shop', letsIn }: GatedSite): string {
  const text = readFileSync(packageFile('docs/gate.md'), 'utf8');
  const blocks = [...text.matchAll(new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\`$`, 'gms'))].map(([, code]) => code!);
  const [inside, beside] = letsIn ? blocks[1]!.split('# Beside it:') : ['', ''];
  return blocks[0]!
    .replace('internal;', `internal;\n${inside}`)
    .concat(beside!)
    .replaceAll('forward-auth/shop', `forward-auth/${rule}`)
    .replaceAll(':8080', `:${gatePort}`)
    .replaceAll(':3000', `:${sitePort}`)
    .replaceAll(':8081', `:${port}`);
}

/** Starts nginx; the address of a client is what the header `X-Test-Client` says, or that of this process. @param dir for its files */
export function startNginx(dir: string, sites: readonly GatedSite[]): Promise<ChildProcess> {
  const config = join(dir, 'nginx.conf');
  const socket = join(dir, 'nginx.sock');
  const user = process.getuid?.() === 0 ? 'user root;' : '';
  const servers = sites.map(
    (site) => `
  server {
    listen 127.0.0.1:${site.port}; listen [::1]:${site.port}; listen unix:${socket};
    set_real_ip_from 127.0.0.1; set_real_ip_from ::1; real_ip_header X-Test-Client;
    ${site.more ?? ''}
    ${documented('nginx', site)}
  }`,
  );
  writeFileSync(
    config,
    `${user} daemon off; worker_processes 1; pid ${dir}/nginx.pid; error_log stderr crit; events {}
http {
  access_log off; client_body_temp_path ${dir}; proxy_temp_path ${dir}; fastcgi_temp_path ${dir};
  uwsgi_temp_path ${dir}; scgi_temp_path ${dir};${servers.join('')}
}
`,
  );
  return startServer('nginx', ['-e', 'stderr', '-c', config], socket);
}

/** Starts Caddy. @param trustsTest whether the address of a client is what `X-Forwarded-For` says, or that of this process */
export async function startCaddy(dir: string, sites: readonly GatedSite[], trustsTest: boolean): Promise<ChildProcess> {
  const admin = join(dir, 'caddy.sock');
  rmSync(admin, { force: true });
  const config = join(dir, 'Caddyfile');
  const trusted = trustsTest ? 'trusted_proxies 127.0.0.1/32 ::1/128\n\t\t\turi /' : 'uri /';
  const texts = sites.map((site) =>
    documented('caddyfile', site)
      .replace('uri /', trusted)
      .replace('\troute {', `\t${site.more ?? ''}\n\troute {`),
  );
  writeFileSync(config, `{\n\tadmin unix/${admin}\n\tstorage file_system ${dir}/caddy\n}\n${texts.join('\n')}`);
  const { status, stderr } = run('caddy', ['validate', '--config', config, '--adapter', 'caddyfile']);
  if (status !== 0) throw new Error(stderr);
  return startServer('caddy', ['run', '--config', config, '--adapter', 'caddyfile'], admin);
}
