/** Batches of the page, without a browser: columns against a plain model, encodings, canceling and going on. */
import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseAddress } from '../../src/address/parse.js';
import type { Country } from '../../src/database/results.js';
import { type Answers, Batch, serverAnswers } from '../../src/page/batch.js';
import { Entries, type Order, type SortColumn } from '../../src/page/entries.js';
import { readText } from '../../src/page/input.js';
import type { Row } from '../../src/page/results.js';

const US: Country = { country: 'United States', country_code: 'US', is_eu: false };
const DE: Country = { country: 'Germany', country_code: 'DE', is_eu: true };
const NONE: Country = { country: null, country_code: null, is_eu: false };

/** One of four outcomes for each text, by its last digit. */
function countryOf(text: string): Country | undefined {
  return [US, DE, NONE, undefined][Number.parseInt(text.at(-1)!, 16) % 4];
}

/** No AS number for every fifth text. */
function asnOf(text: string): number | undefined {
  return text.length % 5 === 0 ? undefined : (text.length * 7) % 11;
}

const ALWAYS = new AbortController().signal;
const answers: Answers = {
  countries: async (addresses) => addresses.map(countryOf),
  size: 7,
  reason: () => 'private',
};

async function read(source: Blob): Promise<string> {
  const pieces: Uint8Array[] = [];
  for await (const piece of readText(source)) pieces.push(piece);
  return new TextDecoder().decode(Buffer.concat(pieces));
}

describe('the entries of a batch', () => {
  const address = fc.oneof(fc.ipV4(), fc.ipV6(), fc.constantFrom('::ffff:8.8.8.8', 'x1', 'ü2', '999.1.1.1'));

  /** The value of a row by which a plain model sorts: a list that compares by its elements. */
  function keyOf({ text, result }: Row, column: SortColumn): (number | string)[] {
    if (column === 'line') return [];
    if (column === 'network') return [asnOf(text) ?? 2 ** 32];
    if (column === 'address') {
      const words = new Uint32Array(4);
      const family = parseAddress(text, words);
      return family === 0 ? [16] : [family, ...(family === 4 ? words.subarray(0, 1) : words)];
    }
    if (result === undefined) return [2];
    if (result.country === null) return [1];
    return column === 'country' ? [0, result.country] : [0, result.is_eu ? 0 : 1];
  }

  function compare(a: (number | string)[], b: (number | string)[]): number {
    const at = a.findIndex((value, index) => value !== b[index]);
    return at < 0 ? 0 : a[at]! < b[at]! ? -1 : 1;
  }

  it('are selected and sorted as a plain list is', () => {
    fc.assert(
      fc.property(
        fc.array(address, { maxLength: 60 }),
        fc.constantFrom('all', 'union', 'none', 'invalid', 'DE', 'FR'),
        fc.constantFrom<SortColumn>('line', 'address', 'country', 'union', 'network'),
        fc.boolean(),
        (texts, filter, column, descending) => {
          const entries = new Entries('en');
          for (const [index, text] of texts.entries()) {
            const isAddress = parseAddress(text, new Uint32Array(4)) !== 0;
            entries.add(index + 1, text, isAddress);
            if (isAddress) entries.setCountry(index, countryOf(text));
          }
          const rows = texts.map((_, index) => entries.row(index));
          expect(rows.map(({ text }) => text)).toEqual(texts);
          const isWanted = ({ result }: Row): boolean => {
            if (filter === 'all') return true;
            if (result === undefined) return filter === 'invalid';
            return filter === 'union' ? result.is_eu : (result.country_code ?? 'none') === filter;
          };
          const expected = rows
            .filter(isWanted)
            .sort((a, b) => (descending ? -1 : 1) * compare(keyOf(a, column), keyOf(b, column)) || a.line - b.line);
          if (column === 'line' && descending) expected.reverse();
          const order: Order = { column, descending };
          expect([...entries.select({ filter, order }, texts.length, asnOf)].map((at) => entries.row(at))).toEqual(
            expected,
          );
          const counted = entries.counts().reduce((sum, { count }) => sum + count, 0);
          expect(counted + entries.invalid).toBe(texts.length);
        },
      ),
    );
  });
});

