/** Counts how often the registry's lineage confirms IPv4 locations of other lineages that contradict the registry. */

/**
 * Addresses of an IPv4 /24, the longest prefix that networks commonly accept in BGP (RFC 7454 §6.1.3). A geolocation row of
 * this size is about one announced network.
 */
const ANNOUNCED_ADDRESSES = 2 ** 8;

/** Bits after the prefix of the IPv4 blocks in which confirmed locations are counted: a block is a /12. */
const CONFIRMATION_BLOCK_BITS = 20;

/**
 * Locations for each confirmed one above which they are seldom confirmed. Of DB-IP's rows for American space, one in eight
 * or fewer is confirmed for Great Britain, Canada and Japan, where most are wrong, and one in four or five for most other
 * countries; truth/README.md has the measurements.
 */
const LOCATIONS_PER_CONFIRMED = 6;

/** Locations of a pair of countries below which the share of confirmed ones says nothing. */
const MIN_CONFIRMATION_ROWS = 30;

/** An IPv4 row of geolocation that names another country than the registry. */
export interface Location {
  /** Layer of its source. */
  layer: number;
  /** First address. */
  first: number;
  /** Last address, inclusive. */
  last: number;
  /** Its country and that in the registry, as values of the candidates. */
  country: number;
  registered: number;
}

/** Values of candidates are below this. */
const VALUES = 2 ** 16;

/** Adds up rows or addresses, and those of them that are confirmed. */
class Tally {
  total = 0;
  #confirmed = 0;

  add(amount: number, isConfirmed: boolean): void {
    this.total += amount;
    if (isConfirmed) this.#confirmed += amount;
  }

  get isSeldomConfirmed(): boolean {
    return LOCATIONS_PER_CONFIRMED * this.#confirmed < this.total;
  }
}

/** Returns the tally of a key; a new one if there is none. */
function tallyOf(tallies: Map<number, Tally>, key: number): Tally {
  let tally = tallies.get(key);
  if (tally === undefined) {
    tally = new Tally();
    tallies.set(key, tally);
  }
  return tally;
}

const addresses = ({ first, last }: Location): number => last - first + 1;

/** Returns the key of a source's pair of countries: 5 bits for the layer, 16 for each country. */
function pairKey({ layer, country, registered }: Location): number {
  return (layer * VALUES + registered) * VALUES + country;
}

/** Returns the key of a source's country in a block: 12 bits for the block, 5 for the layer, 16 for the country. */
function blockKey({ layer, first, country }: Location): number {
  return ((first >>> CONFIRMATION_BLOCK_BITS) * 2 ** 5 + layer) * VALUES + country;
}

/** Kinds of locations that are seldom confirmed. */
export class DoubtfulLocations {
  /** Keys of the pairs of countries that are seldom confirmed. */
  readonly pairs: ReadonlySet<number>;
  /** Keys of the countries in a block that are not seldom confirmed there, as far as a pair has the country. */
  readonly confirmedBlocks: ReadonlySet<number>;

  constructor(pairs: Iterable<number>, confirmedBlocks: Iterable<number>) {
    this.pairs = new Set(pairs);
    this.confirmedBlocks = new Set(confirmedBlocks);
  }

  /**
   * Returns whether locations of this kind are seldom confirmed: neither for this pair of countries in general, nor for
   * this country nearby. One of the size of an announced network is never of this kind.
   */
  has(location: Location): boolean {
    if (addresses(location) === ANNOUNCED_ADDRESSES) return false;
    return this.pairs.has(pairKey(location)) && !this.confirmedBlocks.has(blockKey(location));
  }

  /** Returns the same with other values for the countries. */
  withCountries(numberOf: (value: number) => number): DoubtfulLocations {
    const other = (key: number): number => key - (key % VALUES) + numberOf(key % VALUES);
    return new DoubtfulLocations(
      [...this.pairs].map((key) => {
        const rest = Math.floor(key / VALUES);
        return other(rest) * VALUES + numberOf(key % VALUES);
      }),
      [...this.confirmedBlocks].map(other),
    );
  }
}

/**
 * Tallies of locations: by pair of countries, in rows, and by country and block, in addresses. Each row counts once, in
 * the block of its first address.
 */
export class Confirmations {
  readonly #byPair = new Map<number, Tally>();
  readonly #byBlock = new Map<number, Tally>();

  /** @param isConfirmed whether the registry's lineage names the location's country at its first address */
  add(location: Location, isConfirmed: boolean): void {
    tallyOf(this.#byPair, pairKey(location)).add(1, isConfirmed);
    tallyOf(this.#byBlock, blockKey(location)).add(addresses(location), isConfirmed);
  }

  /** Returns the kinds that are seldom confirmed. */
  doubtful(): DoubtfulLocations {
    const pairs = [...this.#byPair].filter(
      ([, tally]) => tally.total >= MIN_CONFIRMATION_ROWS && tally.isSeldomConfirmed,
    );
    const countries = new Set(pairs.map(([key]) => key % VALUES));
    const blocks = [...this.#byBlock].filter(([key, tally]) => countries.has(key % VALUES) && !tally.isSeldomConfirmed);
    return new DoubtfulLocations(
      pairs.map(([key]) => key),
      blocks.map(([key]) => key),
    );
  }
}
