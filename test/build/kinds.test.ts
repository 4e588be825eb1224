/** The kind of network: which lists give `anycast`, `kind` and `operator`, and every format that has members has them. */
import { readFileSync, writeFileSync } from 'node:fs';
import { BlockList } from 'node:net';
import { join } from 'node:path';
import fc from 'fast-check';
import { parquetReadObjects } from 'hyparquet';
import { type CountryResponse, open } from 'maxmind';
import { beforeAll, describe, expect, it } from 'vitest';
import { explainAll } from '../../pipeline/explain/explain.js';
import { mergeKinds, NETWORK_KINDS } from '../../pipeline/merging/kind-merger.js';
import { gateOf, parseGateRule } from '../../src/api/forward-auth.js';
import { PublicDatabase } from '../../src/api/releases/public-database.js';
import { ServedRelease } from '../../src/api/releases/served-release.js';
import { openDatabase } from '../../src/database/database.js';
import type { NetworkList } from '../../src/database/release.js';
import { dayOf } from '../../src/day.js';
import { kindsFromBytes } from '../../src/lookup/index.js';
import { openMirror } from '../../src/mirror/reader.js';
import { answerHtml } from '../../src/page/answer.js';
import { RangeBuilder } from '../../src/range/columns.js';
import { cellsOf } from '../../src/rangefile/layout.js';
import { KEY, testApp } from '../support/api.js';
import { ipatlas } from '../support/in-process.js';
import { numberOf } from '../support/networks.js';
import { temporaryDir } from '../support/release.js';
import { startService } from '../support/service.js';
import { buildOnce, spoilRows } from '../support/sources.js';

type Answer = [anycast: boolean | null, kind: string | null, operator: string | null];

const AWS = { prefixes: [], ipv6_prefixes: [] as object[] };
const entry = (prefix: string, region = 'us-east-1', service = 'EC2') => ({
  ...{ [prefix.includes(':') ? 'ipv6_prefix' : 'ip_prefix']: prefix, region, service, network_border_group: region },
});
const FILES: Record<string, string> = {
  'world.csv': '8.8.8.0,8.8.8.255,US\n20.0.0.0,20.255.255.255,US\n2a00::,2a00:ffff:ffff:ffff:ffff:ffff:ffff:ffff,NL\n',
  'aws.json': JSON.stringify({
    ...AWS,
    prefixes: [entry('20.0.0.0/16'), entry('20.9.0.0/24', 'GLOBAL', 'CLOUDFRONT'), entry('20.1.0.0/24', 'moon-1')],
    ipv6_prefixes: [entry('2a00:1::/32')],
  }),
  'feed.csv': 'prefix,country,region,city\n20.0.8.0/24,DE,,\n20.2.0.0/24,,,\n2a00:1:2::/48,FR,,\n',
  'relay.csv': '20.0.0.0/24,GB,GB-EN,London,\n20.3.0.0/27,GB,,,\n2a00:2::/64,,,,\n',
  'tor.txt': '# exits\n20.0.0.7\n20.4.0.1\n',
  'census.csv': 'prefix,number_of_sites,backing_prefix\n20.0.5.0/24,12,\n20.5.0.0/24,1,\n2a00:3::/48,3,\n',
};
const source = (file: string, format: string, more: object = {}) => ({
  ...{ id: file.split('.')[0], license: 'facts', fetch: { file }, format, optional: true },
  ...more,
});
const SOURCES = [
  source('world.csv', 'ip-location-db'),
  source('aws.json', 'aws-ip-ranges'),
  source('feed.csv', 'geofeed', { network: { kind: 'cloud', operator: 'hoster' } }),
  source('relay.csv', 'geofeed', { network: { kind: 'relay', operator: 'icloud-private-relay' } }),
  source('tor.txt', 'cidr-list', { network: { kind: 'tor', operator: 'tor' } }),
  source('census.csv', 'laces-csv', { kind: 'anycast' }),
];

