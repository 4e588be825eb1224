/**
 * Reads the exports with the software that they are for: with the configuration of docs/exports.md, it must give the results
 * of `ipatlas lookup`. Tests of missing programs are skipped with a message; scripts/ci-packages.sh installs them.
 */
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type CountryResponse, open } from 'maxmind';

import { beforeAll, describe, expect, it } from 'vitest';
import { EMBEDDED_SCHEMES } from '../../src/address/embedded.js';
import type { FormatName } from '../../src/export/formats.js';
import { temporaryDir } from '../support/release.js';
import { answers, largeWorld, sampleAddresses, type World, worldOf } from './support.js';
import {
  bodies,
  documented,
  GEOIP2_MODULE,
  inNetwork,
  missingFile,
  missingNft,
  missingProgram,
  missingPythonModule,
  PYTHON,
  run,
  startServer,
  stopServer,
  testWith,
} from './tools.js';

const ALL = new Set(EMBEDDED_SCHEMES);
const LISTABLE = new Set(['6to4', 'nat64'] as const);

let dir: string;
let world: World;
let addresses: string[];
let expected: string[];

/** Returns the path of an export, under its documented name. */
const FILES: Partial<Record<FormatName, string>> = {
  mmdb: 'country.mmdb',
  nginx: 'country.geo',
  haproxy: 'country.map',
};

beforeAll(() => {
  dir = temporaryDir();
  chmodSync(dir, 0o755); // servers drop their privileges before they read
  world = worldOf(largeWorld());
  addresses = sampleAddresses(world, 10_000);
  expected = answers(world, addresses);
  for (const [format, name] of Object.entries(FILES)) {
    writeFileSync(join(dir, name), world.exported(format as FormatName, format === 'mmdb' ? { embedded: ALL } : {}));
  }
});

const isTeredo = (ip: string): boolean => ip.startsWith('2001:0:') || ip.startsWith('2001::');
const isMapped = (ip: string): boolean => ip.startsWith('::ffff:');

/** Compares the results for the addresses that `holds` accepts; a failure names the address. */
function expectAnswers(got: string[], holds: (ip: string, i: number) => boolean = () => true): void {
  expect(got.length).toBe(addresses.length);
  const asked = addresses.map((_, i) => i).filter((i) => holds(addresses[i]!, i));
  expect(asked.length).toBeGreaterThan(8000);
  const wrong = asked.filter((i) => got[i] !== expected[i]);
  expect(wrong.map((i) => `${addresses[i]}: ${got[i]} instead of ${expected[i]}`)).toEqual([]);
}

describe('mmdb', () => {
  it('maxmind, from npm', async () => {
    const reader = await open<CountryResponse>(join(dir, 'country.mmdb'));
    expectAnswers(addresses.map((ip) => reader.get(ip)?.country?.iso_code ?? ''));
    const script = documented('js', "maxmind.open('", dir);
    const result = run(process.execPath, ['--input-type=module', '-e', script]);
    expect(result).toMatchObject({ stdout: `${world.database.lookup('8.8.8.8')!.country_code}\n`, stderr: '' });
  });

  testWith(missingProgram('mmdblookup', 'mmdb-bin'), 'mmdblookup, of libmaxminddb', () => {
    const command = documented('sh', 'mmdblookup', dir).trim().split(' ');
    // One process for each address: the special cases, and some others.
    for (const [i, ip] of addresses.slice(0, 80).entries()) {
      const { stdout, stderr } = run(
        command[0]!,
        command.slice(1).map((word) => (word === '8.8.8.8' ? ip : word)),
      );
      const code = /"([A-Z]{2})" <utf8_string>/.exec(stdout)?.[1] ?? '';
      expect([ip, code]).toEqual([ip, expected[i]]);
      if (code === '') expect(stdout + stderr).toContain('Could not find an entry for this IP address');
    }
  });

  const noModule = missingPythonModule('maxminddb', 'python3-maxminddb');
  describe.each(['MODE_MMAP_EXT', 'MODE_MEMORY'])('python3-maxminddb', (mode) => {
    testWith(noModule, mode, () => {
      const script = `
import sys, maxminddb
reader = maxminddb.open_database(sys.argv[1], maxminddb.${mode})
for line in sys.stdin:
    print(((reader.get(line.strip()) or {}).get("country") or {}).get("iso_code", ""))
`;
      const { stdout, stderr } = run(PYTHON, ['-c', script, join(dir, 'country.mmdb')], `${addresses.join('\n')}\n`);
      expect(stderr).toBe('');
      expectAnswers(stdout.split('\n').slice(0, -1));
    });
  });
  testWith(noModule, 'python3-maxminddb as documented', () => {
    const result = run(PYTHON, ['-c', documented('python', 'maxminddb', dir)]);
    expect(result).toMatchObject({ stdout: `${world.database.lookup('8.8.8.8')!.country_code}\n`, stderr: '' });
  });
});

