/** A release, open for look-ups: address text or bytes in, the service's result out. */
import { join } from 'node:path';
import { formatIPv4, formatIPv6Full } from '../address/format.js';
import {
  IPV6_IN_FULL,
  isMapped,
  looksLikeIPv6,
  NOT_IPV6,
  parseAddress,
  parseIPv4,
  parseIPv6Form,
} from '../address/parse.js';
import { openRangeFile } from '../rangefile/reader.js';
import { BinaryEngine } from './binary-engine.js';
import type { Engine } from './engine.js';
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
    // Kept small, the other family apart: then the engine's part is compiled into it, which halves the time.
    const address = looksLikeIPv6(text) ? -1 : parseIPv4(text);
    if (address < 0) return this.#lookupIPv6(text);
    const { country, country_code, is_eu } = this.#engine.answerIPv4(address | 0);
    // Leading zeros being refused, an IPv4 address has one spelling: the text is its own canonical form.
    return { ip: text, country, country_code, is_eu };
  }

  /**
   * As {@link lookup}, with the reason why there is no country.
   *
   * @returns the result, or undefined where the text is no address
   */
  lookupWithReason(text: string): ReasonedResult | undefined {
    const family = parseAddress(text, words);
    if (family === 0) return undefined;
    if (family === 4) return { ip: formatIPv4(words[0]!), ...this.#engine.answerIPv4(words[0]! | 0) };
    return { ip: formatIPv6Full(words), ...this.#engine.answerIPv6(words) };
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
      const { country, country_code, is_eu } = this.#engine.answerIPv4(address | 0);
      return { ip: formatIPv4(address), country, country_code, is_eu };
    }
    if (bytes.length !== 16) return undefined;
    for (let i = 0; i < 4; i++) words[i] = readWord(bytes, 4 * i);
    return this.#lookupWords();
  }

  /** Frees what the engine holds. The database must not be used afterwards. */
  close(): void {
    this.#engine.close();
  }

  #lookupIPv6(text: string): LookupResult | undefined {
    const form = parseIPv6Form(text, words);
    if (form === NOT_IPV6) return undefined;
    return this.#lookupWords(form === IPV6_IN_FULL ? text : undefined);
  }

  /** The result for the IPv6 address in `words`; `full` is its text in full, where that is at hand. */
  #lookupWords(full?: string): LookupResult {
    if (isMapped(words)) {
      const { country, country_code, is_eu } = this.#engine.answerIPv4(words[3]! | 0);
      return { ip: formatIPv4(words[3]!), country, country_code, is_eu };
    }
    const { country, country_code, is_eu } = this.#engine.answerIPv6(words);
    return { ip: full ?? formatIPv6Full(words), country, country_code, is_eu };
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