/** Addresses and what is known of them with all lists. */
const CASES: Record<string, Answer> = {
  '20.0.1.1': [false, 'cloud', 'aws'],
  '20.0.5.1': [true, 'cloud', 'aws'],
  '20.0.8.1': [false, 'cloud', 'hoster'], // the narrower prefix
  '20.0.0.1': [false, 'relay', 'icloud-private-relay'],
  '20.0.0.7': [false, 'tor', 'tor'],
  '20.1.0.1': [false, 'cloud', 'aws'], // a region without a country
  '20.2.0.1': [false, 'cloud', 'hoster'], // a row without a country
  '20.3.0.31': [false, 'relay', 'icloud-private-relay'],
  '20.3.0.32': [false, 'none', null],
  '20.4.0.1': [false, 'tor', 'tor'],
  '20.5.0.1': [false, 'none', null], // one site
  '20.9.0.1': [true, 'cloud', 'aws'],
  '8.8.8.8': [true, 'none', null], // by data/reference/anycast.csv
  '10.0.0.1': [false, 'none', null],
  '2a00:1::1': [false, 'cloud', 'aws'],
  '2a00:1:2::1': [false, 'cloud', 'hoster'],
  '2a00:2::1': [false, 'relay', 'icloud-private-relay'],
  '2a00:3::1': [true, 'none', null],
  '2002:1400:7::1': [false, 'tor', 'tor'], // 6to4 of 20.0.0.7
  '::ffff:20.0.0.1': [false, 'relay', 'icloud-private-relay'],
};
const IPS = Object.keys(CASES);
const MEMBERS = ['anycast', 'kind', 'operator'];

let dir: string;
let data: string;

/** Writes the files and sources.json; returns its path. */
function writeSources(sources: object[], more: object = {}): string {
  for (const [name, text] of Object.entries(FILES)) writeFileSync(join(dir, name), text);
  const path = join(dir, 'sources.json');
  writeFileSync(path, JSON.stringify({ sources, ...more }));
  return path;
}

beforeAll(async () => {
  dir = temporaryDir();
  data = join(dir, 'data');
  expect(await buildOnce(data, writeSources(SOURCES), { asOf: '2026-01-02', force: true })).toMatchObject({ exit: 0 });
});

/** Returns the members of an object in their order. */
const answerOf = (result: Record<string, unknown>) => MEMBERS.map((name) => result[name]);

async function run(...args: string[]): Promise<string> {
  const { stdout, stderr, code } = await ipatlas([...args, '--data', data]);
  expect([code, stderr]).toEqual([0, '']);
  return stdout;
}

/** Writes an export; returns its path. */
async function exported(format: string, ...args: string[]): Promise<string> {
  const path = join(dir, `export.${format}`);
  expect(await ipatlas(['export', format, '-o', path, '--data', data, ...args])).toMatchObject({ code: 0 });
  return path;
}

/** Returns the answers for the addresses that have a country of their own; tables do not have the others. */
function inTables(answer: (ip: string) => unknown[]): unknown[][] {
  return IPS.map((ip) => (/^(20|8|2a00)[.:]/.test(ip) ? answer(ip) : CASES[ip]!));
}

/** Returns the answers of a table of ranges or blocks, whose first columns say where it is. */
function rowsOf(text: string, places: 1 | 2): unknown[][] {
  const [header, ...rows] = text
    .trimEnd()
    .split('\n')
    .map((line) => line.split(','));
  expect(header!.slice(places)).toEqual(['country_code', 'country', 'is_eu', ...MEMBERS]);
  return inTables((ip) => {
    const list = (row: string[]): BlockList => {
      const block = new BlockList();
      const family = row[0]!.includes(':') ? 'ipv6' : 'ipv4';
      if (places === 2) block.addRange(row[0]!, row[1]!, family);
      else block.addSubnet(row[0]!.split('/')[0]!, Number(row[0]!.split('/')[1]), family);
      return block;
    };
    const [anycast, ...texts] = rows.find((row) => list(row).check(ip, ip.includes(':') ? 'ipv6' : 'ipv4'))!.slice(-3);
    return [anycast === 'true', ...texts.map((cell) => (cell === '' ? null : cell))];
  });
}