describe('a batch', () => {
  it('counts what it finds, with the reason for no country', async () => {
    const batch = new Batch(new Blob(['name and ip\na 8.8.8.0\nb 80.0.0.1 and 80.0.0.2\n\nword\n']), 10);
    await batch.read(ALWAYS, () => {});
    await batch.run(answers, ALWAYS, () => {});
    expect(batch.progress()).toMatchObject({
      ...{ lines: 5, total: 4, done: 4, isRead: true, linesWithoutAddress: 1, isFull: false },
      ...{ invalid: 1, located: 2, inUnion: 1 },
    });
    expect(batch.row(2, answers)).toMatchObject({ line: 3, text: '80.0.0.2', reason: 'private' });
    expect(batch.row(3, answers)).toEqual({ line: 5, text: 'word', result: undefined });
  });

  it('goes on from where it was canceled or failed, and asks for nothing twice', async () => {
    const asked: string[] = [];
    const controller = new AbortController();
    const server = serverAnswers(3, async (addresses) => {
      if (asked.length === 3) controller.abort();
      if (asked.length === 9 && fails) throw new Error('unreachable');
      asked.push(...addresses);
      return Object.fromEntries(addresses.map((ip) => [ip, { ip, ...DE }]));
    });
    let fails = true;
    const list = Array.from({ length: 14 }, (_, index) => `80.0.0.${index}`);
    const batch = new Batch(new Blob([list.join('\n')]), 100);
    await batch.read(ALWAYS, () => {});
    await expect(batch.run(server, controller.signal, () => {})).rejects.toThrow('abort');
    expect(batch.done).toBe(6);
    await expect(batch.run(server, ALWAYS, () => {})).rejects.toThrow('unreachable');
    fails = false;
    await batch.run(server, ALWAYS, () => {});
    expect(asked).toEqual(list);
    expect(batch.entries.counts()).toEqual([{ code: 'DE', name: 'Germany', isEu: true, count: 14 }]);
  });
});

describe('the text of a file', () => {
  const text = `${'8.8.8.8 ü € 😀\n'.repeat(2_000)}end`;
  const utf16 = Buffer.from(text, 'utf16le');
  const ascii = '193.0.0.1\r\n'.repeat(900);

  it.each<[string, Buffer, string]>([
    ['UTF-8', Buffer.from(text), text],
    ['UTF-8 with a byte order mark', Buffer.from(`\ufeff${text}`), text],
    ['UTF-16, little-endian', Buffer.concat([Buffer.from([0xff, 0xfe]), utf16]), text],
    ['UTF-16, big-endian', Buffer.concat([Buffer.from([0xfe, 0xff]), Buffer.from(utf16).swap16()]), text],
    ['UTF-16 without a mark', Buffer.from(ascii, 'utf16le'), ascii],
    ['UTF-16 without a mark, big-endian', Buffer.from(ascii, 'utf16le').swap16(), ascii],
    ['gzip', gzipSync(text), text],
    ['nothing', Buffer.alloc(0), ''],
  ])('is read: %s', async (_, bytes, expected) => {
    expect(await read(new Blob([new Uint8Array(bytes)]))).toBe(expected);
  });

  it.each<[string, Buffer, RegExp]>([
    ['a program', Buffer.from([0x7f, 0x45, 0x4c, 0x46, 0, 1, 2, 3, 0xff]), /not a text file/],
    ['a null in the middle', Buffer.from(`${'a'.repeat(200_000)}\0`), /not a text file/],
    ['damaged gzip', gzipSync(text).fill(0, 60), /gzip file is damaged/],
  ])('is refused: %s', async (_, bytes, message) => {
    await expect(read(new Blob([new Uint8Array(bytes)]))).rejects.toThrow(message);
  });
});
