import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it, test } from 'vitest';
import { DEFAULT_COUNTRY_PATHS } from '../../pipeline/source-formats/formats.js';
import { readMmdb } from '../../pipeline/source-formats/mmdb.js';
import type { IngestedSource } from '../../pipeline/stage.js';
import { AtlasError } from '../../src/errors.js';
import { assemble } from '../../src/export/mmdb/mmdb.js';
import { leafOf, NO_DATA, type Tree } from '../../src/export/mmdb/tree.js';
import { type MmdbValue, mapOf, ValueWriter } from '../../src/export/mmdb/values.js';
import { parseCidr } from '../../src/range/cidr.js';
import { ipatlas } from '../support/in-process.js';
import { temporaryDir } from '../support/release.js';
import { ingestContents, rangesText } from './ingest-helper.js';

/** Returns an MMDB file with the given tree and data. */
function mmdbFile(tree: Tree, values: MmdbValue[], ipVersion: 4 | 6 = 4, recordSize: 24 | 28 | 32 = 24): Buffer {
  const data = new ValueWriter(true);
  const offsets = values.map((value) => data.append(value));
  const labels = { title: 't', databaseType: 't', asOf: '2026-01-01', ipVersion };
  return Buffer.concat([...assemble(tree, { bytes: data.bytes, offsets }, recordSize, labels)]);
}

/** A tree whose first `values` blocks of 1.0.0.0/8 and so on, by their first three bits, have data. */
function threeBitTree(references: number[]): Tree {
  const at = (i: number): number => references[i] ?? NO_DATA;
  return {
    count: 7,
    left: Int32Array.of(1, 3, 5, at(0), at(2), at(4), at(6)),
    right: Int32Array.of(2, 4, 6, at(1), at(3), at(5), at(7)),
  };
}

/** A value of 28^12 strings in 700 bytes: a pointer to the last of twelve arrays, each with 28 pointers to what is before it. */
function pointerBomb(): Buffer {
  const pointerTo = (at: number): number[] => [0x20 | (at >> 8), at & 0xff];
  const bytes = [0, 0, 0x41, 0x78];
  let last = 2;
  for (let level = 0; level < 12; level++) {
    const at = bytes.length;
    bytes.push(28, 4, ...Array.from({ length: 28 }, () => pointerTo(last)).flat());
    last = at;
  }
  bytes.splice(0, 2, ...pointerTo(last));
  return Buffer.from(bytes);
}

const country = (text: string): MmdbValue => mapOf({ country: mapOf({ iso_code: text }) });

async function read(file: Buffer, format: string | object = 'mmdb', share = 0): Promise<IngestedSource> {
  return (await ingestContents(format, { 'x.mmdb': file }, share)).ingested;
}

describe('records', () => {
  test.each<[string, MmdbValue, string]>([
    ['GeoIP2', country('DE'), 'DE'],
    ['flat code', mapOf({ country_code: 'FR' }), 'FR'],
    ['country as code', mapOf({ country: 'NL' }), 'NL'],
    ['country as a name, with a code', mapOf({ country: 'Germany', country_code: 'DE' }), 'DE'],
    ['registered country', mapOf({ registered_country: mapOf({ iso_code: 'JP' }) }), 'JP'],
    ['lower case', country('de'), 'DE'],
    ['no country', mapOf({ continent: mapOf({ code: 'EU' }) }), ''],
    ['an empty code', mapOf({ country: mapOf({ iso_code: '' }) }), ''],
    ['no map', 'text', ''],
    ['a list', ['DE'], ''],
  ])('%s', async (_name, value, code) => {
    const source = await read(mmdbFile(threeBitTree([leafOf(0)]), [value]));
    expect(rangesText(source)).toEqual([`0.0.0.0-31.255.255.255 ${code}`]);
  });

  it('reads the path that the format names', async () => {
    const value = mapOf({ country_code: 'DE', location: mapOf({ nation: 'AT' }) });
    const source = await read(mmdbFile(threeBitTree([leafOf(0)]), [value]), { mmdb: { country: 'location.nation' } });
    expect(source.codes).toEqual(['AT']);
  });

  it('rejects values that are not country codes, with their position', async () => {
    const file = mmdbFile(threeBitTree([leafOf(0), leafOf(1)]), [country('DE'), country('Deutschland')]);
    await expect(read(file)).rejects.toThrow(
      /1 of 2 rows cannot be read.*\n {2}x\.mmdb, line 2: the country is not a country code: "32\.0\.0\.0 Deutschland"/,
    );
    const { ingested, rejects } = await ingestContents('mmdb', { 'x.mmdb': file }, 0.5);
    expect([ingested.rows, ingested.rejected]).toEqual([1, 1]);
    expect(rejects).toEqual([
      {
        source: 'test',
        file: 'x.mmdb',
        line: 2,
        text: '32.0.0.0 Deutschland',
        reason: 'the country is not a country code',
      },
    ]);
    const number = mmdbFile(threeBitTree([leafOf(0)]), [mapOf({ country: { bits: 32, value: 123_456_789 } })]);
    await expect(read(number)).rejects.toThrow(/"0\.0\.0\.0 123456789"/);
  });

  it('joins adjacent networks with the same record, and no others', async () => {
    const tree = threeBitTree([leafOf(0), leafOf(0), leafOf(1), leafOf(0), NO_DATA, leafOf(0), leafOf(0), leafOf(0)]);
    const source = await read(mmdbFile(tree, [country('DE'), country('FR')]));
    expect(rangesText(source)).toEqual([
      '0.0.0.0-63.255.255.255 DE',
      '64.0.0.0-95.255.255.255 FR',
      '96.0.0.0-127.255.255.255 DE',
      '160.0.0.0-255.255.255.255 DE',
    ]);
  });

  test.each([24, 28, 32] as const)('reads records of %d bits', async (size) => {
    const source = await read(mmdbFile(threeBitTree([NO_DATA, leafOf(0)]), [country('DE')], 4, size));
    expect(rangesText(source)).toEqual(['32.0.0.0-63.255.255.255 DE']);
  });

  it('an IPv6 tree of one leaf applies to both families', async () => {
    const tree: Tree = { count: 1, left: Int32Array.of(leafOf(0)), right: Int32Array.of(leafOf(0)) };
    expect(rangesText(await read(mmdbFile(tree, [country('DE')], 6)))).toEqual([
      '0.0.0.0-255.255.255.255 DE',
      '::-ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff DE',
    ]);
  });
});

