/** Splits bytes into CSV records with csv-parse. Each record keeps its bytes. */
import { CsvError, type InfoRecord, Parser } from 'csv-parse';
import { MAX_CSV_RECORD_BYTES } from '../../limits.js';

const NEWLINE = 10;

export interface RecordEvents {
  /** @param record the bytes of the record, including its line ending */
  onRecord(cells: string[], record: Uint8Array): void;
  /**
   * Called for a line that cannot be parsed. Reading continues after it.
   *
   * @param bytes the line, or a part of it if it is very long
   * @param isNew false for all parts but the first
   */
  onUnreadable(bytes: Uint8Array, reason: string, isNew: boolean): void;
}

/**
 * csv-parse reports at which byte a record ends, so a record's bytes are those since the end of the previous one. (Its
 * option `raw` omits a part of CRLF.) A quote that is never closed would make one record of all that follows. Therefore,
 * after {@link MAX_CSV_RECORD_BYTES} or at the end of the input, the line on which such a record begins is reported as
 * unreadable, and parsing starts again on the next line.
 */
export class RecordReader {
  readonly #delimiter: string;
  readonly #events: RecordEvents;
  #parser: Parser;
  /** Bytes read that are not yet in a record. */
  #unparsed: Buffer = Buffer.alloc(0);
  /** Bytes that this parser has made records of. */
  #parsedBytes = 0;
  /** Whether the next bytes continue a line that is too long. */
  #isInLongLine = false;

  constructor(delimiter: string, events: RecordEvents) {
    this.#delimiter = delimiter;
    this.#events = events;
    this.#parser = this.#newParser();
  }

  /** Reports all records that end in this chunk. Throws the errors of the event handlers. */
  async read(chunk: Uint8Array): Promise<void> {
    this.#unparsed = this.#unparsed.length === 0 ? Buffer.from(chunk) : Buffer.concat([this.#unparsed, chunk]);
    if (this.#isInLongLine) {
      this.#skipLine('');
      await this.#parse(this.#unparsed);
    } else {
      await this.#parse(chunk);
    }
    while (this.#unparsed.length > MAX_CSV_RECORD_BYTES) {
      this.#skipLine(`a record of more than ${MAX_CSV_RECORD_BYTES} bytes begins here; is a quote not closed?`);
      await this.#parse(this.#unparsed);
    }
  }

  /** Reports the last record, which may lack its line ending. */
  async end(): Promise<void> {
    while (!(await this.#finish())) {
      this.#skipLine('a quote is opened and never closed');
      await this.#parse(this.#unparsed);
    }
    // For csv-parse, a byte order mark alone is not a record.
    if (this.#unparsed.length > 0) this.#events.onRecord([''], this.#unparsed);
  }

  #newParser(): Parser {
    const parser = new Parser({
      bom: true,
      delimiter: this.#delimiter,
      record_delimiter: ['\r\n', '\n'],
      relax_column_count: true,
      relax_quotes: true,
      on_record: (cells: string[], { bytes }: InfoRecord) => {
        const length = bytes - this.#parsedBytes;
        const record = this.#unparsed.subarray(0, length);
        this.#unparsed = this.#unparsed.subarray(length);
        this.#parsedBytes = bytes;
        this.#events.onRecord(cells, record);
        return null;
      },
    });
    // on_record takes all records, but the stream must flow to reach its end. Its errors reach the callbacks below.
    parser.on('error', () => {}).resume();
    return parser;
  }

  #parse(bytes: Uint8Array): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#parser.write(bytes, (error) => (error ? reject(error) : resolve()));
    });
  }

  /** Returns false if a quote is still open. */
  #finish(): Promise<boolean> {
    return new Promise((resolve, reject) => {
      this.#parser.once('error', (error) => {
        if (error instanceof CsvError && error.code === 'CSV_QUOTE_NOT_CLOSED') resolve(false);
        else reject(error);
      });
      this.#parser.end(() => resolve(true));
    });
  }

  /** Reports the first unparsed line as unreadable, and creates a new parser for the rest. */
  #skipLine(reason: string): void {
    const newline = this.#unparsed.indexOf(NEWLINE);
    const length = newline < 0 ? this.#unparsed.length : newline + 1;
    const line = this.#unparsed.subarray(0, length);
    this.#unparsed = this.#unparsed.subarray(length);
    this.#parser.destroy();
    this.#parser = this.#newParser();
    this.#parsedBytes = 0;
    const isNew = !this.#isInLongLine;
    this.#isInLongLine = newline < 0;
    this.#events.onUnreadable(line, reason, isNew);
  }
}
