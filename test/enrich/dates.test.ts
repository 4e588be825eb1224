/** Compares the kernel's dates with those of the library. */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { beforeAll, describe, expect, it } from 'vitest';
import { openDatabase } from '../../src/database/database.js';
import { RANGE_FILE } from '../../src/database/release.js';
import { Kernel, Slot } from '../../src/enrich/kernel/kernel.js';
import { layOut } from '../../src/enrich/kernel/layout.js';
import { kernelModule } from '../../src/enrich/kernel/module.js';
import { parseFields } from '../../src/enrich/options.js';
import { openRangeFile } from '../../src/rangefile/reader.js';
import { parseAdd } from '../support/add.js';
import { dayOfText } from '../support/date-twin.js';
import { smallRelease } from '../support/release.js';

const RUNS = Number(process.env.FUZZ_RUNS ?? 80) * 20;

let dayOf: (text: string) => number | undefined;
beforeAll(async () => {
  const dataDir = await smallRelease();
  const file = openRangeFile(join(openDatabase(dataDir).dir, RANGE_FILE));
  rmSync(dataDir, { recursive: true });
  const options = { fields: parseFields([]), add: parseAdd(undefined), onInvalid: 'keep' as const };
  const sizes = { threadCount: 1, slotCount: 1, chunkBytes: 1024, maxLineBytes: 1024 };
  const layout = layOut({ file, options, ...sizes, keepsRejects: false });
  const kernel = new Kernel(layout, kernelModule(layout));
  const slot = new Slot(layout, layout.slots[0]!);
  dayOf = (text) => {
    slot.input.fill(0x31); // what follows the text must not matter: here, more digits
    return kernel.dayOf(slot.place, Buffer.from(text));
  };
});

/** Returns the day as a date, or `none`. */
function dateOf(day: number | undefined): string {
  if (day === undefined) return 'none';
  const date = new Date(86_400_000 * day);
  return date.toISOString().replace(/T.*/, '');
}

describe('the day of a date', () => {
  // Of all kinds: the twin, below.
  it.each([
    // RFC 3339, and what is near it.
    ['2026-01-01T00:00:00Z', '2026-01-01'],
    ['2026-01-01T00:30:00+01:00', '2025-12-31'],
    ['2026-01-01T10:00:00', '2026-01-01'],
    ['2016-12-31T23:59:60Z', '2016-12-31'],
    ['2023-02-29T00:00:00Z', 'none'],
    ['0000-01-01T00:00:00+00:01', '-000001-12-31'],
    ['9999-12-31T23:59:59-00:01', '+010000-01-01'],
    ['2026-01-01T24:00:00Z', 'none'],
    ['2026-01-01T00:00:00+24:00', 'none'],
    // Access logs.
    ['01/Jan/2026:00:00:00 +0000', '2026-01-01'],
    ['01/Jan/2026:00:30:00 +0100', '2025-12-31'],
    // Numbers.
    ['1767225600', '2026-01-01'],
    ['1767225600000000000', '2026-01-01'],
    ['-1', '1969-12-31'],
    ['-86401', '1969-12-30'],
    ['9999999999999999999', '2286-11-20'],
    ['12345678901234567890', 'none'],
    [`1.${'0'.repeat(70)}`, 'none'],
  ])('%s: %s', (text, expected) => {
    expect([dateOf(dayOf(text)), dateOf(dayOfText(text))]).toEqual([expected, expected]);
  });

  const two = fc
    .oneof(fc.integer({ min: 0, max: 61 }), fc.integer({ min: 0, max: 99 }))
    .map((n) => `${n}`.padStart(2, '0'));
  const sign = fc.constantFrom('+', '-');
  const month = fc.constantFrom(
    'Jan',
    'Feb',
    'Mar',
    'Apr',
    'May',
    'Jun',
    'Jul',
    'Aug',
    'Sep',
    'Oct',
    'Nov',
    'Dec',
    'Mai',
  );
  const year = fc
    .oneof(fc.integer({ min: 1999, max: 2030 }), fc.integer({ min: 0, max: 9999 }))
    .map((n) => `${n}`.padStart(4, '0'));
  const day = fc.integer({ min: 0, max: 32 }).map((n) => `${n}`.padStart(2, '0'));
  const zone = fc.oneof(
    fc.constantFrom('', 'Z', 'z', ' Z', ' '),
    fc.tuple(fc.constantFrom('', ' '), sign, two, fc.constantFrom(':', ''), two).map((parts) => parts.join('')),
  );
  const fraction = fc.oneof(fc.constant(''), fc.stringMatching(/^\.\d{0,9}$/));
  const time = fc.tuple(two, two, two).map((parts) => parts.join(':'));
  const iso = fc
    .tuple(
      year,
      fc.constant('-'),
      day,
      fc.constant('-'),
      day,
      fc.constantFrom('T', ' ', 't', 'x'),
      time,
      fraction,
      zone,
    )
    .map((parts) => parts.join(''));
  const log = fc
    .tuple(day, month, year, time, sign, two, two)
    .map(([d, m, y, t, s, a, b]) => `${d}/${m}/${y}:${t} ${s}${a}${b}`);
  const number = fc.oneof(
    fc.stringMatching(/^-?\d{1,20}(\.\d{0,3})?$/),
    fc.bigInt({ min: -(10n ** 19n), max: 10n ** 19n }).map(String),
  );
  const text = fc.oneof(
    iso,
    iso.map((each) => each.slice(0, 10)),
    log,
    number,
    fc.string({ maxLength: 40 }),
  );
  /** A date with one character replaced, put in or left out. */
  const nearly = fc
    .tuple(text, fc.nat(30), fc.constantFrom('', '0', '9', ':', '-', '+', ' ', '/', 'Z', '.'), fc.boolean())
    .map(([date, at, character, isReplaced]) => date.slice(0, at) + character + date.slice(at + Number(isReplaced)));

  it('is that of its naive twin', () => {
    let dates = 0;
    fc.assert(
      fc.property(fc.oneof(text, nearly), (each) => {
        const expected = dayOfText(each);
        if (expected !== undefined) dates++;
        expect([each, dayOf(each)]).toEqual([each, expected]);
      }),
      { numRuns: RUNS },
    );
    expect(dates).toBeGreaterThan(RUNS / 10);
  });
});
