/** A release as the API serves it: address text in, JSON text out. */
import { validateHeaderValue } from 'node:http';
import { changeRate, releaseAge } from '../../database/age.js';
import { BinaryEngine } from '../../database/binary-engine.js';
import type { Database } from '../../database/database.js';
import { type FieldLookup, fieldLookup, type ResultField } from '../../database/fields.js';
import { Lookups } from '../../database/lookups.js';
import type { Manifest } from '../../database/release.js';
import type { LookupResult } from '../../database/results.js';
import { AtlasError, messageOf } from '../../errors.js';
import { recordMembers } from '../../rangefile/memory.js';
import { decodeNetworkFile, type RangeFile } from '../../rangefile/reader.js';
import type { Included } from '../include.js';
import type { Headers } from '../responses.js';

/** Numbers of lookups by outcome, for the metrics. */
export interface Outcomes {
  found: number;
  no_country: number;
  invalid: number;
}

/** The response to a batch. */
export interface BatchResponse {
  /** JSON in UTF-8, each byte as one character. */
  json: string;
  outcomes: Outcomes;
}

const INVALID_ELEMENT = '{"error":"invalid ip"}';

const NOT_ASCII = /[^\0-\x7f]/;

/**
 * Returns the bytes of a text in UTF-8, each as one character.
 *
 * V8 stores such a text in one byte a character, and copies it to make bytes of it. A single "Türkiye" in a batch would
 * need two bytes for each character, and encoding 100 kB of them takes as long as the thousand lookups.
 */
function utf8AsCharacters(text: string): string {
  return Buffer.from(text, 'utf8').toString('latin1');
}

/** Answers as the API serves them. */
export abstract class ServedAnswers {
  readonly #lookups: Lookups;
  /** The JSON of a result after the address, by country code; there are some 250. In UTF-8, each byte as one character. */
  readonly #resultSuffixes = new Map<string | null, string>();
  /** Lookups with further members, by the number of their set. */
  readonly #included: (FieldLookup | undefined)[] = [];

  constructor(lookups: Lookups) {
    this.#lookups = lookups;
  }

  /** Returns the headers that say which release answers and how old its data is, in seconds. */
  abstract headers(): Headers;

  /** Prepares lookups of fields, as `Database.fields`; with all labels, if they are wanted. */
  protected abstract fields(names: readonly ResultField[], withLabels: boolean): FieldLookup;

  /**
   * Returns the result, or undefined if the text is not an address.
   *
   * @param include further members of the result
   */
  lookup(ip: string, include?: Included): LookupResult | undefined {
    if (include === undefined) return this.#lookups.lookup(ip);
    const { set, members, labels } = include;
    const names = ['country', 'country_code', 'is_eu', ...members];
    this.#included[set] ??= this.fields(names, labels.length > 0);
    // It has the members of a lookup result, which were asked for.
    const found = this.#included[set](ip) as (LookupResult & Record<string, unknown>) | undefined;
    if (found === undefined || labels.length === 0) return found;
    const chosen = ['ip', ...names, ...labels].map((name) => [name, found[name] ?? null]);
    return Object.fromEntries(chosen) as LookupResult;
  }

  /** Returns a result of {@link lookup} as JSON, the same as JSON.stringify returns; in UTF-8, each byte as one character. */
  json(result: LookupResult, include?: Included): string {
    if (include !== undefined) {
      const text = JSON.stringify(result);
      return NOT_ASCII.test(text) ? utf8AsCharacters(text) : text;
    }
    // The address is text that this program wrote, without characters that JSON escapes.
    return `{"ip":"${result.ip}${this.#resultSuffix(result)}`;
  }

