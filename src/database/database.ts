/** A release, open for look-ups: address text or bytes in, the service's result out. */
import { join } from 'node:path';
import { formatIPv4, formatIPv6Full } from '../address/format.js';
import { isMapped, parseIPv4, parseIPv6 } from '../address/parse.js';
import { openRangeFile } from '../rangefile/reader.js';
import { BinaryEngine } from './binary-engine.js';
import type { Answer, Engine } from './engine.js';
import { type Manifest, MIRROR_FILE, RANGE_FILE, readManifest, releaseDir } from './release.js';
import { openSqliteEngine } from './sqlite-engine.js';

/** The lookup result: these four fields, in this order. */
export interface LookupResult {
  /** Dotted decimal, or eight groups of four lower-case hex digits. */
  ip: string;
  /** English short name, or null where the address has no country. */
  country: string | null;
  /** ISO 3166-1 alpha-2, upper case, and XK for Kosovo; or null. */
  country_code: string | null;
  /** Whether the country is in the European Union. */
  is_eu: boolean;
}

/** A lookup result, and why it names no country; null where it names one. */
export interface ReasonedResult extends LookupResult {
  reason: string | null;
}

export interface OpenOptions {
  /** `binary`, the range file in memory (default), or `sqlite`, the mirror. */
  engine?: 'binary' | 'sqlite';
}

/** Scratch for the address at hand; look-ups are synchronous. */
const words = new Uint32Array(4);

export class Database {
  /** The directory of the release, symbolic links resolved. */
  readonly dir: string;
  readonly manifest: Manifest;
  readonly #engine: Engine;

  constructor(dir: string, manifest: Manifest, engine: Engine) {
    this.dir = dir;
    this.manifest = manifest;
    this.#engine = engine;
  }

  /**
   * Looks an address up.
   *
   * @param text an IPv4 address in dotted decimal or an IPv6 address in any form of RFC 4291, nothing around it
   * @returns the result, or undefined where the text is no address. Never throws for a text
   */
  lookup(text: string): LookupResult | undefined {
    const address = parseIPv4(text);
    if (address >= 0) {
      // Leading zeros being refused, an IPv4 address has one spelling: the text is its own canonical form.
      const { country, country_code, is_eu } = this.#engine.answerIPv4(address);
      return { ip: text, country, country_code, is_eu };
    }
    if (!parseIPv6(text, words)) return undefined;
    const { country, country_code, is_eu } = this.#answerWords();
    return { ip: this.#formatWords(), country, country_code, is_eu };
  }

  /**
   * As {@link lookup}, with the reason why there is no country.
   *
   * @returns the result, or undefined where the text is no address
   */
  lookupWithReason(text: string): ReasonedResult | undefined {
    const address = parseIPv4(text);
    if (address >= 0) return { ip: text, ...this.#engine.answerIPv4(address) };
    if (!parseIPv6(text, words)) return undefined;
    return { ip: this.#formatWords(), ...this.#answerWords() };
  }

  /**
   * Looks up an address given as bytes in network order.
   *
   * @param bytes 4 bytes (IPv4) or 16 (IPv6)
   * @returns the result, or undefined where there are neither 4 nor 16 bytes
   */
  lookupBytes(bytes: Uint8Array): LookupResult | undefined {
    if (bytes.length === 4) {
      const address = readWord(bytes, 0);
      const { country, country_code, is_eu } = this.#engine.answerIPv4(address);
      return { ip: formatIPv4(address), country, country_code, is_eu };
    }
    if (bytes.length !== 16) return undefined;
    for (let i = 0; i < 4; i++) words[i] = readWord(bytes, 4 * i);
    const { country, country_code, is_eu } = this.#answerWords();
    return { ip: this.#formatWords(), country, country_code, is_eu };
  }

  /** Frees what the engine holds. The database must not be used afterwards. */
  close(): void {
    this.#engine.close();
  }

  #answerWords(): Answer {
    return isMapped(words) ? this.#engine.answerIPv4(words[3]!) : this.#engine.answerIPv6(words);
  }

  #formatWords(): string {
    if (isMapped(words)) return formatIPv4(words[3]!);
    return formatIPv6Full(words[0]!, words[1]!, words[2]!, words[3]!);
  }
}

/** Four bytes in network order as a number. */
function readWord(bytes: Uint8Array, at: number): number {
  return ((bytes[at]! << 24) | (bytes[at + 1]! << 16) | (bytes[at + 2]! << 8) | bytes[at + 3]!) >>> 0;
}

/**
 * Opens a release for look-ups.
 *
 * The release is resolved once: one that is published later is not noticed. Opening checks the structure of the range
 * file, not every byte; `ipatlas verify` does that.
 *
 * @param dir a data directory, whose current release is opened, or the directory of one release
 * @returns the database; close it when done
 * @throws AtlasError E_NO_DATABASE where there is no release, E_DAMAGED where it is not whole or of another version
 */
export function openDatabase(dir: string, options: OpenOptions = {}): Database {
  const release = releaseDir(dir);
  const manifest = readManifest(release);
  if (options.engine === 'sqlite') {
    return new Database(release, manifest, openSqliteEngine(join(release, MIRROR_FILE)));
  }
  return new Database(release, manifest, new BinaryEngine(openRangeFile(join(release, RANGE_FILE))));
}
