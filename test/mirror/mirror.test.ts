import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { openDatabase } from '../../src/database/database.js';
import { verifyRelease } from '../../src/database/verify.js';
import { AtlasError } from '../../src/errors.js';
import { verifyMirror } from '../../src/mirror/verifier.js';
import { openRangeFile } from '../../src/rangefile/reader.js';
import { sqlite } from '../../src/sqlite.js';
import { smallRelease } from '../support/release.js';
import { changeMirror } from '../support/sources.js';

const dataDir = await smallRelease();
const path = join(dataDir, 'current', 'ranges.sqlite');

describe('the mirror', () => {
  it('finds an address with one index lookup', () => {
    const database = new (sqlite())(path, { readonly: true });
    for (const table of ['ipv4_range', 'ipv6_range']) {
      const plan = database
        .prepare(`EXPLAIN QUERY PLAN SELECT * FROM ${table} WHERE first <= ? ORDER BY first DESC LIMIT 1`)
        .all(0);
      expect(plan).toEqual([
        expect.objectContaining({ detail: expect.stringMatching(/^SEARCH .* USING .*PRIMARY KEY \(.*<\?\)$/) }),
      ]);
    }
    database.close();
  });

  it('has a readable view', () => {
    const database = new (sqlite())(path, { readonly: true });
    const rows = database
      .prepare(
        "SELECT * FROM readable WHERE first_address IN ('193.0.0.0', '2a00:0001:0000:0000:0000:0000:0000:0000', '10.0.0.0')",
      )
      .all();
    expect(rows).toMatchObject([
      {
        family: 4,
        first_address: '10.0.0.0',
        last_address: '10.255.255.255',
        country_code: null,
        country: null,
        is_eu: 0,
        reason: 'private',
      },
      {
        family: 4,
        first_address: '193.0.0.0',
        last_address: '193.0.7.255',
        country_code: 'NL',
        country: 'Netherlands',
        is_eu: 1,
        reason: null,
      },
      {
        family: 6,
        first_address: '2a00:0001:0000:0000:0000:0000:0000:0000',
        last_address: '2a00:0001:0000:0001:0000:0000:0000:0041',
        country_code: 'FR',
      },
    ]);
    database.close();
  });

  it.each([1, 2, 3, 5, 1000])('is verified %d rows at a time', (rows) => {
    verifyMirror(path, openRangeFile(join(dataDir, 'current', 'ranges.ipr')), undefined, rows);
  });

  // Each row is a change that leaves a valid SQLite file that differs from the range file.
  it.each([
    [
      'a range less',
      'DELETE FROM ipv4_range WHERE first = 134217728',
      /IPv4 range \d+ is \d+-\d+\|\w*\|\w*, not 134217728-\d+\|/,
    ],
    [
      'a range more',
      "INSERT INTO ipv6_range VALUES (x'ffffffffffffffffffffffffffffffff', x'ff', 'DE', NULL, 0)",
      /\d+ IPv6 ranges, not \d+/,
    ],
    [
      'another country',
      "UPDATE ipv4_range SET country_code = 'FR' WHERE country_code = 'NL'",
      /IPv4 range \d+ is (\d+-\d+)\|FR\|, not \1\|NL\|/,
    ],
    [
      'a comma more, as between rows',
      "UPDATE ipv4_range SET reason = reason || ',' WHERE last = 4294967295",
      /IPv4 range \d+ is (\d+-4294967295\|\|\w+),, not \1/,
    ],
    ['another name', "UPDATE country SET name = 'Holland' WHERE code = 'NL'", /country NL/],
    ['another membership', "UPDATE country SET is_eu = 0 WHERE code = 'NL'", /country NL/],
    ['another version', 'PRAGMA user_version = 9', /mirror version 9, but this ipatlas reads version 1/],
  ])('verify notices %s', async (_, change, message) => {
    const own = await smallRelease();
    const dir = openDatabase(own).dir;
    changeMirror(dir, change);
    expect(() => verifyRelease(dir)).toThrow(message);
    const file = openRangeFile(join(dir, 'ranges.ipr'));
    for (const rows of [1, 2, 3, 5]) {
      expect(() => verifyMirror(join(dir, 'ranges.sqlite'), file, undefined, rows)).toThrow(AtlasError);
    }
  });
});
