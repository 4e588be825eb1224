/**
 * A fortnight of nightly builds from local copies of the default sources, which fail in the ways that publishers do. Prints
 * what was published each night as a Markdown table.
 */
import { readlinkSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { loadReference } from '../../pipeline/config/reference.js';
import { ageDays, releaseAge } from '../../src/database/age.js';
import { openDatabase } from '../../src/database/database.js';
import { verifyRelease } from '../../src/database/verify.js';
import { ipatlas } from '../support/in-process.js';
import {
  awsJson,
  azureJson,
  countryCsv,
  type Delegation,
  dbipCsv,
  googleJson,
  oracleJson,
  Publishers,
  type Registry,
  RIR_FILES,
  rirFile,
} from '../support/publishers.js';
import { temporaryDir } from '../support/release.js';
import { madeUpWorld, manifestOf, type Row } from '../support/sources.js';

let dir: string;
let dataDir: string;
let publishers: Publishers;
beforeAll(async () => {
  dir = temporaryDir();
  dataDir = join(dir, 'data');
  publishers = new Publishers();
  await publishers.listen();
});
afterAll(async () => {
  await publishers.close();
});

const WORLD = madeUpWorld();
const REGISTRIES = Object.keys(RIR_FILES) as Registry[];

/** The large rows of the world, each delegated by a registry. */
const DELEGATIONS = WORLD.flatMap(({ first, last, code }, index): Delegation[] => {
  const registry = REGISTRIES[index % REGISTRIES.length]!;
  const row = { registry, country: code, start: first, holder: `holder-${index}` };
  if (last.endsWith('.255.255')) return [{ ...row, type: 'ipv4', value: 2 ** 20 }];
  return last.endsWith('ffff:ffff') ? [{ ...row, type: 'ipv6', value: 24 }] : [];
});

/** What Amazon holds by the registry; Microsoft, Google and Oracle announce what they list. */
const AMAZON: Delegation[] = [
  { registry: 'arin', country: 'US', type: 'asn', start: '16509', value: 1, holder: 'amazon' },
  { registry: 'arin', country: 'US', type: 'ipv4', start: '3.5.0.0', value: 65_536, holder: 'amazon' },
];
const ANNOUNCED: Record<4 | 6, string> = {
  4: `20.38.19.0,20.38.19.255,8075,Microsoft
34.1.128.0,34.1.143.255,396982,Google LLC
129.146.0.0,129.146.255.255,31898,"Oracle, America"
`,
  6: '2600:1900::,2600:1900:ffff:ffff:ffff:ffff:ffff:ffff,15169,Google LLC\n',
};

/** Countries through which one network of each publisher moves, a step each day. */
const STEPS = ['AT', 'BE', 'CH', 'DK', 'ES', 'FR', 'GB', 'HU', 'IT', 'JP', 'KR', 'NL', 'NO', 'PL'];

const network = (prefix: string, code: string): Row => ({ first: `${prefix}.0`, last: `${prefix}.255`, code });

const RELEASES = 'github.com/sapics/ip-location-db/releases/download';
const USER_COUNTRY = `${RELEASES}/latest/user-country-ipv`;
const CHECKSUM = `${RELEASES}/checksum/user-country-ipv`;

function publishUserCountry(step: number, day: string, rows: readonly Row[] = WORLD): void {
  const code = STEPS[step]!;
  const all = [...rows, network('102.9.0', code), { first: '2c0e:1::', last: '2c0e:1:ffff::', code }];
  for (const family of [4, 6] as const) {
    const csv = countryCsv(all, family);
    publishers.putWithChecksum(`${USER_COUNTRY}${family}.csv`, csv, day, `${CHECKSUM}${family}.csv.sha256`, 'sha256');
  }
}

function publishDelegations(step: number, day: string): void {
  const moving = { registry: 'afrinic', country: STEPS[step]!, type: 'ipv6', start: '2c0f:1::', value: 32 } as const;
  const rows: Delegation[] = [...DELEGATIONS, ...AMAZON, { ...moving, holder: 'moving' }];
  for (const registry of REGISTRIES) {
    const path = RIR_FILES[registry];
    publishers.putWithChecksum(path, rirFile(registry, rows, day), day, `${path}.md5`, 'md5');
  }
}

function publishDbip(step: number, month: string): void {
  publishers.put(
    `download.db-ip.com/free/dbip-country-lite-${month}.csv.gz`,
    dbipCsv([...WORLD, network('102.10.0', STEPS[step]!)]),
  );
}

const AWS = 'ip-ranges.amazonaws.com/ip-ranges.json';
const AZURE = 'download.microsoft.com/download/7/1/d/71d86715-5596-4529-9b13-da13a5de5b63/ServiceTags_Public_';

/** Azure's list is of the last Monday; the first day is a Sunday. */
const mondayOf = (step: number): string => dayOf(step - ((step + 6) % 7)).replaceAll('-', '');

function publishOperators(step: number, day: string): void {
  const regions = ['eu-central-1', 'eu-west-1', 'eu-west-3', 'eu-north-1'];
  publishers.put(AWS, awsJson([['3.5.140.0/22', regions[step % regions.length]!]], day));
  publishers.put(`${AZURE}${mondayOf(step)}.json`, azureJson([['20.38.19.0/24', 'taiwannorth']]));
  publishers.put('www.gstatic.com/ipranges/cloud.json', googleJson([['34.1.128.0/20', 'africa-south1']], day));
  publishers.put(
    'docs.oracle.com/iaas/tools/public_ip_ranges.json',
    oracleJson([['129.146.0.0/21', 'us-phoenix-1']], day),
  );
}

function publishAnnouncements(day: string): void {
  for (const family of [4, 6] as const) {
    const name = `origin-asn-ipv${family}.csv`;
    const checksum = `${RELEASES}/checksum/${name}.sha256`;
    publishers.putWithChecksum(`${RELEASES}/latest/${name}`, ANNOUNCED[family], day, checksum, 'sha256');
  }
}

const FEED = 'isp.example/geofeed.csv';

/** Everything as it is published on a day. */
function publishAll(step: number, day: string): void {
  publishUserCountry(step, day);
  publishDelegations(step, day);
  publishOperators(step, day);
  publishAnnouncements(day);
  publishers.put(FEED, `# a provider\n102.11.${step}.0/24,${STEPS[step]},,,\n8.8.8.0/24,${STEPS[step]},,,\n`, { day });
}

const answer500 = (path: string): void => {
  // Retry-After, so that the test does not wait between attempts.
  publishers.put(path, 'error', { status: 500, headers: { 'retry-after': '0' } });
};

/** Truncates a published file; its checksum stays that of the whole file. */
function truncate(path: string): void {
  const { body, ...more } = publishers.files.get(path)!;
  publishers.put(path, body.slice(0, body.length / 2), more);
}

const NIGHTS: [what: string, prepare: (step: number, day: string) => void][] = [
  [
    'first build',
    (step, day) => {
      publishDbip(step, '2026-10');
      publishAll(step, day);
    },
  ],
  ['all files change', publishAll],
  ['nothing changes', () => {}],
  [
    'user-country is missing',
    (step, day) => {
      publishAll(step, day);
      publishers.files.delete(`${USER_COUNTRY}4.csv`);
    },
  ],
  [
    'a registry file is truncated',
    (step, day) => {
      publishAll(step, day);
      truncate(RIR_FILES.ripencc);
    },
  ],
  [
    'user-country has a wrong checksum',
    (step, day) => {
      publishAll(step, day);
      publishers.put(`${CHECKSUM}6.csv.sha256`, `${'0'.repeat(64)}  user-country-ipv6.csv\n`);
    },
  ],
  [
    'a registry answers 500, day 1',
    (step, day) => {
      publishAll(step, day);
      answer500(RIR_FILES.apnic);
    },
  ],
  [
    '500, day 2; a new month',
    (step, day) => {
      publishAll(step, day);
      answer500(RIR_FILES.apnic);
    },
  ],
  [
    '500, day 3; DB-IP of the month',
    (step, day) => {
      publishAll(step, day);
      answer500(RIR_FILES.apnic);
      publishDbip(step, '2026-11');
    },
  ],
  ['the registry is back', publishAll],
  [
    'AWS changes its format',
    (step, day) => {
      publishAll(step, day);
      publishers.put(AWS, JSON.stringify({ version: 2, ranges: [{ cidr: '3.5.140.0/22', where: 'eu-north-1' }] }));
    },
  ],
  [
    'half of user-country, right checksum',
    (step, day) => {
      publishAll(step, day);
      publishUserCountry(step, day, WORLD.slice(0, WORLD.length / 2));
    },
  ],
  ['all is well', publishAll],
  ['no publisher can be reached', () => publishers.files.clear()],
];

const SHOWN = ['user-country', 'rir-delegations', 'dbip-lite', 'aws', 'isp'];
const dayOf = (night: number): string => new Date(Date.UTC(2026, 9, 25 + night)).toISOString().slice(0, 10);

/** Returns the lines of a build's progress that say what was not as it should be, without addresses and hashes. */
function reasons(stderr: string): string[] {
  const lines = stderr
    .split('\n')
    // They are not among the publishers here, and are optional.
    .filter((line) => !/"(laces|linode|digitalocean|icloud-private-relay|starlink|tor)"/.test(line))
    .filter((line) => /using the copy|earlier release|optional|does not exist yet|^ {2}- /.test(line));
  return lines.map((line) =>
    line
      .trim()
      .replace(/http:\/\/\S+\//g, '')
      .replace(/ fetched on \d{4}-\d\d-\d\d, with data/, '')
      .replace(/; trying .*| have no .*|^- /, '')
      .replace(/\b[0-9a-f]{32,}\b/g, '…'),
  );
}

/** Returns the reasons as one text; their order is not fixed, because sources are fetched at the same time. */
function summary(why: readonly string[]): string {
  const copies = why.filter((text) => text.includes('using the copy')).length;
  return copies > 1 ? `${copies} sources from the cache` : [...why].sort().join('; ');
}

interface Night {
  day: string;
  what: string;
  exit: number | null;
  release: string;
  data: string;
  age: number;
  dates: Record<string, string>;
  why: string[];
}

async function build(night: number): Promise<Night> {
  const [what, prepare] = NIGHTS[night]!;
  const day = dayOf(night);
  prepare(night, day);
  const sources = publishers.writeSources(dir, (file) => {
    const feed = { kind: 'geofeed', lineage: 'isp', space: ['102.11.0.0/16'], format: 'geofeed' };
    const fetch = { https: publishers.url(FEED) };
    file.sources.unshift({ id: 'isp', license: 'facts', optional: true, ...feed, fetch });
  });
  const { code, stderr } = await ipatlas(['build', '--sources', sources, '--data', dataDir, '--as-of', day]);
  const manifest = manifestOf(dataDir);
  const dates = manifest.inputs.map(({ id, data_date }) => [id, data_date ?? 'unknown']);
  return {
    ...{ day, what, exit: code, why: reasons(stderr) },
    release: readlinkSync(join(dataDir, 'current')).replace('releases/', ''),
    data: manifest.data_date ?? 'unknown',
    age: ageDays(releaseAge(manifest, Date.parse(`${day}T04:00:00Z`))),
    dates: Object.fromEntries(dates),
  };
}

/** Returns one address for each row of the world, and the country that it must have. */
const PROBES = WORLD.filter((_row, index) => index % 7 === 0);

/** Counts the probes and sentinels whose result is wrong in the current release. */
function wrongAnswers(): number {
  const database = openDatabase(dataDir);
  const sentinels = loadReference().sentinels.filter(({ expected }) => expected.kind === 'country');
  const expected = [
    ...PROBES.map(({ first, code }) => [first, code] as const),
    ...sentinels.map(({ ip, expected }) => [ip, expected.kind === 'country' ? expected.code : ''] as const),
  ];
  const special = (ip: string): boolean => database.lookupWithReason(ip)!.country_code === null;
  const wrong = expected.filter(([ip, code]) => !special(ip) && database.lookup(ip)!.country_code !== code).length;
  database.close();
  return wrong;
}

/** Returns the countries of an address of each operator, which only the operator's own list says. */
function operatorAnswers(): unknown[] {
  const database = openDatabase(dataDir);
  const answers = ['3.5.140.1', '20.38.19.1', '34.1.128.1', '129.146.0.1'].map(
    (ip) => database.lookup(ip)!.country_code,
  );
  database.close();
  return answers;
}

const EXPECTED = `
| night | what happens | exit | release | data of | age | user-country | rir-delegations | dbip-lite | aws | isp | why |
| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |
| 2026-10-25 | first build | 0 | 2026-10-25 | 2026-10-01 | 24 | 2026-10-25 | 2026-10-25 | 2026-10-01 | 2026-10-25 | 2026-10-25 |  |
| 2026-10-26 | all files change | 0 | 2026-10-26 | 2026-10-01 | 25 | 2026-10-26 | 2026-10-26 | 2026-10-01 | 2026-10-26 | 2026-10-26 |  |
| 2026-10-27 | nothing changes | 0 | 2026-10-27 | 2026-10-01 | 26 | 2026-10-26 | 2026-10-26 | 2026-10-01 | 2026-10-26 | 2026-10-26 |  |
| 2026-10-28 | user-country is missing | 0 | 2026-10-28 | 2026-10-01 | 27 | 2026-10-26 | 2026-10-28 | 2026-10-01 | 2026-10-28 | 2026-10-28 | user-country: the server answered 404 Not Found; using the copy of 2026-10-26 |
| 2026-10-29 | a registry file is truncated | 0 | 2026-10-29 | 2026-10-01 | 28 | 2026-10-29 | 2026-10-28 | 2026-10-01 | 2026-10-29 | 2026-10-29 | rir-delegations: its md5 is …, but its publisher says …; using the copy of 2026-10-28 |
| 2026-10-30 | user-country has a wrong checksum | 0 | 2026-10-30 | 2026-10-01 | 29 | 2026-10-29 | 2026-10-30 | 2026-10-01 | 2026-10-30 | 2026-10-30 | user-country: its sha256 is …, but its publisher says …; using the copy of 2026-10-29 |
| 2026-10-31 | a registry answers 500, day 1 | 0 | 2026-10-31 | 2026-10-01 | 30 | 2026-10-31 | 2026-10-30 | 2026-10-01 | 2026-10-31 | 2026-10-31 | rir-delegations: the server answered 500 Internal Server Error; using the copy of 2026-10-30 |
| 2026-11-01 | 500, day 2; a new month | 0 | 2026-11-01 | 2026-10-01 | 31 | 2026-11-01 | 2026-10-30 | 2026-10-01 | 2026-11-01 | 2026-11-01 | dbip-lite: dbip-country-lite-2026-11.csv.gz does not exist yet; rir-delegations: the server answered 500 Internal Server Error; using the copy of 2026-10-30 |
| 2026-11-02 | 500, day 3; DB-IP of the month | 0 | 2026-11-02 | 2026-11-01 | 1 | 2026-11-02 | 2026-10-30 | 2026-11-01 | 2026-11-02 | 2026-11-02 | rir-delegations: the server answered 500 Internal Server Error; using the copy of 2026-10-30 |
| 2026-11-03 | the registry is back | 0 | 2026-11-03 | 2026-11-01 | 2 | 2026-11-03 | 2026-11-03 | 2026-11-01 | 2026-11-03 | 2026-11-03 |  |
| 2026-11-04 | AWS changes its format | 0 | 2026-11-04 | 2026-11-01 | 3 | 2026-11-04 | 2026-11-04 | 2026-11-01 | 2026-11-03 | 2026-11-04 | source aws: ip-ranges.json has no prefixes in the form of aws's list of addresses. Check the fetched files, and the source's "format" and "maxRejectShare". The build continues with the files of an earlier release |
| 2026-11-05 | half of user-country, right checksum | 3 | 2026-11-04 | 2026-11-01 | 4 | 2026-11-04 | 2026-11-04 | 2026-11-01 | 2026-11-03 | 2026-11-04 | 43 of 97 sentinel addresses have a wrong result; the limit is 0; 8 countries are gone: HK, IE, IL, KE, MA, RE, SG, VA; the limit is 0; source user-country has 1,835 rows, previously 3,668, a change by 50 %; the limit is 20 % |
| 2026-11-06 | all is well | 0 | 2026-11-06 | 2026-11-01 | 5 | 2026-11-06 | 2026-11-06 | 2026-11-01 | 2026-11-06 | 2026-11-06 |  |
| 2026-11-07 | no publisher can be reached | 0 | 2026-11-07 | 2026-11-01 | 6 | 2026-11-06 | 2026-11-06 | 2026-11-01 | 2026-11-06 | 2026-11-06 | 9 sources from the cache |
`.trim();

it('publishes the best data that can be had each night, and never worse data', { timeout: 240_000 }, async () => {
  const nights: Night[] = [];
  for (const night of NIGHTS.keys()) {
    nights.push(await build(night));
    verifyRelease(join(dataDir, 'current'));
    expect(operatorAnswers(), nights.at(-1)!.what).toEqual([
      expect.stringMatching(/^(DE|IE|FR|SE)$/),
      'TW',
      'ZA',
      'US',
    ]);
    expect(wrongAnswers(), nights.at(-1)!.what).toBe(0);
  }
  const header = ['night', 'what happens', 'exit', 'release', 'data of', 'age', ...SHOWN, 'why'];
  const rows = nights.map(({ day, what, exit, release, data, age, dates, why }) => [
    ...[day, what, exit, release.slice(0, 10), data, age],
    ...SHOWN.map((id) => dates[id] ?? 'missing'),
    summary(why),
  ]);
  const line = (cells: unknown[]): string => `| ${cells.join(' | ')} |`;
  const table = [line(header), line(header.map(() => '---')), ...rows.map(line)].join('\n');
  console.log(table);
  expect(table).toBe(EXPECTED);
});
