/** The first hour of five people: what each types, one line after the other, and what must come out. */
import { cpSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, it } from 'vitest';
import { packageFile } from '../../src/package-root.js';
import { shell } from '../support/cli.js';
import { freePort } from '../support/ports.js';
import { temporaryDir } from '../support/release.js';

const [API_PORT, NGINX_PORT] = [await freePort(), await freePort()];

let cwd: string;
beforeAll(() => {
  cwd = temporaryDir();
  mkdirSync(join(cwd, 'home'));
  cpSync(packageFile('examples'), join(cwd, 'examples'), { recursive: true });
  writeFileSync(join(cwd, 'own.csv'), '9.9.8.0,9.9.8.127,DE\n9.9.10.0,9.9.10.255,FR\n');
  const list = { id: 'own', license: 'CC0-1.0', fetch: { file: 'own.csv' }, format: 'ip-location-db' };
  writeFileSync(join(cwd, 'sources.json'), JSON.stringify({ sources: [list] }));
});

/** A web team serves the API behind nginx, with the configuration that docs/api.md shows. */
const SERVE_BEHIND_NGINX = `
"$NODE" "$MAIN" serve --host 127.0.0.1 --port ${API_PORT} --trust-proxy 127.0.0.1 2> log &
{
  echo "pid $PWD/nginx.pid; error_log stderr; events {} http { access_log off;"
  for kind in client_body proxy fastcgi uwsgi scgi; do echo "\${kind}_temp_path $PWD;"; done
  echo "server { listen 127.0.0.1:${NGINX_PORT};"
  sed -n '/^ *\`\`\`nginx$/,/^ *\`\`\`$/p' '${packageFile('docs/api.md')}' | grep -v '\`' | sed 's/8080/${API_PORT}/'
  echo '} }'
} > nginx.conf
nginx -e stderr -c "$PWD/nginx.conf"
for ((i = 0; i < 300; i++)); do grep -q listening log && break; sleep 0.2; done
curl -s -H "X-API-Key: $(head -1 key)" -H 'X-Forwarded-For: 8.8.8.8' http://127.0.0.1:${NGINX_PORT}/api/lookup/
kill $(cat nginx.pid) %1; wait`;

/** A line that is typed, a part of what comes out on both streams, and the exit code if it is not 0. */
type Line = readonly [typed: string, output: string | RegExp, code?: number];

