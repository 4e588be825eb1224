import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { CsvFile, type Dialect } from '../../pipeline/source-formats/csv-file.js';
import { parseDecimal } from '../../pipeline/source-formats/decimal.js';
import type { RangeNotation } from '../../pipeline/source-formats/formats.js';
import type { IngestedSource } from '../../pipeline/stage.js';
import type { BoundedRanges } from '../../src/range/columns.js';
import { matchesPattern } from '../../src/wildcards.js';
import { ingestContents, withFiles } from './ingest-helper.js';

/** A range as BigInt numbers, without the code under test. */
interface PlainRange {
  family: 4 | 6;
  first: bigint;
  last: bigint;
  code: string;
}

const BITS = { 4: 32n, 6: 128n } as const;
const MAPPED = 0xffff_0000_0000n;

const families = fc.constantFrom<4 | 6>(4, 6);
const codes = fc.constantFrom('', '-', '??', 'AU', 'CN', 'EU', 'NLD');

/** Addresses of every size, including those at the edges of words and of the mapped block. */
function addresses(family: 4 | 6): fc.Arbitrary<bigint> {
  const max = (1n << BITS[family]) - 1n;
  const edges = [
    0n,
    1n,
    max,
    1n << 31n,
    (1n << 32n) - 1n,
    1n << 32n,
    1n << 64n,
    MAPPED - 1n,
    MAPPED,
    MAPPED + (1n << 32n),
  ];
  return fc.oneof(
    fc.bigInt({ min: 0n, max }),
    fc.constantFrom(...edges.filter((edge) => edge <= max)),
    fc.bigInt({ min: 0n, max: (1n << 33n) - 1n }).map((low) => (family === 6 ? MAPPED + low : low & max)),
  );
}

function inOrder(a: bigint, b: bigint): { first: bigint; last: bigint } {
  return a <= b ? { first: a, last: b } : { first: b, last: a };
}

const ranges: fc.Arbitrary<PlainRange> = families.chain((family) =>
  fc.tuple(addresses(family), addresses(family), codes).map(([a, b, code]) => ({
    family,
    ...inOrder(a, b),
    code,
  })),
);

const blocks: fc.Arbitrary<PlainRange & { prefix: number }> = families.chain((family) =>
  fc.tuple(addresses(family), fc.integer({ min: 0, max: Number(BITS[family]) }), codes).map(([a, prefix, code]) => {
    const hosts = (1n << (BITS[family] - BigInt(prefix))) - 1n;
    const first = a - (a & hosts);
    return { family, first, last: first + hosts, code, prefix };
  }),
);

function addressText(family: 4 | 6, address: bigint): string {
  if (family === 4) return [24n, 16n, 8n, 0n].map((shift) => (address >> shift) & 255n).join('.');
  return (address.toString(16).padStart(32, '0').match(/.{4}/g) ?? []).join(':');
}

/** Returns the family of a range: one inside the IPv4-mapped block is IPv4. */
function placed(range: PlainRange): PlainRange {
  const { family, first, last, code } = range;
  if (family === 4 || first < MAPPED || last > MAPPED + 0xffff_ffffn) return { family, first, last, code };
  return { family: 4, first: first - MAPPED, last: last - MAPPED, code };
}

function plainRanges({ v4, v6, codes }: IngestedSource): PlainRange[] {
  const of = ({ family, count, first, last, value }: BoundedRanges): PlainRange[] => {
    const width = family === 4 ? 1 : 4;
    const number = (words: Uint32Array, i: number): bigint =>
      words.subarray(i * width, (i + 1) * width).reduce((sum, word) => (sum << 32n) | BigInt(word), 0n);
    return Array.from({ length: count }, (_, i) => ({
      family,
      first: number(first, i),
      last: number(last, i),
      code: codes[value[i]!]!,
    }));
  };
  return [...of(v4), ...of(v6)];
}

/** Returns the expected ranges: IPv4 first, each family in the order of the file. */
function expected(written: readonly PlainRange[]): PlainRange[] {
  const all = written.map(placed);
  return [...all.filter(({ family }) => family === 4), ...all.filter(({ family }) => family === 6)];
}

async function readBack(notation: RangeNotation, rows: readonly string[], country = 2): Promise<PlainRange[]> {
  const format = { quote: null, ranges: [{ files: ['*'], ...notation }], country };
  const { ingested } = await ingestContents(format, { 'a.csv': rows.map((row) => `${row}\n`).join('') });
  return plainRanges(ingested);
}

