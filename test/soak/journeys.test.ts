/** The first hour of five people: what each types, one line after the other, and what must come out. */
import { cpSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { packageFile } from '../../src/package-root.js';
import { shell } from '../support/cli.js';
import { temporaryDir } from '../support/release.js';

let cwd: string;
beforeAll(() => {
  cwd = temporaryDir();
  mkdirSync(join(cwd, 'home'));
  cpSync(packageFile('examples'), join(cwd, 'examples'), { recursive: true });
  writeFileSync(join(cwd, 'own.csv'), '9.9.8.0,9.9.8.127,DE\n9.9.10.0,9.9.10.255,FR\n');
  const list = { id: 'own', license: 'CC0-1.0', fetch: { file: 'own.csv' }, format: 'ip-location-db' };
  writeFileSync(join(cwd, 'sources.json'), JSON.stringify({ sources: [list] }));
});
afterAll(() => rmSync(cwd, { recursive: true }));

/** A line that is typed, a part of what comes out on both streams, and the exit code if it is not 0. */
type Line = readonly [typed: string, output: string | RegExp, code?: number];

const JOURNEYS: Record<string, readonly Line[]> = {
  'an SRE': [
    ['ipatlas 193.0.6.139', '"country_code":"NL"'],
    ['ipatlas --hlep', 'did you mean "--help"?', 2],
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
    ['printf \'{"a":1}\\n\' | ipatlas enrich', '--none-ok', 4],
    ['cut -d, -f2 examples/customers.csv | ipatlas lookup', '{"ip":"signup_ip","error":"invalid ip"}', 4],
  ],
  'a web team': [
    ['ipatlas keys create --label web > key', 'it is shown only once'],
    [
      '"$NODE" "$MAIN" serve --port 0 --dev-key dev.key > steps & for ((i = 0; i < 300; i++)); do grep -q curl steps && break; sleep 0.2; done; bash -c "$(tail -1 steps)?lang=de"; kill %1; wait',
      '"country":"Vereinigte Staaten"',
    ],
    ["ipatlas serve --forward-auth 'shop=allow:EU'", '--trust-proxy', 2],
  ],
  'an auditor': [
    ['ipatlas build --sources sources.json --data audited', 'published release'],
    ['ipatlas build --sources sources.json --data audited', 'nothing has changed'],
    ['ipatlas verify --data audited', ''],
    ['ipatlas explain 9.9.8.1 --data audited', 'own.csv line 1'],
    ['ipatlas info --data audited', 'CC0-1.0'],
    ['ipatlas report 20 --data audited', 'there is no release "20"', 5],
    ['ipatlas diff "$(date -u +%Y)" current --data audited', 'IPv4: no difference'],
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