/** What each format says of the addresses of {@link CASES}, in their order. */
const FORMATS: Record<string, () => Promise<unknown[][]>> = {
  'lookup --add': async () => {
    const lines = (await run('lookup', ...IPS, '--json', '--add', MEMBERS.join())).trimEnd().split('\n');
    return lines.map((line) => answerOf(JSON.parse(line)));
  },
  'the library': async () => {
    using database = openDatabase(data);
    const find = database.fields(MEMBERS);
    return IPS.map((ip) => answerOf(find(ip)!));
  },
  'enrich, JSON lines': async () => {
    const input = IPS.map((ip) => `{"ip":"${ip}"}\n`).join('');
    const { stdout } = await ipatlas(['enrich', '--add', MEMBERS.join(), '--data', data], { input });
    return stdout
      .trimEnd()
      .split('\n')
      .map((line) => answerOf(JSON.parse(line).geo));
  },
  'enrich, CSV': async () => {
    const input = `ip\n${IPS.join('\n')}\n`;
    const args = ['enrich', '--format', 'csv', '--field', 'ip', '--add', MEMBERS.join(), '--data', data];
    const [header, ...rows] = (await ipatlas(args, { input })).stdout.trimEnd().split('\n');
    expect(header).toBe('ip,geo_anycast,geo_kind,geo_operator');
    return rows.map((row) => {
      const [, anycast, ...texts] = row.split(',');
      return [anycast === 'true', ...texts.map((text) => (text === '' ? null : text))];
    });
  },
  'enrich, logs of Zeek': async () => {
    const head = '#separator \\x09\n#unset_field\t-\n#fields\tip\n#types\taddr\n';
    const args = ['enrich', '--format', 'zeek', '--field', 'ip', '--add', MEMBERS.join(), '--data', data];
    const lines = (await ipatlas(args, { input: head + IPS.map((ip) => `${ip}\n`).join('') })).stdout.split('\n');
    expect(lines.find((line) => line.startsWith('#types'))).toBe('#types\taddr\tbool\tstring\tstring');
    return lines
      .filter((line) => line !== '' && !line.startsWith('#'))
      .map((line) => {
        const [, anycast, ...texts] = line.split('\t');
        return [anycast === 'T', ...texts.map((text) => (text === '-' ? null : text))];
      });
  },
  'the API': async () => {
    const app = testApp(data);
    const get = (ip: string) =>
      app.inject({ url: `/api/lookup/${ip}?include=${MEMBERS.join()}`, headers: { 'x-api-key': KEY } });
    const answers = [];
    for (const ip of IPS) answers.push(answerOf((await get(ip)).json()));
    await app.close();
    return answers;
  },
  'the answers of a day': async () => {
    const day = dayOf(Date.now());
    const lines = (await run('lookup', ...IPS, '--json', '--at', day, '--add', MEMBERS.join())).trimEnd().split('\n');
    const { input, ...enrich } = { input: IPS.map((ip) => `{"ip":"${ip}"}\n`).join(''), add: MEMBERS.join() };
    const { stdout } = await ipatlas(['enrich', '--at', day, '--add', enrich.add, '--data', data], { input });
    const enriched = stdout.trimEnd().split('\n');
    expect(enriched.map((line) => answerOf(JSON.parse(line).geo))).toEqual(
      lines.map((line) => answerOf(JSON.parse(line))),
    );
    return lines.map((line) => answerOf(JSON.parse(line)));
  },
  '@ipatlas/lookup': async () => {
    // What GET /db/kinds.ipc answers.
    const bytes = await new PublicDatabase().bytes({ id: 'x', dir: join(data, 'current') }, 'kinds');
    const served = await kindsFromBytes(bytes);
    const db = await kindsFromBytes(readFileSync(await exported('compact', '--with', 'kinds', '--gzip')));
    expect(db.kind('x')).toBeUndefined();
    expect(IPS.map((ip) => served.kind(ip))).toEqual(IPS.map((ip) => db.kind(ip)));
    return IPS.map((ip) => answerOf({ ...db.kind(ip) }));
  },
  'export csv': async () => rowsOf(readFileSync(await exported('csv', '--with', 'kinds'), 'utf8'), 2),
  'export cidr': async () => rowsOf(readFileSync(await exported('cidr', '--with', 'kinds'), 'utf8'), 1),
  'export parquet': async () => {
    const file = Uint8Array.from(readFileSync(await exported('parquet', '--with', 'kinds')));
    const rows = await parquetReadObjects({ file: file.buffer });
    const sortable = (ip: string): string =>
      numberOf(ip)
        .toString(16)
        .padStart(ip.includes(':') ? 32 : 8, '0')
        .padStart(32, '00000000000000000000ffff');
    return inTables((ip) => {
      const row = rows.find(({ start, end }) => start <= sortable(ip) && sortable(ip) <= end)!;
      return answerOf(row);
    });
  },
  'export mmdb': async () => {
    const reader = await open<CountryResponse & Record<string, unknown>>(await exported('mmdb', '--with', 'kinds'));
    return inTables((ip) => {
      const { traits, anycast, kind, operator = null } = reader.get(ip)!;
      // As GeoIP2 has it: what is not so, or not known, is absent.
      expect([ip, traits]).toEqual([
        ip,
        anycast === true || (kind !== 'none' && kind !== null)
          ? {
              ...(anycast === true && { is_anycast: true }),
              ...(kind === 'cloud' && { is_hosting_provider: true, user_type: 'hosting' }),
              ...(kind === 'relay' && { user_type: 'consumer_privacy_network' }),
              ...(kind === 'tor' && { is_anonymous: true, is_tor_exit_node: true }),
            }
          : undefined,
      ]);
      return answerOf({ anycast, kind, operator });
    });
  },
  'history --kinds': async () => {
    const lines = (await run('history', '--kinds', '--json', ...IPS)).trim().split('\n');
    return lines.map((line) => answerOf(JSON.parse(line)));
  },
  explain: async () => {
    const explained = await explainAll(data, join(data, 'current'), IPS);
    spoilRows(data);
    expect(await explainAll(data, join(data, 'current'), IPS)).toEqual(explained);
    return explained.map(({ kinds, notes }) => {
      expect(notes).toEqual([]);
      expect(kinds!.rows.flatMap(({ decides }) => decides).sort()).toEqual([
        ...(kinds!.anycast === true ? ['anycast'] : []),
        ...(kinds!.operator === null ? [] : ['kind', 'operator']),
      ]);
      return answerOf({ ...kinds });
    });
  },
};

