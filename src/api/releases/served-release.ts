/** A release as the API serves it: address text in, JSON text out. */
import { validateHeaderValue } from 'node:http';
import { changeRate, releaseAge } from '../../database/age.js';
import type { Database } from '../../database/database.js';
import { FieldSearch, type FieldSources, type ResultField } from '../../database/fields.js';
import type { LookupResult } from '../../database/results.js';
import { causedError, damagedRelease, REBUILD } from '../../errors.js';
import { recordMembers } from '../../rangefile/layout.js';
import { withNames } from '../../rangefile/names.js';
import type { Partition } from '../../rangefile/partitions.js';
import { decodeFile, type PartitionFile, type RangeFile } from '../../rangefile/reader.js';
import type { Included } from '../include.js';
import type { Headers } from '../responses.js';

/** What a lookup can end with, as metrics name it. */
export type Outcome = 'found' | 'no_country' | 'invalid';

/** Numbers of lookups by outcome, for the metrics. */
export type Outcomes = Record<Outcome, number>;

/** The answer to a lookup: JSON in UTF-8, each byte as one character; empty for a text that is not an address. */
export interface Answer {
  json: string;
  outcome: Outcome;
}

/** Returns the result in an answer; undefined if there is none. */
export function resultOf({ json, outcome }: Answer): LookupResult | undefined {
  return outcome === 'invalid' ? undefined : JSON.parse(Buffer.from(json, 'latin1').toString());
}

/** The response to a batch. */
export interface BatchResponse {
  /** JSON in UTF-8, each byte as one character. */
  json: string;
  outcomes: Outcomes;
}

const INVALID_ELEMENT = '{"error":"invalid ip"}';

/**
 * Returns the bytes of a text in UTF-8, each as one character.
 *
 * V8 stores such a text in one byte a character, and copies it to make bytes of it. A single "Türkiye" in a batch would
 * need two bytes for each character, and encoding 100 kB of them takes as long as the thousand lookups.
 */
function utf8AsCharacters(text: string): string {
  return Buffer.from(text, 'utf8').toString('latin1');
}

/** Prepared searches that are kept: more than there are sets of members, each with labels and without. */
const MAX_SEARCHES = 1_024;

const INVALID: Answer = { json: '', outcome: 'invalid' };

/** A prepared search, and functions that return texts for the address found last. */
interface Prepared {
  search: FieldSearch;
  outcome(): Outcome;
  /** The members after the address, each as JSON after a comma. */
  members: (() => string)[];
  labels: Record<string, () => string>;
}

/** The members of every result, after the address. */
const MEMBERS = ['country', 'country_code', 'is_eu'];

/** Answers as the API serves them. */
export abstract class ServedAnswers {
  /** The names of the labels that may be asked for. */
  readonly labelNames: readonly string[];
  /** By the names of {@link Included.search}; undefined without further members. */
  readonly #searches = new Map<string | undefined, Prepared>();

  constructor(labelNames: readonly string[]) {
    this.labelNames = labelNames;
  }

  /** Returns the headers that say which release answers and how old its data is, in seconds. */
  abstract headers(): Headers;

  /** Returns where the members of results come from. */
  protected abstract sources(): FieldSources;

  /**
   * Looks up an address.
   *
   * @param include further members of the result
   */
  answer(ip: string, include?: Included): Answer {
    const { search, outcome, members, labels } = this.#searches.get(include?.search) ?? this.#prepare(include);
    if (!search.find(ip)) return INVALID;
    let json = `{"ip":"${search.ip}"`;
    for (const text of members) json += text();
    if (include !== undefined) for (const name of include.labels) json += labels[name]!();
    return { json: `${json}}`, outcome: outcome() };
  }

  /** Prepares searches with further members, and with all labels if some are asked for. */
  #prepare({ search: name, members = [], labels = [], lang }: Partial<Included> = {}): Prepared {
    const labelNames = labels.length === 0 ? [] : this.labelNames;
    const sources = this.sources();
    const file = withNames(sources.file, lang);
    const search = new FieldSearch([...MEMBERS, ...members, ...labelNames], { ...sources, file });
    const textOf = (...names: ResultField[]): (() => string) =>
      search.each(names, (values) =>
        utf8AsCharacters(names.map((name) => `,"${name}":${JSON.stringify(values[name])}`).join('')),
      );
    const block = (): string => (search.network === null ? ',"network":null' : `,"network":"${search.network}"`);
    const prepared: Prepared = {
      search,
      outcome: search.each(['country'], ({ country }) => (country === null ? 'no_country' : 'found')),
      members: [textOf(...MEMBERS), ...members.map((name) => (name === 'network' ? block : textOf(name)))],
      labels: Object.fromEntries(labelNames.map((name) => [name, textOf(name)])),
    };
    // There are hundreds of languages.
    if (this.#searches.size >= MAX_SEARCHES) this.#searches.clear();
    this.#searches.set(name, prepared);
    return prepared;
  }