describe('random rows read back as they were written', () => {
  const many = <T>(one: fc.Arbitrary<T>): fc.Arbitrary<T[]> => fc.array(one, { minLength: 1, maxLength: 40 });
  const start = ({ family, first }: PlainRange): string => addressText(family, first);
  const end = ({ family, last }: PlainRange): string => addressText(family, last);

  test('text', async () => {
    await fc.assert(
      fc.asyncProperty(many(ranges), async (written) => {
        const rows = written.map((range) => `${start(range)},${end(range)},${range.code}`);
        expect(await readBack({ text: { first: 0, last: 1 } }, rows)).toEqual(expected(written));
      }),
    );
  });

  test('decimal, of one family', async () => {
    await fc.assert(
      fc.asyncProperty(families, many(ranges), async (family, all) => {
        const written = all.filter((range) => range.family === family);
        fc.pre(written.length > 0);
        const rows = written.map(({ first, last, code }) => `${first},${last},${code}`);
        expect(await readBack({ decimal: { first: 0, last: 1, family } }, rows)).toEqual(expected(written));
      }),
    );
  });

  test('decimal, with the family determined by the number', async () => {
    await fc.assert(
      fc.asyncProperty(many(ranges), async (written) => {
        const rows = written.map(({ first, last, code }) => `${first},${last},${code}`);
        const told = written.map((range): PlainRange => ({ ...range, family: range.last < 1n << 32n ? 4 : 6 }));
        expect(await readBack({ decimal: { first: 0, last: 1 } }, rows)).toEqual(expected(told));
      }),
    );
  });

  test('cidr', async () => {
    await fc.assert(
      fc.asyncProperty(many(blocks), async (written) => {
        const rows = written.map((block) => `${start(block)}/${block.prefix},${block.code}`);
        expect(await readBack({ cidr: { network: 0 } }, rows, 1)).toEqual(expected(written));
      }),
    );
  });

  test('count', async () => {
    await fc.assert(
      fc.asyncProperty(many(ranges), async (all) => {
        // The size of all of IPv6 does not fit into 128 bits.
        const written = all.filter(({ first, last }) => last - first < (1n << 128n) - 1n);
        fc.pre(written.length > 0);
        const rows = written.map((range) => `${start(range)},${range.last - range.first + 1n},${range.code}`);
        expect(await readBack({ count: { start: 0, count: 1 } }, rows)).toEqual(expected(written));
      }),
    );
  });

  test('prefix', async () => {
    await fc.assert(
      fc.asyncProperty(many(blocks), async (written) => {
        const rows = written.map((block) => `${start(block)},${block.prefix},${block.code}`);
        expect(await readBack({ prefix: { start: 0, prefix: 1 } }, rows)).toEqual(expected(written));
      }),
    );
  });

  test('in the notation of the RIRs', async () => {
    await fc.assert(
      fc.asyncProperty(many(fc.oneof(ranges, blocks)), async (all) => {
        const written = all.filter((range) => range.family === 4 || 'prefix' in range);
        fc.pre(written.length > 0);
        const rows = written.map((range) => {
          const value = range.family === 4 ? range.last - range.first + 1n : (range as { prefix: number }).prefix;
          return `${start(range)},${value},${range.code}`;
        });
        expect(await readBack({ rir: { start: 0, value: 1 } }, rows)).toEqual(expected(written));
      }),
    );
  });
});

describe('decimal numbers', () => {
  /** Returns the value as BigInt parses it, or undefined. */
  const oracle = (text: string): bigint | undefined =>
    /^[0-9]{1,39}$/.test(text) && BigInt(text) < 1n << 128n ? BigInt(text) : undefined;

  const parsed = (text: string): bigint | undefined => {
    const words = new Uint32Array(4).fill(7);
    return parseDecimal(text, words) ? words.reduce((sum, word) => (sum << 32n) | BigInt(word), 0n) : undefined;
  };

  test('agree with BigInt', () => {
    const near = fc.tuple(fc.integer({ min: 0, max: 130 }), fc.bigInt({ min: -3n, max: 3n }));
    const texts = fc.oneof(
      fc.bigInt({ min: 0n, max: (1n << 130n) - 1n }).map(String),
      near.map(([bits, off]) => String((1n << BigInt(bits)) + off)),
      fc.integer({ min: 1, max: 41 }).map((digits) => '9'.repeat(digits)),
      fc.bigInt({ min: 0n, max: 1n << 90n }).map((value) => String(value).padStart(39, '0')),
      fc.string({ unit: fc.constantFrom(...'0123456789-+. xe٣'), maxLength: 41 }),
    );
    fc.assert(
      fc.property(texts, (text) => {
        expect(parsed(text)).toBe(oracle(text));
      }),
      { numRuns: 2000 },
    );
  });

  test.each(['', '0', '00', '-1', '+1', '1e3', '0x10', ' 1', '1 ', '٣', `${2n ** 128n - 1n}`, `${2n ** 128n}`])(
    '%j',
    (text) => {
      expect(parsed(text)).toBe(oracle(text));
    },
  );
});

