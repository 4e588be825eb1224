/**
 * Finds the address space that belongs to networks, each named by an AS number: space that is delegated to the holder of
 * the number, and space that the network announces.
 */

import { addressWords } from '../../src/address/words.js';
import { MAX_NETWORK_NAME } from '../../src/limits.js';
import type { OwnedRange } from '../merging/evidence.js';
import { emptyRange, parseRirRange, type Range } from './range-notation.js';

/**
 * AS numbers of one holder in the registries' files. An opaque id with more is that of a national registry, whose members
 * share it: JPNIC's had 962 in 2016, and the largest of a single network in the files of three registries 92.
 */
export const MAX_HOLDER_ASNS = 100;

function ownedRange(asn: number, { family, first, last }: Range): OwnedRange {
  const words = addressWords(family);
  return { asn, family, first: first.slice(0, words), last: last.slice(0, words) };
}

/** Parses an AS number (RFC 5396 "asplain"), with or without `AS`. Returns NaN if it is not one. */
export function parseAsn(text: string): number {
  const number = /^(?:AS)?\d{1,10}$/i.test(text) ? Number(text.replace(/^AS/i, '')) : Number.NaN;
  return number < 2 ** 32 ? number : Number.NaN;
}

/** The networks of a source, numbered in order of first use. */
export class NetworkTable {
  readonly asns: number[] = [];
  readonly names: string[] = [];
  /** The ranges of the networks that are asked for. */
  readonly owned: OwnedRange[] = [];
  readonly #wanted: ReadonlySet<number>;
  /** Index by AS number as written in the file, so that each is parsed once. */
  readonly #byText = new Map<string, number>();
  readonly #byAsn = new Map<number, number>();

  /** @param wanted AS numbers of the networks whose space is asked for */
  constructor(wanted: ReadonlySet<number>) {
    this.#wanted = wanted;
  }

  /**
   * Returns the index of a network; -1 for AS 0, which announces nothing (RFC 7607); undefined if the text is not an AS number.
   *
   * @param name of the network in this row; the first that is not empty counts
   */
  index(text: string, name: string): number | undefined {
    const index = this.#byText.get(text) ?? this.#add(text);
    if (index !== undefined && index >= 0 && name !== '' && this.names[index] === '')
      this.names[index] = cleanName(name);
    return index;
  }

  #add(text: string): number | undefined {
    const asn = parseAsn(text.trim());
    if (Number.isNaN(asn)) return undefined;
    let index = asn === 0 ? -1 : this.#byAsn.get(asn);
    if (index === undefined) {
      index = this.asns.push(asn) - 1;
      this.names.push('');
      this.#byAsn.set(asn, index);
    }
    this.#byText.set(text, index);
    return index;
  }

  /** @param range announced by the network; the object may be reused after the call */
  addOwned(index: number, range: Range): void {
    const asn = this.asns[index]!;
    if (this.#wanted.has(asn)) this.owned.push(ownedRange(asn, range));
  }
}

/** A name that is clean: words of printable ASCII. */
const PLAIN_NAME = /^[!-~]+(?: [!-~]+)*$/;

/** Returns the name of a network in one line of at most MAX_NETWORK_NAME characters, without control characters. */
function cleanName(name: string): string {
  if (name.length <= MAX_NETWORK_NAME && PLAIN_NAME.test(name)) return name;
  const line = name.replace(/[\p{Cc}\p{Zl}\p{Zp}\s]+/gu, ' ').trim();
  return [...line].slice(0, MAX_NETWORK_NAME).join('').trimEnd();
}

/**
 * Collects the delegations to the holders of AS numbers. In the extended statistics files of the registries, all that is
 * delegated to one organization has the same opaque id:
 * registry|cc|type|start|value|date|status|opaque-id.
 *
 * The members of a national registry, such as JPNIC or KRNIC, share its opaque id, so it does not tell their space apart.
 */
export class Delegations {
  readonly #asns: ReadonlySet<number>;
  /** The AS numbers of each holder that are asked for. */
  readonly #asnsOf = new Map<string, number[]>();
  /** How many AS numbers each holder has, also those that are not asked for. */
  readonly #asnCounts = new Map<string, number>();
  /** The IP delegations of each holder, as `start|value`. AS numbers need not come first in a file. */
  readonly #blocksOf = new Map<string, string[]>();

  /** @param asns the numbers that are asked for */
  constructor(asns: ReadonlySet<number>) {
    this.#asns = asns;
  }

  /** @param row of a registry's file */
  add(row: readonly string[]): void {
    const [registry, , type, start, value, , status, opaqueId] = row;
    if (opaqueId === undefined || opaqueId === '' || (status !== 'allocated' && status !== 'assigned')) return;
    const holder = `${registry} ${opaqueId}`;
    if (type === 'asn') {
      const first = Number(start);
      this.#asnCounts.set(holder, (this.#asnCounts.get(holder) ?? 0) + (Number(value) || 0));
      for (const asn of this.#asns) if (asn >= first && asn < first + Number(value)) append(this.#asnsOf, holder, asn);
    } else if (type === 'ipv4' || type === 'ipv6') append(this.#blocksOf, holder, `${start}|${value}`);
  }

  /** Whether a holder is the members of a national registry together. */
  #isShared(holder: string): boolean {
    return this.#asnCounts.get(holder)! > MAX_HOLDER_ASNS;
  }

  /** Returns the AS numbers whose delegations are not known, because their holder's opaque id is that of a national registry. */
  sharedAsns(): number[] {
    return [...this.#asnsOf].flatMap(([holder, asns]) => (this.#isShared(holder) ? asns : []));
  }

  /** Returns the ranges that are delegated to the holders. */
  ranges(): OwnedRange[] {
    const range = emptyRange();
    const owned: OwnedRange[] = [];
    for (const [holder, asns] of this.#asnsOf) {
      if (this.#isShared(holder)) continue;
      for (const block of this.#blocksOf.get(holder) ?? []) {
        const [start, value] = block.split('|') as [string, string];
        // A block that cannot be parsed is among the rejected rows of the source.
        if (parseRirRange(start, value, range) !== undefined) continue;
        for (const asn of asns) owned.push(ownedRange(asn, range));
      }
    }
    return owned;
  }
}

function append<Key, Value>(lists: Map<Key, Value[]>, key: Key, value: Value): void {
  const list = lists.get(key);
  if (list === undefined) lists.set(key, [value]);
  else list.push(value);
}
