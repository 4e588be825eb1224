/**
 * Recognizes what an input is by its first bytes: compressed data, UTF-16, a table in place of JSON lines. Such input would
 * otherwise be copied as invalid lines, or silently damaged.
 *
 * The bytes are inspected only as far as no output can depend on them yet: an incomplete line is not written anyway. So the
 * result is the same for every split of the input, and a slow pipe is not delayed.
 */
import { parseAddress } from '../../address/parse.js';
import { AtlasError } from '../../errors.js';
import type { FilePart } from '../../file-part.js';
import type { Detection } from '../detection.js';
import { pathText } from '../field-path.js';
import { type Detected, isDecided, RECORD, sampleOf } from '../find-fields.js';
import type { InputOptions, KernelInput } from '../options.js';
import type { DetectedLog } from '../recognize-log.js';
import { cellsOf, firstRowEnd } from '../table-text.js';
import { type Compression, decompress } from './decompress.js';
import { type ByteSource, derivedSource } from './source.js';

/** What the user says the input is. */
type ExpectedInput = Pick<InputOptions, 'input' | 'fields'>;

/** How an input is recognized, see ../logs.ts and ../find-fields.ts. */
export interface DetectionPlan {
  /** Whether an input whose first line begins with a brace is JSON lines. That is decided at once, so that no pipe has to wait. */
  takesJson: boolean;
  /** @param isWhole whether the last line of the text is complete */
  recognize(name: string, text: string, isWhole: boolean): DetectedLog | undefined;
  /** Finds what no flag says in an input that is no log by name, see `findFields`; undefined if that is not wanted. */
  find?: ((text: string, isWhole: boolean, name: string) => Detected) | undefined;
  /** Resolves when a pipe has been waited for long enough. */
  patience(): Promise<void>;
  /** The flags for public addresses, if the field of an input has private ones only. */
  publicElsewhere?: string | undefined;
  /** Called for each input that is recognized. */
  onLog(name: string, recognized: Detection): void;
}

const HASH = 0x23;
const OPENING_BRACE = 0x7b;
const RECORD_SEPARATOR = 0x1e;
/** The first bytes of JSON: a brace, a bracket, and the separator of RFC 7464. */
const JSON_STARTS: readonly number[] = [OPENING_BRACE, 0x5b, RECORD_SEPARATOR];

const ANY_BYTE = -1;

/** First bytes of compressed data, as numbers of one byte each. */
const SIGNATURES: { name: string; bytes: readonly number[]; compression?: Compression; command?: string }[] = [
  { name: 'gzip', bytes: [0x1f, 0x8b], compression: 'gzip' }, // RFC 1952 §2.3.1
  { name: 'zstd', bytes: [0x28, 0xb5, 0x2f, 0xfd], compression: 'zstd' }, // RFC 8878 §3.1.1
  { name: 'bzip2', bytes: [...Buffer.from('BZh'), ANY_BYTE, ...Buffer.from('1AY&SY')], command: 'bzip2 -dc' }, // after the level
  { name: 'xz', bytes: [0xfd, ...Buffer.from('7zXZ'), 0x00], command: 'xz -dc' },
  { name: 'zip', bytes: [...Buffer.from('PK'), 3, 4], command: 'unzip -p' },
  { name: 'lz4', bytes: [0x04, 0x22, 0x4d, 0x18], command: 'lz4 -dc' },
];

/** Byte order marks of encodings that are not supported. That of UTF-32 begins with that of UTF-16, so it is first. */
const ENCODINGS: { name: string; bytes: readonly number[] }[] = [
  { name: 'UTF-32', bytes: [0xff, 0xfe, 0, 0] },
  { name: 'UTF-32', bytes: [0, 0, 0xfe, 0xff] },
  { name: 'UTF-16', bytes: [0xff, 0xfe] },
  { name: 'UTF-16', bytes: [0xfe, 0xff] },
];