describe('rows of a CSV file', () => {
  const dialects: Dialect[] = [
    { delimiter: ',', quote: '"', comment: null },
    { delimiter: 'é', quote: null, comment: '#' },
  ];
  const cell = fc.string({ unit: fc.constantFrom(...'ab" 🇩🇪'), minLength: 1, maxLength: 6 });
  const written = fc.oneof(
    { weight: 3, arbitrary: fc.array(cell, { minLength: 1, maxLength: 4 }) },
    fc.constantFrom('', '# a comment', '\n'),
  );

  test.each(dialects)('have the lines and texts of the file: %j', async (dialect) => {
    const { delimiter, quote } = dialect;
    await fc.assert(
      fc.asyncProperty(
        fc.array(written, { maxLength: 12 }),
        fc.constantFrom('\n', '\r\n'),
        // Bytes before them: none, or as many as are in the first chunk.
        fc.oneof(fc.constant(0), fc.integer({ min: 65_500, max: 65_540 })),
        fc.boolean(),
        async (lines, end, offset, isEnded) => {
          const expected: { cells: string[]; line: number; text: string }[] = [];
          let content = '';
          let line = 0;
          const add = (text: string, cells?: string[], breaks = 0): void => {
            content += text + end;
            line += 1 + breaks;
            if (cells !== undefined) expected.push({ cells, line, text });
          };
          for (let size = 0; size < offset; size += 50) add('b'.repeat(49), ['b'.repeat(49)]);
          for (const each of lines) {
            if (each === '\n') {
              // A row with a line break in it, if the dialect has quotes.
              if (quote !== null) add(`${quote}x\ny${quote}`, ['x\ny'], 1);
            } else if (typeof each === 'string') {
              if (each === '' || dialect.comment !== null) add(each);
            } else if (quote === null) {
              add(each.join(delimiter), each);
            } else {
              const quoted = each.map((text) => (text.includes(quote) ? `"${text.replaceAll('"', '""')}"` : text));
              add(quoted.join(delimiter), each);
            }
          }
          if (!isEnded) content = content.slice(0, content.length - end.length);
          await withFiles({ a: `\ufeff${content}` }, async ([file]) => {
            const csv = new CsvFile(file!.path, 'a', dialect);
            const rows: string[][] = [];
            await csv.read((cells, row, breaks) => {
              expect([row, breaks]).toEqual([rows.push(cells), cells.join('').split('\n').length - 1]);
            });
            const located = await csv.locate(rows.keys());
            expect(rows).toEqual(expected.map(({ cells }) => cells));
            expected.pop();
            expect([...located]).toEqual(expected.map(({ line: at, text }, index) => [index + 1, { line: at, text }]));
          });
        },
      ),
      { numRuns: Math.ceil(Number(process.env.FUZZ_RUNS ?? 160) / 20) },
    );
  });
});

test('patterns with wildcards agree with a matcher that tries every split', () => {
  const fits = (name: string, pattern: string): boolean => {
    if (pattern === '') return name === '';
    if (pattern[0] === '*') return fits(name, pattern.slice(1)) || (name !== '' && fits(name.slice(1), pattern));
    return name !== '' && (pattern[0] === '?' || pattern[0] === name[0]) && fits(name.slice(1), pattern.slice(1));
  };
  const text = (signs: string) => fc.string({ unit: fc.constantFrom(...signs), maxLength: 8 });
  fc.assert(
    fc.property(text('ab.-(['), text('ab.-([*?'), (name, pattern) => {
      // As in a shell, only a dot matches a leading dot.
      const isHidden = name.startsWith('.') && !pattern.startsWith('.');
      expect(matchesPattern(pattern, name)).toBe(!isHidden && fits(name, pattern));
    }),
    { numRuns: 1000 },
  );
});