  #resultSuffix(result: LookupResult): string {
    let tail = this.#resultSuffixes.get(result.country_code);
    if (tail === undefined) {
      tail = utf8AsCharacters(JSON.stringify({ ...result, ip: '' }).slice('{"ip":"'.length));
      this.#resultSuffixes.set(result.country_code, tail);
    }
    return tail;
  }

  /**
   * Looks up a batch; returns one JSON object, its members in the order in which the strings first appear.
   *
   * The text is written member by member: an object would move keys like "1" to the front, and lose "__proto__".
   *
   * @param ips any strings
   * @param include as for {@link lookup}
   */
  batch(ips: readonly string[], include?: Included): BatchResponse {
    const outcomes: Outcomes = { found: 0, no_country: 0, invalid: 0 };
    const seen = new Set<string>();
    let json = '{';
    for (const ip of ips) {
      if (seen.has(ip)) continue;
      seen.add(ip);
      if (seen.size > 1) json += ',';
      const result = this.lookup(ip, include);
      if (result === undefined) {
        outcomes.invalid++;
        json += `${utf8AsCharacters(JSON.stringify(ip))}:${INVALID_ELEMENT}`;
      } else {
        if (result.country === null) outcomes.no_country++;
        else outcomes.found++;
        // A valid address has only digits, letters a to f, dots and colons.
        json += `"${ip}":${this.json(result, include)}`;
      }
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
  /** The names of the labels that may be asked for. */
  readonly labelNames: readonly string[];
  readonly #database: Database;
  /** The headers that name the release, and the second of the Unix clock for which they are right. */
  #headers: Headers = [];
  #headersSecond = Number.NaN;

  /**
   * @param withLabels whether its labels may be asked for
   * @throws AtlasError E_DAMAGED if the manifest has values that no response can name
   */
  constructor(database: Database, withLabels = false) {
    super(database);
    this.#database = database;
    this.id = database.manifest.id;
    this.asOf = database.manifest.as_of;
    this.changeRate = changeRate(database.dir);
    this.labelNames = withLabels ? database.labelNames : [];
    try {
      for (const value of this.headers()) validateHeaderValue('x-database-release', value);
    } catch (error) {
      throw new AtlasError('E_DAMAGED', `${database.dir}: its manifest is damaged: ${messageOf(error)}`, {
        cause: error,
      });
    }
    if (!Number.isFinite(releaseAge(database.manifest))) {
      throw new AtlasError('E_DAMAGED', `${database.dir}: the as-of date in its manifest is not a date`);
    }
  }

  /** Whether it is the database that comes with the package, and no release. */
  get isSeed(): boolean {
    return this.#database.isSeed;
  }

  /** The directory of the release, or the path of the seed. */
  get dir(): string {
    return this.#database.dir;
  }

  /** Whether it says who announces the addresses. */
  get hasNetworks(): boolean {
    return this.#database.hasNetworks;
  }

  get manifest(): Manifest {
    return this.#database.manifest;
  }

  protected fields(names: readonly ResultField[], withLabels: boolean): FieldLookup {
    return this.#database.fields(withLabels ? [...names, ...this.labelNames] : names);
  }

  /** Returns the headers that say which release answers and how old its data is, in seconds. */
  headers(): Headers {
    const second = Math.floor(Date.now() / 1000);
    if (second !== this.#headersSecond) {
      const age = String(releaseAge(this.#database.manifest));
      this.#headers = ['x-database-release', this.id, 'x-database-age', age];
      this.#headersSecond = second;
    }
    return this.#headers;
  }

  close(): void {
    this.#database.close();
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
  /** Bytes of the file of its networks, if they are wanted and there are any. */
  networks: Uint8Array | undefined;
}

/** The answers of a past day. */
export class ServedDay extends ServedAnswers {
  readonly #file: RangeFile;
  readonly #release: string;
  readonly #dataDate: string;
  readonly #networks: Uint8Array | undefined;

  constructor({ file, release, dataDate, networks }: OpenedAnswers) {
    super(new Lookups(new BinaryEngine(file)));
    this.#file = { ...file, ...recordMembers(file.records) };
    // The name of a file can have characters that no header may have.
    this.#release = encodeURIComponent(release);
    this.#dataDate = dataDate;
    this.#networks = networks;
  }

  protected fields(names: readonly ResultField[]): FieldLookup {
    const networks = this.#networks;
    const bytes = networks && Buffer.from(networks.buffer, networks.byteOffset, networks.byteLength);
    return fieldLookup(names, this.#file, () => bytes && decodeNetworkFile(bytes, this.#file.path, true));
  }

  headers(): Headers {
    const age = releaseAge({ as_of: this.#dataDate });
    return ['x-database-release', this.#release, 'x-database-age', String(age)];
  }
}