/** Most bytes that are inspected. A header line is shorter. */
export const MAX_HEAD_BYTES = 65_536;
/** Most bytes of a first line of JSON, which decides alone if it is longer. */
const MAX_FIRST_VALUE_BYTES = 1_048_576;
/** What is read of the records after comments, in bytes. */
const MIN_RECORD_BYTES = 4096;
/** Where a tar archive has its signature (POSIX.1, ustar). Names before it end in zeros. */
const TAR_OFFSET = 257;
const TAR = Buffer.from('ustar');
const NEWLINE = 10;
const BYTE_ORDER_MARK: readonly number[] = [0xef, 0xbb, 0xbf];
/** Returns whether bytes begin with a signature; undefined if they are the beginning of it, but not all. */
function hasSignature(head: Uint8Array, bytes: readonly number[]): boolean | undefined {
  const isEqual = bytes.every((byte, at) => at >= head.length || byte === ANY_BYTE || head[at] === byte);
  return isEqual && head.length < bytes.length ? undefined : isEqual;
}

/** UTF-16 without a byte order mark: the text begins with two ASCII characters, so every other byte is zero. */
function looksLikeUtf16([a, b, c, d]: Uint8Array): boolean {
  if (d === undefined) return false;
  const isLittleEndian = a !== 0 && b === 0 && c !== 0 && d === 0;
  const isBigEndian = a === 0 && b !== 0 && c === 0 && d !== 0;
  return isLittleEndian || isBigEndian;
}

function refuse(name: string, problem: string): AtlasError {
  return new AtlasError('E_BAD_INPUT', `${name} ${problem}`);
}

/** The head of an input, read as far as a decision needs it. */
class Head {
  readonly source: ByteSource;
  bytes: Buffer = Buffer.alloc(0);
  hasEnded = false;

  constructor(source: ByteSource) {
    this.source = source;
  }

  /** A read that has not been waited for. */
  #pending: Promise<Buffer> | undefined;