/** A tree into which networks are inserted one by one, as other writers do; a reference below 0 is a leaf. */
class NaiveTree {
  readonly #nodes: [number, number][] = [[NO_DATA, NO_DATA]];

  /** @param network an IPv6 block @param reference a leaf, or the node of another network */
  put(network: string, reference: number): this {
    const { node, side } = this.#slot(network);
    this.#nodes[node]![side] = reference;
    return this;
  }

  /** Returns the node of a network; a leaf is replaced by a node. */
  node(network: string): number {
    const { node, side } = this.#slot(network);
    return this.#nodes[node]![side]!;
  }

  get tree(): Tree {
    const column = (side: 0 | 1): Int32Array => Int32Array.from(this.#nodes, (node) => node[side]);
    return { count: this.#nodes.length, left: column(0), right: column(1) };
  }

  #slot(network: string): { node: number; side: 0 | 1 } {
    const first = new Uint32Array(4);
    const { prefix } = parseCidr(network, first, new Uint32Array(4))!;
    let node = 0;
    for (let bit = 0; ; bit++) {
      const side = ((first[bit >>> 5]! >>> (31 - (bit & 31))) & 1) as 0 | 1;
      if (bit === prefix - 1) return { node, side };
      const next = this.#nodes[node]![side];
      // A leaf that covers more than the network is copied to both halves.
      if (next < 0) this.#nodes[node]![side] = this.#nodes.push([next, next]) - 1;
      node = this.#nodes[node]![side];
    }
  }
}

describe('copies of the IPv4 tree in files of other producers', () => {
  const [DE, FR] = [leafOf(0), leafOf(1)];
  const values = [country('DE'), country('FR')];
  /** 1.0.0.0/8 in one country and 1.2.0.0/16 in another. */
  const base = (): NaiveTree => new NaiveTree().put('::100:0/104', DE).put('::102:0/112', FR);
  const IPV4 = ['1.0.0.0-1.1.255.255 DE', '1.2.0.0-1.2.255.255 FR', '1.3.0.0-1.255.255.255 DE'];

  it('do not exist in a plain tree', async () => {
    expect(rangesText(await read(mmdbFile(base().tree, values, 6)))).toEqual(IPV4);
  });

  it.each(['::ffff:0:0/96', '2002::/16', '2001::/32', '64:ff9b::/96'])('are skipped as an alias at %s', async (at) => {
    const naive = base();
    naive.put(at, naive.node('::/96'));
    expect(rangesText(await read(mmdbFile(naive.tree, values, 6)))).toEqual(IPV4);
  });

  it('are skipped in any case in the space of mapped, 6to4, Teredo and NAT64 addresses', async () => {
    const naive = base();
    for (const at of ['::ffff:200:0/104', '2002:100::/24', '2001::fe00:0/104', '64:ff9b::103:0/112']) naive.put(at, FR);
    expect(rangesText(await read(mmdbFile(naive.tree, values, 6)))).toEqual(IPV4);
  });
});

describe('invalid files', () => {
  const good = mmdbFile(threeBitTree([leafOf(0)]), [country('DE')]);
  const metadata = good.indexOf('\xab\xcd\xefMaxMind.com', 0, 'latin1');
  /** 128 levels of nodes whose two records both lead to the next: 2^128 networks in a kilobyte. */
  const endless: Tree = {
    count: 128,
    left: Int32Array.from({ length: 128 }, (_, i) => (i < 127 ? i + 1 : leafOf(0))),
    right: Int32Array.from({ length: 128 }, (_, i) => (i < 127 ? i + 1 : leafOf(0))),
  };
  const loop: Tree = { count: 1, left: Int32Array.of(0), right: Int32Array.of(0) };

  test.each<[string, Buffer, RegExp]>([
    ['empty', Buffer.alloc(0), /x\.mmdb is not a valid MMDB file/],
    ['other bytes', Buffer.from('start,end,country\n'.repeat(100)), /is not a valid MMDB file/],
    ['its beginning only', good.subarray(0, 40), /is not a valid MMDB file/],
    ['its end only', good.subarray(metadata), /is not a valid MMDB file/],
    ['a tree that is cut off', mmdbFile(endless, [country('DE')], 6).subarray(740), /its tree is cut off/],
    ['a tree that leads back to itself', mmdbFile(loop, [], 4), /deeper than an address is long/],
    ['a tree that leads back to itself, IPv6', mmdbFile(loop, [], 6), /is not a valid MMDB file/],
    ['no networks', mmdbFile(threeBitTree([]), []), /its files hold no range/],
  ])('%s', async (_name, file, message) => {
    const error = await read(file).then(
      () => undefined,
      (thrown: unknown) => thrown,
    );
    expect(error).toBeInstanceOf(AtlasError);
    expect((error as AtlasError).code).toBe('E_BAD_INPUT');
    expect((error as AtlasError).message).toMatch(message);
  });

  it('a tree that describes too many networks', () => {
    const dir = temporaryDir();
    writeFileSync(join(dir, 'x.mmdb'), mmdbFile(endless, [country('DE')], 6));
    expect(() => readMmdb(join(dir, 'x.mmdb'), 'x.mmdb', DEFAULT_COUNTRY_PATHS, () => {}, 100_000)).toThrow(
      /x\.mmdb is not a valid MMDB file: its tree describes too many networks/,
    );
  });

  it.each([
    ['its record', false],
    ['its metadata', true],
  ])('%s that repeats itself by pointers', async (_what, inMetadata) => {
    const whole = mmdbFile(threeBitTree([leafOf(0)]), [country('DE')]);
    const metadata = whole.lastIndexOf('\xab\xcd\xefMaxMind.com', undefined, 'latin1') + 14;
    // The section begins 16 bytes after the tree of seven nodes.
    const bomb = pointerBomb();
    const file = inMetadata
      ? [whole.subarray(0, metadata), bomb]
      : [whole.subarray(0, 7 * 6 + 16), bomb, whole.subarray(metadata - 14)];
    await expect(read(Buffer.concat(file))).rejects.toThrow(/more than 5000 values/);
  });

  it('a source without an MMDB file', async () => {
    await expect(ingestContents('mmdb', { 'x.csv': 'x' })).rejects.toThrow(
      /the format reads \*\.mmdb; the source has x\.csv/,
    );
  });
});

describe('from CSV to MMDB and back', () => {
  let dir: string;
  beforeAll(() => {
    dir = temporaryDir();
  });

  it('gives the same release, byte for byte', async () => {
    const rows = [
      '1.0.0.0,1.0.0.255,AU',
      '1.0.1.0,1.0.3.255,CN',
      '9.9.8.9,9.9.8.77,DE',
      '80.0.0.0,93.255.255.255,FR',
      '2001:200::,2001:200:ffff:ffff:ffff:ffff:ffff:ffff,JP',
      '2a00::,2a00:0:ffff:ffff:ffff:ffff:ffff:ffff,DE',
      '2a00:0:0:1::7,2a00:0:0:1::9,XK',
    ];
    writeFileSync(join(dir, 'a.csv'), `${rows.join('\n')}\n`);
    const build = async (name: string, file: string, format: string): Promise<Buffer> => {
      const sources = join(dir, `${name}.json`);
      const source = { id: name, license: 'CC-BY-4.0', attribution: 'Some\nOne', fetch: { file }, format };
      writeFileSync(sources, JSON.stringify({ sources: [source] }));
      const data = join(dir, name);
      const built = await ipatlas(['build', '--sources', sources, '--data', data, '--as-of', '2026-01-01']);
      expect(built.code, built.stderr).toBe(0);
      return readFileSync(join(data, 'current', 'ranges.ipr'));
    };
    const first = await build('first', 'a.csv', 'ip-location-db');
    const exported = await ipatlas(['export', 'mmdb', '-o', join(dir, 'b.mmdb'), '--data', join(dir, 'first')]);
    expect(exported.code, exported.stderr).toBe(0);
    expect(readFileSync(join(dir, 'b.mmdb'), 'latin1')).toMatch(/ipatlas release [\w-]+\. Data: Some One/);
    const second = await build('second', 'b.mmdb', 'mmdb');
    expect(second.equals(first)).toBe(true);
  });
});
