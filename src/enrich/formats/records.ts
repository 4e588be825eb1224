/** Cuts bytes into CSV records by csv-parse, and keeps each record's own bytes beside its cells. */
import { CsvError, type InfoRecord, Parser } from 'csv-parse';
import { MAX_CSV_RECORD_BYTES } from '../../limits.js';

const NEWLINE = 10;

export interface RecordEvents {
  /** @param record the record's bytes, its line ending included */
  onRecord(cells: string[], record: Uint8Array): void;
  /**
   * A line that no record can be made of. Reading goes on behind it.
   *
   * @param bytes the line, or a piece of one that is very long
   * @param isNew false for the pieces behind the first
   */
  onUnreadable(bytes: Uint8Array, reason: string, isNew: boolean): void;
}

/**
 * csv-parse says where in the stream a record ends; what lies between two ends is a record. (Its own `raw` leaves out a
 * part of `\r\n`.) A quote that is never closed would swallow all that follows, so behind
 * {@link MAX_CSV_RECORD_BYTES}, or at the end of the input, the line on which such a record begins is given up and parsing
 * starts again on the next.
 */
export class RecordReader {
  readonly #separator: string;
  readonly #events: RecordEvents;
  #parser: Parser;
  /** Bytes read of which no record is made yet. */
  #pending: Buffer = Buffer.alloc(0);
  /** Bytes that this parser was given and that records were made of. */
  #taken = 0;
  /** Whether a line that is too long goes on. */
  #isInLongLine = false;

  constructor(separator: string, events: RecordEvents) {
    this.#separator = separator;
    this.#events = events;
    this.#parser = this.#newParser();
  }

  /** Hands on all records that end in this chunk, or throws what an event handler threw. */
  async read(chunk: Uint8Array): Promise<void> {
    this.#pending = this.#pending.length === 0 ? Buffer.from(chunk) : Buffer.concat([this.#pending, chunk]);
    if (this.#isInLongLine) {
      this.#giveUpLine('');
      await this.#parse(this.#pending);
    } else {
      await this.#parse(chunk);
    }
    while (this.#pending.length > MAX_CSV_RECORD_BYTES) {
      this.#giveUpLine(`a record of more than ${MAX_CSV_RECORD_BYTES} bytes begins here; is a quote not closed?`);
      await this.#parse(this.#pending);
    }
  }

  /** Hands on the last record, which may lack its line ending. */
  async end(): Promise<void> {
    while (!(await this.#finish())) {
      this.#giveUpLine('a quote is opened and never closed');
      await this.#parse(this.#pending);
    }
    // A byte order mark and nothing else is no record for csv-parse.
    if (this.#pending.length > 0) this.#events.onRecord([''], this.#pending);
  }

  #newParser(): Parser {
    const parser = new Parser({
      bom: true,
      delimiter: this.#separator,
      record_delimiter: ['\r\n', '\n'],
      relax_column_count: true,
      relax_quotes: true,
      on_record: (cells: string[], { bytes }: InfoRecord) => {
        const length = bytes - this.#taken;
        const record = this.#pending.subarray(0, length);
        this.#pending = this.#pending.subarray(length);
        this.#taken = bytes;
        this.#events.onRecord(cells, record);
        return null;
      },
    });
    // Nothing comes out of it (on_record takes all), but it must flow to end; its errors reach the callbacks below.
    parser.on('error', () => {}).resume();
    return parser;
  }

  #parse(bytes: Uint8Array): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#parser.write(bytes, (error) => (error ? reject(error) : resolve()));
    });
  }

  /** @returns false where a quote is still open */
  #finish(): Promise<boolean> {
    return new Promise((resolve, reject) => {
      this.#parser.once('error', (error) => {
        if (error instanceof CsvError && error.code === 'CSV_QUOTE_NOT_CLOSED') resolve(false);
        else reject(error);
      });
      this.#parser.end(() => resolve(true));
    });
  }

  /** Takes the first line off what is pending and starts a new parser, which has not been given the rest yet. */
  #giveUpLine(reason: string): void {
    const newline = this.#pending.indexOf(NEWLINE);
    const length = newline < 0 ? this.#pending.length : newline + 1;
    const line = this.#pending.subarray(0, length);
    this.#pending = this.#pending.subarray(length);
    this.#parser.destroy();
    this.#parser = this.#newParser();
    this.#taken = 0;
    const isNew = !this.#isInLongLine;
    this.#isInLongLine = newline < 0;
    this.#events.onUnreadable(line, reason, isNew);
  }
}
