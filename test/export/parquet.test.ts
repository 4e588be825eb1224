/** The Parquet file, read by hyparquet; test/soak/warehouses.test.ts joins it in DuckDB. */
import { parquetMetadata, parquetReadObjects } from 'hyparquet';
import { beforeAll, describe, expect, it } from 'vitest';
import type { ExportRequest } from '../../src/export/formats.js';
import { parquet } from '../../src/export/parquet.js';
import { parseCidr } from '../../src/range/cidr.js';
import { largeWorld, type World, worldOf } from './support.js';

const EMBEDDED = new Set(['6to4', 'nat64'] as const);
const CODES: Record<string, string> = { DE: 'EU', FR: 'EU', US: 'NA', JP: 'AS' };

/** Returns an address as 32 hex digits, IPv4-mapped. */
function digitsOf(text: string): string {
  const words = new Uint32Array(4);
  const { family } = parseCidr(text, words, new Uint32Array(4))!;
  if (family === 4) words.set([0, 0, 0xffff, words[0]!]);
  return Buffer.from(words.buffer).swap32().toString('hex');
}

describe('the format parquet', () => {
  let world: World;
  beforeAll(() => {
    world = worldOf(largeWorld());
  });

  const fileOf = async (changes: Partial<ExportRequest> = {}, groupRows?: number): Promise<ArrayBuffer> => {
    const request = {
      file: world.file,
      families: [4, 6],
      countries: undefined,
      embedded: new Set<never>(),
      ...changes,
    };
    return Uint8Array.from(await parquet(request as ExportRequest, 'A title', groupRows)).buffer;
  };

  it.each<[string, Partial<ExportRequest>]>([
    ['all', {}],
    ['some countries of one family', { countries: new Set(['DE', 'JP']), families: [6] }],
    ['with embedded addresses', { embedded: EMBEDDED }],
    ['nothing', { countries: new Set() }],
  ])('has the rows of the table of ranges: %s', async (_, changes) => {
    const rows = await parquetReadObjects({ file: await fileOf(changes, 500) });
    const lines = world
      .exported('csv', { embedded: new Set(), ...changes })
      .toString()
      .trimEnd()
      .split('\n')
      .slice(1);
    const expected = lines.map((line) => {
      const [start, end, country_code, country, is_eu] = line.split(',') as [string, string, string, string, string];
      const family = start.includes(':') ? 6 : 4;
      return { start: digitsOf(start), end: digitsOf(end), family, country_code, country, is_eu: is_eu === 'true' };
    });
    expect(rows.map(({ continent, ...row }) => row)).toEqual(expected);
    for (const { country_code, continent } of rows) {
      if (country_code in CODES) expect(continent).toBe(CODES[country_code]);
    }
    const starts = rows.map(({ start }) => start as string);
    expect(starts).toEqual([...starts].sort());
  });

  it('has groups with whole bounds, so that readers can skip them, and says what it is', async () => {
    const metadata = parquetMetadata(await fileOf({}, 500));
    const bounds = metadata.row_groups.map(({ columns }) => columns[0]!.meta_data!.statistics!);
    expect(bounds.length).toBeGreaterThan(3);
    for (const { min_value, max_value } of bounds) {
      expect([min_value, max_value].map((bound) => String(bound).length)).toEqual([32, 32]);
    }
    expect(metadata.key_value_metadata).toContainEqual({ key: 'title', value: 'A title' });
    expect(metadata.created_by).toBe('ipatlas');
  });

  it('has the same bytes each time', async () => {
    expect(Buffer.from(await fileOf()).equals(Buffer.from(await fileOf()))).toBe(true);
  });
});
