/** Looks up the addresses of a text: with the database in this browser, or by requests to the server. It goes on from where it stopped. */
import names from '../../data/address-names.json' with { type: 'json' };
import table from '../../data/logs.json' with { type: 'json' };
import type { Country } from '../database/results.js';
import { splitAlternatives } from '../enrich/field-path.js';
import { type Detection, describe, findDefault, findFields, sampleOf } from '../enrich/find-fields.js';
import { formsOf, type Logs, recognizeLog, withoutJson } from '../enrich/logs.js';
import type { LookupDatabase } from '../lookup/database.js';
import { Entries } from './entries.js';
import { AddressReader, type Entry } from './extract.js';
import { PIECE, readText } from './input.js';
import { recordReader } from './log-lines.js';
import type { CountryCount, Result, Row } from './results.js';

/** Longest time in milliseconds for which a message has to wait. */
const TURN_MS = 30;

/** Entries that are looked up between two looks at the clock. */
const STEP = 2_000;

const LOGS = table.logs as unknown as Logs;

/** Where the answers come from. */
export interface Answers {
  /** The countries of some addresses, in their order; undefined for what is not one. All addresses of a country have the same object. */
  countries(addresses: readonly string[], signal: AbortSignal): Promise<(Country | undefined)[]>;
  /** Addresses that are asked for at once. */
  size: number;
  /** Returns why an address has no country, if that is known. */
  reason(address: string): string | undefined;
}

/** Returns the answers of a database in this browser. */
export function answersOf(database: LookupDatabase): Answers {
  return {
    countries: async (addresses) => addresses.map((address) => database.country(address)),
    size: STEP,
    reason: (address) => database.lookupWithReason(address)?.reason ?? undefined,
  };
}

/** Returns the answers of a server. @param ask as `lookUpBatch` of service.ts */
export function serverAnswers(
  size: number,
  ask: (addresses: readonly string[], signal: AbortSignal) => Promise<Record<string, Result | { error: string }>>,
): Answers {
  const shared = new Map<string | null, Country>();
  return {
    async countries(addresses, signal) {
      const found = await ask(addresses, signal);
      return addresses.map((address) => {
        const result = found[address];
        if (result === undefined || 'error' in result) return undefined;
        const { country, country_code, is_eu } = result;
        const known = shared.get(country_code);
        if (known === undefined) shared.set(country_code, { country, country_code, is_eu });
        return shared.get(country_code);
      });
    },
    size,
    reason: () => undefined,
  };
}

/** How far a batch is. */
export interface Progress {
  lines: number;
  /** Addresses and other texts that were found so far, and those of them that are done. */
  total: number;
  done: number;
  /** Whether all of the text was read. */
  isRead: boolean;
  /** Lines without an address that have more than one word. */
  linesWithoutAddress: number;
  /** What the text was read as, and where its addresses are; empty if that is not known, and all addresses count. */
  readAs: string;
  /** Whether there are more addresses than the limit allows. */
  isFull: boolean;
  invalid: number;
  located: number;
  inUnion: number;
  counts: CountryCount[];
}

let lastYield = 0;

/** Lets messages arrive, if the last time was a while ago. */
async function yieldToMessages(): Promise<void> {
  if (performance.now() - lastYield < TURN_MS) return;
  await new Promise((resolve) => setTimeout(resolve));
  lastYield = performance.now();
}

export class Batch {
  readonly entries = new Entries();
  readonly #source: Blob;
  readonly #limit: number;
  /** The name of the log; empty to recognize the text. */
  readonly #log: string;
  #reader: AddressReader;
  #readAs = '';
  isRead = false;
  /** Entries that are looked up. */
  done = 0;

  /**
   * @param limit addresses to find at most; the rest of the text is ignored
   * @param log a name of data/logs.json; `all` for all addresses; empty to recognize the text
   */
  constructor(source: Blob, limit: number, log = '') {
    this.#source = source;
    this.#limit = limit;
    this.#log = log;
    this.#reader = new AddressReader(limit);
  }

  progress(): Progress {
    const { length, invalid, located, inUnion } = this.entries;
    return {
      ...{ lines: this.#reader.lines, total: length, done: this.done, isRead: this.isRead },
      ...{ linesWithoutAddress: this.#reader.linesWithoutAddress, isFull: this.#reader.isFull, readAs: this.#readAs },
      ...{ invalid, located, inUnion, counts: this.entries.counts() },
    };
  }

  /**
   * Reads the text.
   *
   * @param onProgress called now and then
   * @throws PageError if it is not text, or the reason of the signal; it cannot be called again then
   */
  async read(signal: AbortSignal, onProgress: () => void): Promise<void> {
    const add = (found: readonly Entry[]): void => {
      for (const { line, text, valid } of found) this.entries.add(line, text, valid);
    };
    let isFirst = true;
    for await (const piece of readText(this.#source)) {
      if (isFirst) this.#recognize(piece, piece.length < PIECE);
      isFirst = false;
      add(this.#reader.read(piece));
      await yieldToMessages();
      signal.throwIfAborted();
      onProgress();
      if (this.#reader.isFull) break;
    }
    add(this.#reader.end());
    this.isRead = true;
  }

  /** Decides how to read the text by its beginning: as a form of the log that was named, as any log, or where it has addresses. */
  #recognize(head: string, isAll: boolean): void {
    if (this.#log === 'all') return;
    const { sample, isWhole } = sampleOf(head, isAll);
    const logs = this.#log !== '' ? formsOf(this.#log, LOGS) : /^\s*\{/.test(sample) ? {} : withoutJson(LOGS);
    let guessed: Detection | undefined;
    try {
      guessed = recognizeLog('The text', sample, isWhole, logs);
    } catch {
      // It looks like several.
    }
    if (this.#log !== '') guessed ??= { names: [this.#log], log: LOGS[this.#log]! };
    guessed ??= findFields(sample, isWhole, {}, names) ?? findDefault(sample);
    // In a list and in text, all addresses count.
    if (guessed === undefined || !('log' in guessed || guessed.field !== undefined)) return;
    this.#readAs = describe(guessed);
    const records = recordReader(
      'log' in guessed
        ? guessed.log
        : { ...guessed, fields: guessed.field?.flatMap(splitAlternatives), strings: guessed.inText === true },
    );
    this.#reader = new AddressReader(this.#limit, records);
  }

  /**
   * Looks up what is left.
   *
   * @throws what the answers throw, or the reason of the signal; it can be called again
   */
  async run({ countries, size }: Answers, signal: AbortSignal, onProgress: () => void): Promise<void> {
    const { entries } = this;
    while (this.done < entries.length) {
      const end = Math.min(entries.length, this.done + size);
      const wanted: number[] = [];
      for (let at = this.done; at < end; at++) if (entries.isAddress(at)) wanted.push(at);
      const texts = wanted.map((at) => entries.text(at));
      const found = texts.length === 0 ? [] : await countries(texts, signal);
      for (const [index, at] of wanted.entries()) entries.setCountry(at, found[index]);
      this.done = end;
      await yieldToMessages();
      onProgress();
      signal.throwIfAborted();
    }
  }

  /** Returns a row with the reason why it has no country. */
  row(at: number, { reason }: Pick<Answers, 'reason'>): Row {
    const row = this.entries.row(at);
    if (row.result === undefined || row.result.country_code !== null) return row;
    return { ...row, reason: reason(row.text) };
  }
}