describe('with all lists', () => {
  it.each(Object.keys(FORMATS))('%s has them', async (name) => {
    const answers = await FORMATS[name]!();
    expect(Object.fromEntries(IPS.map((ip, index) => [ip, answers[index]]))).toEqual(CASES);
  });

  it('filter and summarize decide and count by them', async () => {
    const input = join(dir, 'ips.txt');
    writeFileSync(input, IPS.map((ip) => `${ip}\n`).join(''));
    const counted = async (...args: string[]) =>
      (await ipatlas([...args, '--format', 'list', '--data', data, input])).stdout;
    const of = (...kinds: unknown[]) => IPS.filter((ip) => kinds.includes(CASES[ip]![1]));
    const filter = async (...args: string[]) => (await counted('filter', ...args)).trimEnd().split('\n');
    expect(await filter('--kind', 'cloud')).toEqual(of('cloud'));
    expect(await filter('--kind', 'tor,relay')).toEqual(of('tor', 'relay'));
    expect(await filter('--kind', 'cloud', '--kind', 'none', '--not')).toEqual(of('tor', 'relay'));
    expect(await filter('--kind', 'tor', '--country', 'NL')).toEqual(
      IPS.filter((ip) => CASES[ip]![1] === 'tor' || ip.startsWith('2a00')),
    );
    const summary = async (by: string) => JSON.parse(await counted('summarize', '--by', by, '--json'));
    const count = (index: number, value: unknown) => IPS.filter((ip) => CASES[ip]![index] === value).length;
    for (const { kind, count: lines } of (await summary('kind')).kinds) expect(lines).toBe(count(1, kind));
    expect(await summary('operator')).toMatchObject({
      operators: expect.arrayContaining([{ operator: 'hoster', count: count(2, 'hoster') }]),
      no_operator: count(2, null),
    });
    expect(await summary('anycast')).toMatchObject({
      anycast: [
        { anycast: false, count: count(0, false) },
        { anycast: true, count: count(0, true) },
      ],
      unknown: 0,
    });
  });

  it('the page has a line', () => {
    const page = (anycast: boolean | null, kind: string | null, operator: string | null): string =>
      answerHtml({ ip: '::', country: null, country_code: null, is_eu: false, anycast, kind, operator }, {}).text;
    expect(page(true, 'cloud', 'aws')).toContain('<dt>Kind</dt><dd>cloud (aws), anycast: at many places</dd>');
    expect(page(null, 'tor', 'tor')).toContain('<dd>exit of Tor</dd>');
    for (const kind of ['none', null]) expect(page(false, kind, null)).not.toContain('Kind');
  });

  it('the mirror and info have them', async () => {
    const mirror = openMirror(join(data, 'current', 'ranges.sqlite'));
    const row = mirror.prepare(
      'SELECT anycast, kind.kind, operator FROM ipv4_kind LEFT JOIN kind USING (number) WHERE first <= ? ORDER BY first DESC',
    );
    expect(row.get(20 * 2 ** 24 + 5 * 256 + 1)).toEqual({ anycast: 1, kind: 'cloud', operator: 'aws' });
    expect(row.get(20 * 2 ** 24 + 3 * 65_536 + 40)).toEqual({ anycast: 0, kind: 'none', operator: null });
    mirror.close();
    expect(await run('info')).toMatch(/^list of icloud-private-relay +relay, /m);
    expect(JSON.parse(await run('verify', '--json'))).toMatchObject({ ipv4_kind_ranges: expect.any(Number) });
  });
});

