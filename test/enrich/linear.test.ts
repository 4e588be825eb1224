/**
 * No input is read again and again: the bytes that splitters look at, and those that the kernel reads, are at most three times the
 * input, for every format and hostile input, also if records are skipped because they are too long.
 */
import { afterEach, describe, expect, it, vi } from 'vitest';
import { ChunkRunner } from '../../src/enrich/chunk-runner.js';
import { LineEnricher } from '../../src/enrich/enricher.js';
import { Kernel } from '../../src/enrich/kernel/kernel.js';
import { parseEnrichOptions, type RequestedOptions } from '../../src/enrich/options.js';
import { releaseForTests } from '../support/open-release.js';

const release = releaseForTests();
const BYTES = 50_000;
const SIZES = { chunkBytes: 4096, maxLineBytes: 20_000 };

afterEach(() => vi.restoreAllMocks());

/** Counts what is looked at from now on: by the searches of splitters, in the kernel and in buffers, and by its runs. */
function countLooks(): { bytes: number } {
  const looks = { bytes: 0 };
  const { findRecords, findLine, objectEnd, splitItems, countNewlines } = Kernel.prototype;
  vi.spyOn(Kernel.prototype, 'findRecords').mockImplementation(function (this: Kernel, place, from, to, state) {
    looks.bytes += to - from;
    return findRecords.call(this, place, from, to, state);
  });
  vi.spyOn(Kernel.prototype, 'findLine').mockImplementation(function (this: Kernel, place, from, to) {
    const line = findLine.call(this, place, from, to);
    looks.bytes += (line.end === 0 ? to : line.end) - from;
    return line;
  });
  vi.spyOn(Kernel.prototype, 'objectEnd').mockImplementation(function (this: Kernel, which, place, from, to) {
    const end = objectEnd.call(this, which, place, from, to);
    looks.bytes += (which === 'last' || end === 0 ? to : end) - from;
    return end;
  });
  vi.spyOn(Kernel.prototype, 'splitItems').mockImplementation(function (this: Kernel, place, from, to) {
    const found = splitItems.call(this, place, from, to);
    looks.bytes += (found.closing < 0 ? to : found.closing + 1) - from;
    return found;
  });
  vi.spyOn(Kernel.prototype, 'countNewlines').mockImplementation(function (this: Kernel, place, length) {
    looks.bytes += length;
    return countNewlines.call(this, place, length);
  });
  const { run } = ChunkRunner.prototype;
  vi.spyOn(ChunkRunner.prototype, 'run').mockImplementation(function (this: ChunkRunner, chunk) {
    const before = chunk.slot.processed;
    const isDone = run.call(this, chunk);
    looks.bytes += chunk.slot.processed - before;
    return isDone;
  });
  const { indexOf, lastIndexOf } = Buffer.prototype;
  vi.spyOn(Buffer.prototype, 'indexOf').mockImplementation(function (this: Buffer, value, from) {
    const at = indexOf.call(this, value, from as number);
    looks.bytes += (at < 0 ? this.length : at + 1) - ((from as number | undefined) ?? 0);
    return at;
  });
  vi.spyOn(Buffer.prototype, 'lastIndexOf').mockImplementation(function (this: Buffer, value) {
    const at = lastIndexOf.call(this, value);
    looks.bytes += this.length - Math.max(at, 0);
    return at;
  });
  return looks;
}

const FORMATS: [RequestedOptions, head: string][] = [
  [{ format: 'jsonl' }, ''],
  [{ format: 'json-seq' }, ''],
  [{ format: 'csv' }, 'ip,b\n'],
  [{ format: 'csv', header: false, field: '1' }, '8.8.8.8,x\n'],
  [{ format: 'tsv' }, 'ip\tb\n'],
  [{ format: 'w3c' }, '#Fields: c-ip b\n'],
  [{ format: 'zeek' }, '#fields\tid.orig_h\tb\n'],
  [{ log: 'squid' }, ''],
  [{ format: 'logfmt', field: 'a' }, ''],
  [{ format: 'list' }, ''],
  [{ format: 'combined' }, ''],
  [{ format: 'text' }, ''],
];
/** What is repeated. */
const PIECES = [
  '"a"b,"\n',
  '"a,1\n',
  'x,"\ny,"\n',
  '"',
  '""',
  '{"ip":"\\\\"',
  '{\n',
  '{"a":[',
  '}\n',
  '[',
  '.',
  ':',
  'a="',
  '\\',
  '\n',
  '#\n',
  '#Fields: c-ip b\n8.8.8.8 x\n',
  '#fields\tid.orig_h\tb\n8.8.8.8\tx\n',
  '8.8.8.8\tx\n8.8.8.8 x\n',
  '8.8.8.8 "\n',
  '\x1e',
];

describe.each(FORMATS)('%j', (requested, head) => {
  it.each(PIECES)('looks at each byte three times at most: %j', (piece) => {
    const options = parseEnrichOptions({ ...requested, add: ['country_code'] }, (name) => name);
    const input = Buffer.from(head + piece.repeat(Math.ceil(BYTES / piece.length)));
    let output = 0;
    const count = (bytes: Uint8Array): void => {
      output += bytes.length;
    };
    const enricher = new LineEnricher(release.file, options, count, undefined, SIZES);
    const looks = countLooks();
    enricher.write(input);
    enricher.end();
    expect(output).toBeGreaterThanOrEqual(input.length);
    expect(looks.bytes).toBeLessThanOrEqual(3 * input.length);
  });
});

it('decodes a header with line breaks in quotes once', () => {
  const options = parseEnrichOptions({ format: 'csv', add: ['country_code'] }, (name) => name);
  const enricher = new LineEnricher(release.file, options, () => {}, undefined, SIZES);
  const text = `ip,"${'\n'.repeat(10_000)}"\n8.8.8.8,x\n`;
  let decoded = 0;
  const decode = Buffer.prototype.toString;
  vi.spyOn(Buffer.prototype, 'toString').mockImplementation(function (
    this: Buffer,
    ...[encoding, from = 0, to = this.length]: [encoding?: BufferEncoding, from?: number, to?: number]
  ) {
    decoded += to - from;
    return decode.call(this, encoding, from, to);
  } as typeof decode);
  enricher.write(Buffer.from(text));
  enricher.end();
  expect(decoded).toBeLessThanOrEqual(5 * text.length);
});

it.each([
  ['r[].i', `{"r":[${'{"i":[{}]},'.repeat(10_000)}{"i":[]}]}`],
  ['', `[${'{"a":"x"},'.repeat(10_000)}"${'\\\\'.repeat(30_000)}"]`],
  ['', `[${'['.repeat(900)}${']'.repeat(900)},{}]`],
])('looks at a document with items at %j a few times', (items, text) => {
  const requested = { format: 'json', items: items === '' ? undefined : items, add: ['country_code'] } as const;
  const enricher = new LineEnricher(
    release.file,
    parseEnrichOptions(requested, (name) => name),
    () => {},
    undefined,
    SIZES,
  );
  const looks = countLooks();
  enricher.write(Buffer.from(text));
  enricher.end();
  // Newlines are counted, for the positions of errors.
  expect(looks.bytes).toBeLessThanOrEqual(4 * text.length);
});