describe('nginx', () => {
  const noNginx = missingProgram('nginx', 'nginx', ['-v']);

  async function ask(http: string, modules: string, variable: string): Promise<string[]> {
    const socket = join(dir, `${variable}.sock`);
    const config = join(dir, `${variable}.conf`);
    const user = process.getuid?.() === 0 ? 'user root;' : '';
    writeFileSync(
      config,
      `${modules} ${user} daemon off; worker_processes 1; pid ${dir}/${variable}.pid; error_log stderr; events {}
http {
  access_log off; keepalive_requests 1000000;
  client_body_temp_path ${dir}; proxy_temp_path ${dir}; fastcgi_temp_path ${dir};
  uwsgi_temp_path ${dir}; scgi_temp_path ${dir};
  ${http}
  server { listen unix:${socket}; location / { return 200 "$${variable}"; } }
}
`,
    );
    const server = await startServer('nginx', ['-e', 'stderr', '-c', config], socket);
    try {
      return await bodies(
        socket,
        addresses.map((ip) => `/?ip=${ip}`),
      );
    } finally {
      await stopServer(server);
    }
  }

  testWith(noNginx, 'nginx, geo block', async () => {
    // The documented block uses the address of the client; here it is that of the query.
    const block = documented('nginx', 'geo $ip_country_code', dir).replace('geo ', 'geo $arg_ip ');
    expectAnswers(await ask(block, '', 'ip_country_code'), (ip) => !isTeredo(ip));
  });

  const noModule = noNginx ?? missingFile(GEOIP2_MODULE, 'libnginx-mod-http-geoip2');
  testWith(noModule, 'nginx, geoip2 module', async () => {
    const block = documented('nginx', 'geoip2 ', dir).replaceAll(/(\$ip_\w+)/g, '$1 source=$arg_ip');
    const load = `load_module ${GEOIP2_MODULE};`;
    // The module treats 255.255.255.255 as no address.
    expectAnswers(await ask(block, load, 'ip_country_code'), (ip) => ip !== '255.255.255.255');
    const isEu = await ask(block, load, 'ip_is_eu');
    const wrong = addresses.filter((ip, i) => (isEu[i] === '1') !== world.database.lookup(ip)!.is_eu);
    expect(wrong.filter((ip) => ip !== '255.255.255.255')).toEqual([]);
  });
});

testWith(missingProgram('haproxy', 'haproxy', ['-v']), 'HAProxy', async () => {
  const socket = join(dir, 'haproxy.sock');
  const config = join(dir, 'haproxy.cfg');
  const rules = documented('haproxy', 'X-Country', dir).replaceAll('src,', 'url_param(ip),');
  const [, expression] = /X-Country (\S+)/.exec(rules)!;
  writeFileSync(
    config,
    `defaults
  mode http
  timeout connect 5s
  timeout client 60s
  timeout server 60s
frontend test
  bind unix@${socket}
  http-request return status 200 content-type text/plain lf-string "${expression}" if { path /code }
  ${rules.trim().split('\n').join('\n  ')}
  http-request return status 200 content-type text/plain string allowed
`,
  );
  const server = await startServer('haproxy', ['-db', '-f', config], socket);
  try {
    const codes = await bodies(
      socket,
      addresses.map((ip) => `/code?ip=${ip}`),
    );
    expectAnswers(
      codes.map((code) => (code === '-' ? '' : code)),
      // HAProxy uses the IPv4 address in a 6to4 address that is in no block, as documented.
      (ip, i) => !isTeredo(ip) && !(ip.startsWith('2002:') && expected[i] === ''),
    );
    const few = addresses.slice(0, 500).filter((ip) => !isTeredo(ip) && !ip.startsWith('2002:'));
    const allowed = await bodies(
      socket,
      few.map((ip) => `/?ip=${ip}`),
    );
    expect(allowed.map((body) => body === 'allowed')).toEqual(
      few.map((ip) => ['DE', 'FR'].includes(world.database.lookup(ip)!.country_code ?? '')),
    );
  } finally {
    await stopServer(server);
  }
});

