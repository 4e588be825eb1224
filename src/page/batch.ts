/** Looks up the addresses of a text: with the database in this browser, or by requests to the server. It goes on from where it stopped. */
import type { Country } from '../database/results.js';
import { type Detection, describe, optionsOf } from '../enrich/detection.js';
import { findDefault, findFields, sampleOf } from '../enrich/find-fields.js';
import { addressNames, knownLogs } from '../enrich/known-logs.js';
import { formsOf, logOf, withoutJson } from '../enrich/logs.js';
import type { InputOptions } from '../enrich/options.js';
import { recognizeLog } from '../enrich/recognize-log.js';
import type { LookupDatabase } from '../lookup/database.js';
import { AddressFinder } from './addresses.js';
import { Entries } from './entries.js';
import { FIRST_BYTES, readText } from './input.js';
import type { CountryCount, Result, Row } from './results.js';

/** Longest time in milliseconds for which a message has to wait. */
const TURN_MS = 30;

/** Entries that are looked up between two looks at the clock. */
const STEP = 2_000;

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
  readonly entries: Entries;
  readonly #source: Blob;
  readonly #limit: number;
  /** The name of the log; empty to recognize the text. */
  readonly #log: string;
  #finder: AddressFinder | undefined;
  #readAs = '';
  isRead = false;
  /** Entries that are looked up. */
  done = 0;

  /**
   * @param limit addresses to find at most; the rest of the text is ignored
   * @param log a name of data/logs.json; `all` for all addresses; empty to recognize the text
   * @param lang the language of the names of countries
   */
  constructor(source: Blob, limit: number, log = '', lang = 'en') {
    this.entries = new Entries(lang);
    this.#source = source;
    this.#limit = limit;
    this.#log = log;
  }

  progress(): Progress {
    const { length, invalid, located, inUnion } = this.entries;
    const { lines = 0, linesWithoutAddress = 0, isFull = false } = this.#finder ?? {};
    return {
      ...{ lines, total: length, done: this.done, isRead: this.isRead },
      ...{ linesWithoutAddress, isFull, readAs: this.#readAs },
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
    const start = async (head: string, isAll: boolean): Promise<AddressFinder> => {
      const options = this.#recognize(head, isAll);
      // It has a library of its own, which other texts do not need.
      const documents = options?.input.kind === 'json' ? await import('../enrich/formats/document.js') : undefined;
      return new AddressFinder(documents?.JsonDocument, options, this.#limit, ({ line, text, valid }) =>
        this.entries.add(line, text, valid),
      );
    };
    for await (const piece of readText(this.#source)) {
      this.#finder ??= await start(new TextDecoder().decode(piece), piece.length < FIRST_BYTES);
      this.#finder.read(piece);
      await yieldToMessages();
      signal.throwIfAborted();
      onProgress();
      if (this.#finder.isFull) break;
    }
    this.#finder?.end();
    this.isRead = true;
  }

  /** Decides how to read the text by its beginning: as a form of the log that was named, as any log, or where it has addresses. */
  #recognize(head: string, isAll: boolean): InputOptions | undefined {
    const name = this.#log;
    if (name === 'all') return undefined;
    const { sample, isWhole } = sampleOf(head, isAll);
    const logs = name !== '' ? formsOf(name, knownLogs()) : /^\s*\{/.test(sample) ? {} : withoutJson(knownLogs());
    let found: Detection | undefined;
    try {
      found = recognizeLog('The text', sample, isWhole, logs);
      if (name === '') found ??= findFields(sample, isWhole, {}, addressNames()) ?? findDefault(sample);
    } catch {
      // It looks like several, or like nothing that has records.
    }
    if (name !== '') found ??= { names: [name], log: logOf(name, knownLogs()) };
    // In a list and in text, all addresses count.
    if (found === undefined || !('log' in found || found.field !== undefined)) return undefined;
    this.#readAs = describe(found);
    return optionsOf(found, {}, (option) => option);
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