  async #next(): Promise<Buffer> {
    const chunk = Buffer.allocUnsafe(MAX_HEAD_BYTES);
    return chunk.subarray(0, await this.source.read(chunk));
  }

  /** Most bytes that are inspected. */
  #limit = MAX_HEAD_BYTES;

  /** Reads what decides what the input is while a condition holds, also if that is longer than what else is inspected. */
  async readFirst(condition: (bytes: Buffer) => boolean, patience?: () => Promise<void>): Promise<void> {
    this.#limit = MAX_FIRST_VALUE_BYTES;
    await this.readWhile(condition, patience);
    this.#limit = Math.max(MAX_HEAD_BYTES, this.bytes.length);
  }

  /** Whether nothing follows the text. */
  get isAll(): boolean {
    return this.hasEnded && this.bytes.length <= this.#limit;
  }

  /**
   * Reads on while a condition holds, but not past the end or the limit.
   *
   * @param patience if given, what has come decides when it resolves before more does
   */
  async readWhile(condition: (bytes: Buffer) => boolean, patience?: () => Promise<void>): Promise<void> {
    while (!this.hasEnded && this.bytes.length < this.#limit && condition(this.bytes)) {
      this.#pending ??= this.#next();
      // A regular file does not make anyone wait.
      const isImpatient = patience !== undefined && this.source.size === undefined;
      const chunk = await (isImpatient ? Promise.race([this.#pending, patience()]) : this.#pending);
      if (chunk === undefined) return;
      this.#pending = undefined;
      this.hasEnded = chunk.length === 0;
      this.bytes = Buffer.concat([this.bytes, chunk]);
    }
  }

  /** The text without a byte order mark. The last line may be incomplete. */
  get text(): string {
    return this.bytes.toString('utf8', 0, this.#limit).replace(/^\ufeff/, '');
  }

  lines(count: number): string[] {
    return this.text.split(/\r?\n/, count);
  }

  /** Returns a source of the head and the bytes after it. */
  rewound(): ByteSource {
    return new RewoundSource(this.source, this.bytes, this.#pending);
  }
}

/** A source whose first bytes were read ahead. */
class RewoundSource implements ByteSource {
  readonly #source: ByteSource;
  #head: Uint8Array;
  #pending: Promise<Uint8Array> | undefined;

  /** @param pending bytes after the head that are being read */
  constructor(source: ByteSource, head: Uint8Array, pending: Promise<Uint8Array> | undefined) {
    this.#source = source;
    this.#head = head;
    this.#pending = pending;
    // A failure is for the next reader.
    pending?.catch(() => {});
  }

  get name(): string {
    return this.#source.name;
  }
  get size(): number | undefined {
    return this.#source.size;
  }
  get bytesRead(): number {
    return this.#source.bytesRead;
  }

  async takeLines(unread: number, maxBytes: number): Promise<FilePart | undefined> {
    const isRead = this.#head.length === 0 && this.#pending === undefined;
    return isRead ? this.#source.takeLines?.(unread, maxBytes) : undefined;
  }

  async read(target: Uint8Array): Promise<number> {
    if (this.#head.length === 0 && this.#pending !== undefined) {
      this.#head = await this.#pending;
      this.#pending = undefined;
      if (this.#head.length === 0) return 0;
    }
    if (this.#head.length === 0) return this.#source.read(target);
    const bytes = Math.min(target.length, this.#head.length);
    target.set(this.#head.subarray(0, bytes));
    this.#head = this.#head.subarray(bytes);
    return bytes;
  }

  close(): Promise<void> {
    return this.#source.close();
  }
}

/** Reads enough of an input to recognize compression and encodings. */
async function readSignature(head: Head): Promise<void> {
  await head.readWhile(
    (bytes) =>
      bytes.length === 0 ||
      [...SIGNATURES, ...ENCODINGS].some((signature) => hasSignature(bytes, signature.bytes) === undefined) ||
      (bytes.length < 4 && bytes.includes(0)),
  );
}

function checkEncoding({ source, bytes }: Head): void {
  const encoding =
    ENCODINGS.find((one) => hasSignature(bytes, one.bytes))?.name ?? (looksLikeUtf16(bytes) ? 'UTF-16' : '');
  if (encoding === '') return;
  throw refuse(
    source.name,
    `is encoded in ${encoding}; convert it to UTF-8, as in: iconv -f ${encoding} -t UTF-8 FILE`,
  );
}

/** Lines among which the header of a table is. */
const MOST_TITLES = 5;

/** The delimiters of tables, and the flags for each. */
const DELIMITERS = { ',': 'csv', '\t': 'tsv', ';': "csv --delimiter ';'", '|': "csv --delimiter '|'" };

/** The name of a column. */
const COLUMN_NAME = /^[\p{L}_][\p{L}\p{N}_ .:/#()-]{0,63}$/u;

/** Returns the cells of a line without spaces around them; none if its quotes are those of no table. */
function trimmedCells(line: string, delimiter: string): string[] {
  return cellsOf(line, delimiter).cells.map((cell) => cell.trim());
}

/** Returns whether a line may be the header of a table: its cells are different names. */
function isHeader(line: string, delimiter: string): boolean {
  const cells = trimmedCells(line, delimiter);
  return cells.length > 1 && cells.every((cell) => COLUMN_NAME.test(cell)) && new Set(cells).size === cells.length;
}

/** Refuses an archive of several files. */
async function checkArchive(head: Head): Promise<void> {
  if (!head.bytes.includes(0)) return;
  await head.readWhile((bytes) => bytes.length < TAR_OFFSET + TAR.length);
  if (!head.bytes.subarray(TAR_OFFSET, TAR_OFFSET + TAR.length).equals(TAR)) return;
  throw refuse(head.source.name, 'is a tar archive; extract its files first, as in: tar -xOf FILE | ipatlas …');
}

/** Lines that end in a carriage return alone (classic Mac OS) would all be one line. */
function checkLineEndings({ source, bytes }: Head, kind: KernelInput['kind']): void {
  if (bytes.includes(NEWLINE)) return;
  const text = bytes.toString('latin1');
  // In JSON, a carriage return is white space, so only one between two objects is a line ending.
  const pattern = kind === 'jsonl' ? /\}[ \t]*\r[ \t\r]*\{/ : /[^\r]\r[^\r]/;
  if (!pattern.test(text)) return;
  throw refuse(
    source.name,
    "has lines that end in a carriage return alone; convert them to newlines, as in: tr '\\r' '\\n' < FILE",
  );
}

async function checkFirstLine(head: Head, { input: { kind }, fields }: ExpectedInput): Promise<void> {
  if (kind === 'json') return;
  await head.readWhile((bytes) => !bytes.includes(NEWLINE));
  checkLineEndings(head, kind);
  if (kind !== 'jsonl') return;
  const possible = Object.entries(DELIMITERS).filter(([delimiter]) => isHeader(head.lines(1)[0]!, delimiter));
  if (possible.length === 0) return;
  await head.readWhile((bytes) => bytes.indexOf(NEWLINE, bytes.indexOf(NEWLINE) + 1) < 0);
  const [header = '', row = ''] = head.lines(2);
  const names = fields.map(({ path }) => pathText(path));
  for (const [delimiter, flags] of possible) {
    const [columns, cells] = [trimmedCells(header, delimiter), trimmedCells(row, delimiter)];
    const hasAddress =
      cells.length === columns.length && cells.some((cell) => parseAddress(cell, new Uint32Array(4)) !== 0);
    if (!hasAddress && !columns.some((column) => names.includes(column))) continue;
    throw refuse(
      head.source.name,
      `is a table with a header line, not JSON lines; name its format with --format ${flags}`,
    );
  }
}

/** Recognizes an input. Returns undefined for nothing, and what the input before was if the input is empty. */
async function guessInput(
  head: Head,
  { fields }: ExpectedInput,
  guess: DetectionPlan,
  before: Detection | undefined,
): Promise<Detection | undefined> {
  const isBlank = (byte: number): boolean =>
    (byte <= 0x20 && byte !== RECORD_SEPARATOR) || BYTE_ORDER_MARK.includes(byte);
  await head.readWhile((bytes) => bytes.every(isBlank));
  const first = head.bytes.find((byte) => !isBlank(byte));
  if (first === undefined) return before;
  const isJson = first === OPENING_BRACE && (guess.takesJson || guess.find !== undefined);
  if (isJson && guess.find === undefined) return undefined;
  const startsAsJson = JSON_STARTS.includes(first);
  await head.readFirst((bytes) => !bytes.includes(NEWLINE));
  const [line] = head.lines(1);
  const paths = fields.map(({ path }) => path);
  if (isJson && isDecided(line!, paths)) return undefined;
  await head.readWhile(() => sampleOf(head.text, false).isShort, guess.patience);
  // Comments may be longer than what is inspected.
  if (first === HASH) await head.readFirst(() => !RECORD.test(head.text.slice(0, -MIN_RECORD_BYTES)), guess.patience);
  // The first row of a table, which may come after titles, is part of the sample, however long it is.
  const delimiterOf = (text: string): string | undefined => Object.keys(DELIMITERS).find((one) => isHeader(text, one));
  const header = startsAsJson ? undefined : head.lines(MOST_TITLES).find((one) => delimiterOf(one) !== undefined);
  const rowEnd = (): number => (header === undefined ? 0 : firstRowEnd(head.text, header, delimiterOf(header)!));
  if (rowEnd() < 0) await head.readFirst(() => rowEnd() < 0, guess.patience);
  const { sample, isWhole } = sampleOf(head.text, head.isAll, rowEnd());
  const log = isJson ? undefined : guess.recognize(head.source.name, sample, isWhole);
  if (log !== undefined) return log;
  if (!startsAsJson) checkLineEndings(head, 'text');
  const find = guess.find ?? (() => undefined);
  const { length } = head.bytes;
  const isCut = startsAsJson && length >= MAX_HEAD_BYTES && !/[}\]]\s*$/.test(line!);
  try {
    const found = find(sample, isWhole, head.source.name);
    if (found !== undefined || !isCut) return found ?? undefined;
  } catch (error) {
    if (!isCut) throw error;
  }
  // The first value of a document may be larger than what else is inspected.
  await head.readFirst(() => true, guess.patience);
  return find(head.text, head.isAll, head.source.name) ?? undefined;
}

/** A source, and what it was recognized as. */
interface Opened {
  source: ByteSource;
  log?: Detection | undefined;
}

/** Returns what inputs have in common that go together in a run. */
function kindOf(guessed: Detection | undefined): unknown {
  return guessed !== undefined && 'log' in guessed ? guessed.log : JSON.stringify(guessed);
}

/** Recognizes an input, and decompresses it if necessary. */
async function recognize(
  source: ByteSource,
  expected: ExpectedInput,
  guess: DetectionPlan | undefined,
  before: Detection | undefined,
  isDecompressed = false,
): Promise<Opened> {
  const head = new Head(source);
  await readSignature(head);
  const signature = SIGNATURES.find(({ bytes }) => hasSignature(head.bytes, bytes));
  if (signature !== undefined) {
    const { name, compression, command } = signature;
    if (isDecompressed)
      throw refuse(source.name, `is compressed twice, the second time with ${name}; decompress it once`);
    if (compression === undefined) {
      throw refuse(source.name, `is compressed with ${name}; decompress it first, as in: ${command} FILE | ipatlas …`);
    }
    return recognize(derivedSource(source, decompress(head.rewound(), compression)), expected, guess, before, true);
  }
  checkEncoding(head);
  await checkArchive(head);
  const log = guess && (await guessInput(head, expected, guess, before));
  if (log === undefined) await checkFirstLine(head, expected);
  return { source: head.rewound(), log };
}

/** The inputs of the runs of a command. An input that is another log than those before it waits for a run with its options. */
export class Inputs {
  readonly #sources: Iterator<ByteSource>;
  readonly #expected: ExpectedInput;
  readonly #guess: DetectionPlan | undefined;
  /** The input that is being recognized, or that waits. */
  #pending: ByteSource | undefined;
  #next: Promise<Opened | undefined> | undefined;
  /** What the inputs of the run were recognized as. */
  log: Detection | undefined;
  /** Whether there are inputs for another run. */
  isWaiting = false;

  constructor(sources: Iterable<ByteSource>, expected: ExpectedInput, guess?: DetectionPlan) {
    this.#sources = sources[Symbol.iterator]();
    this.#expected = expected;
    this.#guess = guess;
  }

  /**
   * Opens and recognizes the first input of a run, and sets `log`. Compressed inputs are decompressed, zstd if this version of Node
   * supports it.
   *
   * @throws AtlasError E_BAD_INPUT for other compression, for data that is compressed twice, for UTF-16 and UTF-32, for lines that
   *   end in a carriage return alone, and for a table in place of JSON lines; E_USAGE for what looks like several logs
   */
  async open(): Promise<ByteSource | undefined> {
    this.#next ??= this.#openNext();
    const opened = await this.#next;
    this.log = opened?.log;
    return opened?.source;
  }

  /** Yields the inputs for one run: sources of their text. The caller must close each. Throws as {@link open} does. */
  async *ofRun(): AsyncGenerator<ByteSource> {
    this.isWaiting = false;
    for (;;) {
      this.#next ??= this.#openNext();
      const opened = await this.#next;
      if (opened === undefined) return;
      if (kindOf(opened.log) !== kindOf(this.log)) {
        this.isWaiting = true;
        return;
      }
      this.#next = undefined;
      this.#pending = undefined;
      yield opened.source;
    }
  }

  async #openNext(): Promise<Opened | undefined> {
    const { value, done } = this.#sources.next();
    if (done === true) return undefined;
    this.#pending = value;
    const opened = await recognize(value, this.#expected, this.#guess, this.log);
    if (opened.log !== undefined) this.#guess?.onLog(value.name, opened.log);
    return opened;
  }

  /** Closes the input that no run was given. */
  async close(): Promise<void> {
    await this.#pending?.close();
  }
}