describe('unknown is never no', () => {
  it('without a list, kind is null where no other list has the address, and without a census so is anycast', async () => {
    const other = join(dir, 'other');
    const without = SOURCES.map((each) =>
      each.id === 'tor' || each.id === 'census' ? { ...each, fetch: { file: 'missing' } } : each,
    );
    await buildOnce(other, writeSources(without), { asOf: '2026-01-02', force: true });
    {
      using database = openDatabase(other);
      const find = database.fields(MEMBERS);
      const expected = IPS.map((ip) => {
        const [anycast, kind, operator] = CASES[ip]!;
        const isKnown = kind === 'cloud' || kind === 'relay';
        const isPublished = ip === '8.8.8.8' || ip === '20.9.0.1';
        // The relay's prefix is around that exit of Tor, and Amazon's around the one that is anycast.
        const below: Answer =
          ip.includes('20.0.0.7') || ip.startsWith('2002:')
            ? [null, 'relay', 'icloud-private-relay']
            : [null, null, null];
        return isKnown
          ? [anycast && isPublished ? true : null, kind, operator]
          : [isPublished ? true : null, ...below.slice(1)];
      });
      expect(IPS.map((ip) => answerOf(find(ip)!))).toEqual(expected);
    }
    const { stderr } = await ipatlas(['lookup', '8.8.8.8', '--add', 'kind', '--data', other]);
    expect(stderr).toMatch(/built without tor.*kind is null/);
    expect((await ipatlas(['info', '--data', other])).stdout).toMatch(
      /^kind of network +null outside .*missing: tor$/m,
    );
    // The same files, but of other lists that are configured: another release.
    const [manifest, all] = [other, data].map((each) =>
      JSON.parse(readFileSync(join(each, 'current/manifest.json'), 'utf8')),
    );
    expect(manifest.kinds).toEqual({ missing: [{ id: 'tor', kind: 'tor' }] });
    expect(manifest.input_hash).not.toBe(all.input_hash);
  });

  it('a rule of forward auth needs all lists of its kind, and lets nobody in without them', async () => {
    const other = join(dir, 'other');
    const [served, without] = [data, other].map((each) => new ServedRelease(openDatabase(each)));
    const refused = (rule: string, release: ServedRelease) => {
      const decide = gateOf(parseGateRule(rule));
      return IPS.filter((ip) => decide(ip, release)?.isAllowed === false);
    };
    const of = (...kinds: unknown[]) => IPS.filter((ip) => ip !== '10.0.0.1' && kinds.includes(CASES[ip]![1]));
    expect(refused('r=deny:kind:tor,KIND:relay', served!)).toEqual(of('tor', 'relay'));
    expect(refused('r=allow:kind:none', served!)).toEqual(of('tor', 'relay', 'cloud'));
    expect(refused('r=deny:kind:cloud', without!)).toEqual(of('cloud'));
    for (const rule of ['r=deny:kind:tor', 'r=allow:kind:none']) {
      expect(refused(rule, without!)).toEqual(IPS);
      const values = { 'trust-proxy': '127.0.0.1/32', 'forward-auth': [rule] };
      await expect(startService(other, values)).rejects.toMatchObject({
        code: 'E_USAGE',
        message: expect.stringContaining('no list of that kind'),
      });
    }
    served!.close();
    without!.close();
  });

  it('a filter by kind needs a list', async () => {
    const other = join(dir, 'bare');
    await buildOnce(other, writeSources(SOURCES.slice(0, 1)), { asOf: '2026-01-02', force: true });
    const { code, stderr } = await ipatlas(['filter', '--kind', 'cloud', '--data', other], { input: '' });
    expect([code, stderr]).toEqual([5, expect.stringContaining('has no list of the kind cloud')]);
    using database = openDatabase(other);
    expect(answerOf(database.fields(MEMBERS)('20.0.0.1')!)).toEqual([null, null, null]);
    expect(answerOf(database.fields(MEMBERS)('8.8.8.8')!)).toEqual([true, null, null]);
  });

  it('labels of these names are answered instead, and the build says so', async () => {
    const other = join(dir, 'labeled');
    writeFileSync(join(dir, 'labels.csv'), 'range,kind,is_eea,site\n20.0.0.0/8,mine,perhaps,lab\n');
    const built = await buildOnce(other, writeSources(SOURCES, { labels: 'labels.csv' }), {
      ...{ asOf: '2026-01-02', force: true },
    });
    expect(built.notes.join('\n')).toMatch(/labels: kind, is_eea are also names .* until version 1\.0/);
    const expected = {
      anycast: false,
      kind: 'mine',
      operator: 'aws',
      is_eea: 'perhaps',
      country_code: 'US',
      site: 'lab',
    };
    const add = Object.keys(expected);
    using database = openDatabase(other);
    expect(database.fields(add)('20.0.1.1')).toMatchObject(expected);
    const { stdout } = await ipatlas(['enrich', '--add', add.join(), '--data', other], {
      input: '{"ip":"20.0.1.1"}\n',
    });
    expect(JSON.parse(stdout).geo).toEqual(expected);
    const groups = await ipatlas(['summarize', '--by', 'kind', '--format', 'list', '--json', '--data', other], {
      input: '20.0.1.1\n',
    });
    expect(JSON.parse(groups.stdout).kinds).toEqual([{ kind: 'mine', count: 1 }]);
  });
});