describe('nftables', () => {
  interface Listed {
    nftables: { set?: { name: string; elem?: (string | { prefix: { addr: string; len: number } })[] } }[];
  }

  /** Returns the blocks of a listed set. Ranges, which nft prints if it cannot print a block, must not occur. */
  function blocksOf(listing: string, set: string): Set<string> {
    const found = (JSON.parse(listing) as Listed).nftables.find((entry) => entry.set?.name === set);
    return new Set(
      (found!.set!.elem ?? []).map((element) =>
        typeof element === 'string'
          ? `${element}/${set.endsWith('4') ? 32 : 128}`
          : `${element.prefix.addr}/${element.prefix.len}`,
      ),
    );
  }

  testWith(missingNft(), 'nft loads the sets, twice, and the documented rules', () => {
    const countries = new Set(['DE', 'FR', 'IT', 'ES', 'PL', 'SE', 'NL', 'RE']); // the member states in the test data
    const text = world.exported('nft', { countries, setName: 'eu', embedded: LISTABLE }).toString();
    const path = join(dir, 'eu.nft');
    const other = join(dir, 'other.nft');
    const rules = join(dir, 'rules.nft');
    writeFileSync(path, text);
    writeFileSync(other, world.exported('nft', { countries: new Set(['US']), setName: 'eu' }));
    writeFileSync(rules, documented('nft', '@eu4', dir));
    const { stdout, stderr, status } = inNetwork(
      `nft -c -f ${path}; nft -f ${other}; nft -f ${rules}; nft -f ${path}; nft -j list ruleset`,
    );
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    for (const [set, family] of [
      ['eu4', '.'],
      ['eu6', ':'],
    ] as const) {
      const written = [...text.matchAll(/^([\da-f]+[.:][^,]*),$/gm)].map(([, block]) => block!);
      expect(blocksOf(stdout, set)).toEqual(new Set(written.filter((block) => block.includes(family))));
    }
  });

  testWith(missingNft(), 'nft finds the members', () => {
    const countries = new Set(['DE']);
    const path = join(dir, 'de.nft');
    writeFileSync(path, world.exported('nft', { countries, setName: 'de', embedded: LISTABLE }));
    const few = addresses.slice(0, 50).filter((ip) => !isTeredo(ip) && !isMapped(ip));
    const queries = few.map((ip) => {
      const set = ip.includes(':') ? 'de6' : 'de4';
      return `nft get element inet ipatlas ${set} '{ ${ip} }' >/dev/null 2>&1 && echo yes || echo no`;
    });
    const { stdout } = inNetwork([`nft -f ${path}`, ...queries].join('\n'));
    const found = stdout.trim().split('\n');
    expect(few.map((ip, i) => `${ip} ${found[i]}`)).toEqual(
      few.map((ip) => `${ip} ${world.database.lookup(ip)!.country_code === 'DE' ? 'yes' : 'no'}`),
    );
    expect(found).toContain('yes');
  });
});

const EUROPE = new Set(['DE', 'FR', 'NL', 'RE']);

/** Returns the blocks of a file or a listing, one for each line that has one, with a prefix length; in order. */
const blocksIn = (text: string, pattern: RegExp): string[] =>
  [...text.matchAll(pattern)]
    .map(([, block]) => (block!.includes('/') ? block! : `${block}/${block!.includes(':') ? 128 : 32}`))
    .sort();

testWith(missingNft() ?? missingProgram('ipset', 'ipset'), 'ipset loads the sets, and replaces them', () => {
  const text = world.exported('ipset', { countries: EUROPE, setName: 'eu', embedded: LISTABLE }).toString();
  writeFileSync(join(dir, 'eu.ipset'), text);
  writeFileSync(join(dir, 'other.ipset'), world.exported('ipset', { countries: new Set(['US']), setName: 'eu' }));
  const restore = (name: string): string => `ipset restore -exist < ${join(dir, name)}`;
  const { stdout, stderr, status } = inNetwork(`${restore('other.ipset')} && ${restore('eu.ipset')} && ipset save`);
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  expect(stdout.match(/^create (\w+) /gm)).toEqual(['create eu4 ', 'create eu6 ']);
  const written = blocksIn(text, /^add eu[46]\+ (\S+)$/gm);
  expect(written.length).toBeGreaterThan(1000);
  expect(blocksIn(stdout, /^add eu[46] (\S+)$/gm)).toEqual(written);
});

testWith(missingProgram('firewall-offline-cmd', 'firewalld'), 'firewalld reads the ipsets', () => {
  const config = join(dir, 'firewalld');
  mkdirSync(join(config, 'ipsets'), { recursive: true });
  for (const family of [4, 6] as const) {
    const file = world.exported('firewalld', { countries: EUROPE, setName: 'eu', families: [family] }).toString();
    writeFileSync(join(config, 'ipsets', `eu${family}.xml`), file);
    const offline = (...args: string[]) => run('firewall-offline-cmd', ['--system-config', config, ...args]);
    const listed = offline(`--ipset=eu${family}`, '--get-entries').stdout;
    const written = blocksIn(file, /<entry>(.*)<\/entry>/g);
    expect(written.length).toBeGreaterThan(100);
    expect(blocksIn(listed, /^(\S+)$/gm)).toEqual(written);
    if (family === 6) expect(offline('--check-config')).toMatchObject({ status: 0 });
  }
});