const JOURNEYS: Record<string, readonly Line[]> = {
  'an SRE': [
    ['ipatlas 193.0.6.139', '"country_code":"NL"'],
    ['ipatlas --hlep', 'did you mean "--help"?', 2],
    ['ipatlas -V', /^\d+\.\d+\.\d+\n$/],
    ['ipatlas 8.8.8.8/24', '"ipatlas 8.8.8.8" looks up its address', 2],
    ['ipatlas example.com', '"getent ahosts example.com" prints the addresses', 2],
    ['echo 193.0.6.139 > ips.txt; ipatlas lookup ips.txt', /ipatlas lookup - < ips\.txt|lookup < ips\.txt/, 4],
    ['ipatlas lookup < ips.txt', '"country_code":"NL"'],
    ['ipatlas lookup --add country --add asn 193.0.6.139', '"country":"Netherlands","asn":'],
    ['ipatlas explain 193.0.6.139', 'it comes without the rows of its sources'],
    ['ipatlas enrich examples/access.log', /"GET \/ HTTP\/1.1" 200 512 "-" "curl\/8.5.0" "Netherlands" "NL"/],
    ['ipatlas enrich examples/access.log', 'ipatlas: examples/access.log: '],
    ['ipatlas filter --eu --quiet examples/access.log', /^193\.0\.6\.139.*\n$/],
    ['ipatlas summarize --by eu examples/access.jsonl', /in the EU|European Union/],
    ['ipatlas export nginx --countries LI -o li.conf && grep -c LI li.conf', /\d/],
  ],
  'a data engineer': [
    ['ipatlas enrich --add country_code --add is_eu examples/customers.csv', '"Doe, Jane",193.0.6.139,basic,NL,true'],
    ['ipatlas enrich --quiet --output-dir out --suffix .geo examples/access.jsonl && ls out', 'access.jsonl.geo'],
    ['ipatlas enrich --output-dir out --suffix .geo --resume examples/access.jsonl', '1 input passed over'],
    [
      'sed s/\\"ip-location-db\\"/\\"csv\\"/ sources.json > csv.json; ipatlas build --sources csv.json --data csv',
      'such as {"ranges": [{"files": ["*"], "cidr": {"network": "block"}}], "country": "country"}',
      2,
    ],
    ['ipatlas build --sources examples/sites.json --data sites', 'published release'],
    ['ipatlas lookup --data sites 9.9.10.1', '"country_code":"FR"'],
    ['printf \'{"a":1}\\n\' | ipatlas enrich', '--none-ok', 4],
    ['cut -d, -f2 examples/customers.csv | ipatlas lookup', '{"ip":"signup_ip","error":"invalid ip"}', 4],
  ],
  'a web team': [
    ['ipatlas keys create --label web > key', 'it is shown only once'],
    [
      '"$NODE" "$MAIN" serve --port 0 --dev-key dev.key > steps & for ((i = 0; i < 300; i++)); do grep -q curl steps && break; sleep 0.2; done; bash -c "$(tail -1 steps)?lang=de"; kill %1; wait',
      '"country":"Vereinigte Staaten"',
    ],
    [SERVE_BEHIND_NGINX, '"ip":"8.8.8.8","country":"United States"'],
    ["ipatlas serve --forward-auth 'shop=allow:EU'", '--trust-proxy', 2],
  ],
  'an auditor': [
    ['ipatlas build --sources sources.json --data audited', 'published release'],
    ['ipatlas build --sources sources.json --data audited', 'nothing has changed'],
    ['ipatlas build --sources sources.json --data audited --force', 'published release'],
    ['ipatlas info --data audited', /forced by +\S+ at /],
    ['ipatlas verify --data audited', 'its id is that of the sources, licenses and attributions'],
    ['ipatlas explain 9.9.8.1 --data audited', 'own.csv line 1'],
    ['ipatlas explain 9.9.8.1 --data audited', /sources:\n {2}own, data of \S+ ?\S*, CC0-1\.0/],
    ['ipatlas info --data audited', 'CC0-1.0'],
    ['ipatlas report 20 --data audited', 'there is no release "20"', 5],
    ['ipatlas diff "$(date -u +%Y)" current --data audited', 'IPv4: no difference'],
    ['ipatlas diff "$(date -u +%F)" current --html - --data audited | head -1', '<!doctype html>'],
    ['sed -i s/CC0-1.0/CC0-1.1/ audited/current/manifest.json; ipatlas verify --data audited', 'do not give its id', 5],
    ['ipatlas history 9.9.10.1 --data audited', 'France'],
  ],
  'the author of a library': [
    [
      `"$NODE" -e 'import("${packageFile('dist/lookup/index.js')}").then(async ({ load }) => console.log((await load()).country("8.8.8.8")))'`,
      'US',
    ],
    ['ipatlas build --sources sources.json --data lib', 'published release'],
    ['ipatlas export compact --data lib --gzip -o own.ipc', 'own.ipc: '],
  ],
};

it.each(Object.entries(JOURNEYS))(
  'the first hour of %s',
  async (_who, lines) => {
    const env = { HOME: join(cwd, 'home'), XDG_DATA_HOME: '', XDG_CACHE_HOME: '', IPATLAS_DATA: undefined };
    for (const [typed, output, code = 0] of lines) {
      const line = `cd '${cwd}'; ipatlas() { "$NODE" "$MAIN" "$@"; }; { ${typed}; } 2>&1`;
      const { stdout, code: ended } = await shell(line, env);
      expect(stdout, typed).toMatch(output);
      expect([typed, ended, stdout]).toEqual([typed, code, stdout]);
    }
  },
  120_000,
);
