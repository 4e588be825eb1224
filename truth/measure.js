// Compares ranges with known places and with held-out databases.
import { parseAddress } from '../dist/src/address/parse.js';
import { addressWords, compareAddresses } from '../dist/src/address/words.js';

/** Returns the value at an address: a binary search over sorted ranges without gaps. */
export function valueAt({ family, count, first, value }, words) {
  const size = addressWords(family);
  let low = 0;
  let high = count - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (compareAddresses(first, middle, words, 0, size) <= 0) low = middle;
    else high = middle - 1;
  }
  return value[low];
}

/** Parses an address into its family and words. */
export function parsed(text) {
  const words = new Uint32Array(4);
  const family = parseAddress(text, words);
  return { family, words: words.slice(0, addressWords(family)) };
}

/** Counts the known places by family and class; `find` returns the value of a place. */
function countPlaces(places, { inEu }, find) {
  const counts = {};
  for (const place of places) {
    const found = find(place);
    const key = `v${place.family} ${place.class}`;
    counts[key] ??= { right: 0, euWrong: 0, total: 0 };
    counts[key].total++;
    if (found === place.value) counts[key].right++;
    if (inEu[found] !== inEu[place.value]) counts[key].euWrong++;
  }
  return counts;
}

/**
 * Counts the known places at which a strategy names the right country.
 *
 * @param ranges of both families
 * @param places with `family`, `words`, `class` and `value`, the index of the country
 * @returns by family and class: `right`, `euWrong` and `total`
 */
export function comparePlaces(ranges, places, countries) {
  return countPlaces(places, countries, ({ family, words }) => valueAt(ranges[`v${family}`], words));
}

/**
 * Counts the known places at which at least one source names the right country: no merge strategy can have more.
 *
 * @param sources ranges of both families of each source; otherwise as {@link comparePlaces}
 */
export function boundPlaces(sources, places, countries) {
  return countPlaces(places, countries, ({ family, words, value }) => {
    const found = sources.map((ranges) => valueAt(ranges[`v${family}`], words));
    return found.includes(value) ? value : found[0];
  });
}

/** First address of each range as a number, and one past the last address of the family at the end. */
function bounds({ family, count, first }) {
  const starts = Array.from({ length: count }, (_, i) =>
    family === 4 ? first[i] : first.slice(4 * i, 4 * i + 4).reduce((sum, word) => (sum << 32n) | BigInt(word), 0n),
  );
  starts.push(family === 4 ? 2 ** 32 : 1n << 128n);
  return starts;
}

/**
 * Compares two lists of ranges wherever both name a country and a registry has delegated the space.
 *
 * @param delegations ranges of one family; each range with a country counts as one delegation, so neighboring delegations
 *   to one country count as one
 * @returns shares from 0 to 1: `addresses` that agree, `delegations` that agree (one that agrees in part counts as that
 *   part), `eu`, addresses with another EU flag, and `everywhere`: addresses that agree, delegated or not
 */
export function compareRanges(ranges, other, delegations, { inEu }) {
  const lists = [ranges, other, delegations];
  const starts = lists.map(bounds);
  const at = [0, 0, 0];
  const end = starts[0].at(-1);
  let [total, agreeing, euDiffers] = [0, 0, 0];
  let [delegationCount, delegationShare] = [0, 0];
  let [compared, same] = [0, 0];
  let [named, sameNamed] = [0, 0];
  for (let position = starts[0][0]; position < end; ) {
    const next = starts.reduce((least, list, k) => (list[at[k] + 1] < least ? list[at[k] + 1] : least), end);
    const [a, b, delegated] = lists.map(({ value }, k) => value[at[k]]);
    if (a !== 0 && b !== 0) {
      named += Number(next - position);
      if (a === b) sameNamed += Number(next - position);
    }
    if (a !== 0 && b !== 0 && delegated !== 0) {
      const size = Number(next - position);
      compared += size;
      if (a === b) same += size;
      if (inEu[a] !== inEu[b]) euDiffers += size;
    }
    for (let k = 0; k < lists.length; k++) if (starts[k][at[k] + 1] === next) at[k]++;
    if (starts[2][at[2]] === next && compared > 0) {
      delegationCount++;
      delegationShare += same / compared;
      total += compared;
      agreeing += same;
      compared = 0;
      same = 0;
    }
    position = next;
  }
  return {
    addresses: agreeing / total,
    delegations: delegationShare / delegationCount,
    eu: euDiffers / total,
    everywhere: sameNamed / named,
  };
}