/** A space of 256 addresses, 30.0.0.0/24, in which lists are painted address by address. */
describe('mergeKinds', () => {
  const range = fc.tuple(fc.nat(255), fc.nat(255)).map(([a, b]) => [Math.min(a, b), Math.max(a, b)] as const);
  const list = fc.record({
    kind: fc.constantFrom(...NETWORK_KINDS, undefined),
    operator: fc.constantFrom('a', 'b'),
    isAnycast: fc.boolean(),
    ranges: fc.array(range, { minLength: 1, maxLength: 5 }),
  });

  it('agrees with painting each address', () => {
    fc.assert(
      fc.property(fc.array(list, { maxLength: 5 }), fc.boolean(), fc.boolean(), (lists, knowsAnycast, isComplete) => {
        const base = 30 * 2 ** 24;
        const empty = new RangeBuilder(6, 0).finish();
        const sources = lists.map(({ isAnycast, ranges }, id) => {
          const builder = new RangeBuilder(4);
          for (const [first, last] of ranges)
            builder.add(Uint32Array.of(base + first), Uint32Array.of(base + last), 0, Number(isAnycast));
          const v4 = builder.finish();
          return { id: String(id), v4, v6: empty, codes: ['US'], rows: 1, rejected: 0, listed: { v4, v6: empty } };
        });
        const networks = lists.map(({ kind, operator }): NetworkList | undefined => kind && { kind, operator });
        const reference = { special: [], anycast: [] };
        const unlisted = [knowsAnycast ? false : null, isComplete ? 'none' : null] as const;
        const { v4, records } = mergeKinds({ sources, lists: { networks, unlisted }, reference });
        for (let address = 0; address < 256; address++) {
          const covering = lists.flatMap(({ kind, operator, isAnycast, ranges }, at) =>
            ranges.flatMap(([first, last]) =>
              first <= address && address <= last ? [{ kind, operator, isAnycast, size: last - first, at }] : [],
            ),
          );
          const [best] = covering
            .filter(({ kind }) => kind !== undefined)
            .sort(
              (a, b) =>
                NETWORK_KINDS.indexOf(b.kind!) - NETWORK_KINDS.indexOf(a.kind!) || a.size - b.size || b.at - a.at,
            );
          const anycast = covering.some(({ isAnycast }) => isAnycast) || (knowsAnycast ? false : null);
          const expected = [anycast, best?.kind ?? (isComplete ? 'none' : null), best?.operator ?? null];
          const index = v4.first.findLastIndex((first) => first <= base + address);
          const record = records[v4.value[index]!]!;
          expect(record.kind === 'label' ? cellsOf(record) : [null, null, null]).toEqual(expected);
        }
      }),
    );
  });
});