  /**
   * Looks up a batch; returns one JSON object, its members in the order in which the strings first appear.
   *
   * The text is written member by member: an object would move keys like "1" to the front, and lose "__proto__".
   *
   * @param ips any strings
   * @param include as for {@link answer}
   */
  batch(ips: readonly string[], include?: Included): BatchResponse {
    const outcomes: Outcomes = { found: 0, no_country: 0, invalid: 0 };
    const seen = new Set<string>();
    let json = '{';
    for (const ip of ips) {
      if (seen.has(ip)) continue;
      seen.add(ip);
      if (seen.size > 1) json += ',';
      const { json: element, outcome } = this.answer(ip, include);
      outcomes[outcome]++;
      // A valid address has only digits, letters a to f, dots and colons.
      json +=
        outcome === 'invalid' ? `${utf8AsCharacters(JSON.stringify(ip))}:${INVALID_ELEMENT}` : `"${ip}":${element}`;
    }
    return { json: `${json}}`, outcomes };
  }
}

export class ServedRelease extends ServedAnswers {
  readonly id: string;
  /** `YYYY-MM-DD`. */
  readonly asOf: string;
  /** How fast its data gets old. */
  readonly changeRate: number;
  readonly database: Database;
  /** The headers that name the release, and the second of the Unix clock for which they are right. */
  #headers: Headers = [];
  #headersSecond = Number.NaN;

  /**
   * @param withLabels whether its labels may be asked for
   * @throws AtlasError E_DAMAGED if the manifest has values that no response can name
   */
  constructor(database: Database, withLabels = false) {
    super(withLabels ? database.labelNames : []);
    this.database = database;
    this.id = database.manifest.id;
    this.asOf = database.manifest.as_of;
    this.changeRate = changeRate(database.dir);
    try {
      for (const value of this.headers()) validateHeaderValue('x-database-release', value);
    } catch (error) {
      throw causedError('E_DAMAGED', `${database.dir}: its manifest is damaged`, error, REBUILD);
    }
    if (!Number.isFinite(releaseAge(database.manifest))) {
      throw damagedRelease(`${database.dir}: the as-of date in its manifest is not a date`);
    }
  }

  protected sources(): FieldSources {
    return { ...this.database.sources(), labels: this.labelNames };
  }

  /** Returns a prepared search for fields, none of which is a label. */
  search(fields: readonly ResultField[]): FieldSearch {
    return new FieldSearch(fields, { ...this.sources(), labels: [] });
  }

  /** Returns the headers that say which release answers and how old its data is, in seconds. */
  headers(): Headers {
    const second = Math.floor(Date.now() / 1000);
    if (second !== this.#headersSecond) {
      const age = String(releaseAge(this.database.manifest));
      this.#headers = ['x-database-release', this.id, 'x-database-age', age];
      this.#headersSecond = second;
    }
    return this.#headers;
  }

  close(): void {
    this.database.close();
  }
}

/** The answers of a day. */
export interface OpenedAnswers {
  /** Comes from a thread, which can send no functions. */
  file: Omit<RangeFile, 'recordAt'>;
  /** The release, or the imported file, that they are of. */
  release: string;
  /** The date of its data. */
  dataDate: string;
  /** The bytes of the files of other partitions, of those that are wanted and that there are. */
  others: { name: string; bytes: Uint8Array }[];
}

/** The answers of a past day. */
export class ServedDay extends ServedAnswers {
  readonly #file: RangeFile;
  readonly #release: string;
  readonly #dataDate: string;
  readonly #others: OpenedAnswers['others'];

  constructor({ file, release, dataDate, others }: OpenedAnswers) {
    super([]);
    this.#file = { ...file, ...recordMembers(file.records) };
    // The name of a file can have characters that no header may have.
    this.#release = encodeURIComponent(release);
    this.#dataDate = dataDate;
    this.#others = others;
  }

  protected sources(): FieldSources {
    const open = <File extends PartitionFile>(partition: Partition<File>): File | undefined => {
      const found = this.#others.find(({ name }) => name === partition.name)?.bytes;
      const bytes = found && Buffer.from(found.buffer, found.byteOffset, found.byteLength);
      return bytes && decodeFile(partition, bytes, this.#file.path, true, partition.columns?.({}));
    };
    return { file: this.#file, open };
  }

  headers(): Headers {
    const age = releaseAge({ as_of: this.#dataDate });
    return ['x-database-release', this.#release, 'x-database-age', String(age)];
  }
}
