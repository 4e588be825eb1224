/**
 * Which record answers an address: src/rangefile/search.ts and the embedded addresses of src/address/embedded.ts. Addresses
 * are looked up many at a time, step by step, so that none of them waits for memory alone.
 */
import { high, IPV4, low, NO_ADDRESS, parseAddress } from './address';
import {
  ANSWERED,
  buckets4,
  count6,
  crowded4,
  levelCount,
  levels6,
  low4,
  low6,
  NAT64,
  outcomes,
  record4,
  record6,
  SIX_TO_FOUR,
  TEREDO,
} from './config';
import { answers, queries4, queries6 } from './slot';

/** Ranges up to which a bucket is searched eight at a time; in a larger one it is halved first. */
const FEW: u32 = 24;

/** A query for an IPv4 address: 0 u32 where its answer goes, 4 u32 address; 8 u32 first of the ranges that begin with its
 * first 16 bits, 12 u32 how many do. */
const QUERY4_BYTES: usize = 16;

/** A query for an IPv6 address: 0 i64 its first half, biased, 8 u64 its second half, 16 u32 where its answer goes, 20 u32
 * how far the search is. */
const QUERY6_BYTES: usize = 24;

/** Turns the order of unsigned numbers into that of signed ones. */
const BIAS: u64 = 0x8000_0000_0000_0000;

/** Behind the last query. */
let end4: usize = 0;
let end6: usize = 0;
/** Keeps loads that only fetch into the cache from being left out. */
let fetched: u32 = 0;

export function startQueries(): void {
  end4 = queries4;
  end6 = queries6;
}

@inline function addIPv4(answer: usize, address: u32): void {
  store<u32>(end4, <u32>answer);
  store<u32>(end4, address, 4);
  end4 += QUERY4_BYTES;
}

/**
 * Asks for the address that was parsed last.
 *
 * @param answer where the record's number goes, 4 bytes; @param family as `parseAddress` said
 * @returns false where there was no address
 */
@inline export function addQuery(answer: usize, family: u32): bool {
  if (family == IPV4) addIPv4(answer, <u32>low);
  else if (family == NO_ADDRESS) return false;
  else {
    store<u64>(end6, high ^ BIAS);
    store<u64>(end6, low, 8);
    store<u32>(end6, <u32>answer, 16);
    store<u32>(end6, 0, 20);
    end6 += QUERY6_BYTES;
  }
  return true;
}

/**
 * Answers the queries that their first 16 bits alone decide. The others move together at the beginning of the list, and what
 * lies at the beginning of their ranges is fetched.
 */
function answerByBucket(): void {
  let touched: u32 = 0;
  let crowded = queries4;
  for (let query = queries4; query < end4; query += QUERY4_BYTES) {
    const answer = load<u32>(query);
    const address = load<u32>(query, 4);
    const entry = load<u32>(buckets4 + ((<usize>(address >> 16)) << 2));
    if ((entry & ANSWERED) != 0) {
      store<u32>(answer, entry ^ ANSWERED);
      continue;
    }
    const ranges = crowded4 + (<usize>entry << 3);
    const first = load<u32>(ranges);
    store<u32>(crowded, answer);
    store<u32>(crowded, address, 4);
    store<u32>(crowded, first, 8);
    store<u32>(crowded, load<u32>(ranges, 4), 12);
    crowded += QUERY4_BYTES;
    touched ^= load<u8>(low4 + (<usize>first << 1)) ^ load<u8>(record4 + (<usize>first << 1));
  }
  end4 = crowded;
  fetched ^= touched;
}

/** The record of an IPv4 address that ends in `rest`, where `count` ranges from `first` on begin with its first 16 bits. */
@inline function searchRanges(rest: u32, first: u32, count: u32): u32 {
  while (count > FEW) {
    const half = count >> 1;
    const above = <u32>load<u16>(low4 + ((<usize>(first + half)) << 1)) > rest;
    first = above ? first : first + half + 1;
    count = above ? half : count - half - 1;
  }
  // The first range that begins above the address; the answer is the one before it.
  const all = i16x8.splat(<i16>rest);
  const last = first + count;
  while (first < last) {
    const above = i16x8.bitmask(i16x8.gt_u(v128.load(low4 + ((<usize>first) << 1)), all));
    if (above != 0) {
      first = min(first + ctz(above), last);
      break;
    }
    first = min(first + 8, last);
  }
  return load<u16>(record4 + ((<usize>(first - 1)) << 1));
}

function answerIPv4(): void {
  answerByBucket();
  for (let query = queries4; query < end4; query += QUERY4_BYTES) {
    const record = searchRanges(load<u32>(query, 4) & 0xffff, load<u32>(query, 8), load<u32>(query, 12));
    store<u32>(load<u32>(query), record);
  }
}

/** The greatest key fills levels up, so it is not searched for: all that begins below it is above none of these. */
const GREATEST: i64 = i64.MAX_VALUE;

/** One level down: the last of a group's eight keys that is not above `half`, which is less than `GREATEST`. */
@inline function descend(level: usize, at: u32, half: i64): u32 {
  const group = level + (<usize>at << 6);
  const all = i64x2.splat(half);
  const above = i64x2.add(
    i64x2.add(i64x2.gt_s(v128.load(group), all), i64x2.gt_s(v128.load(group, 16), all)),
    i64x2.add(i64x2.gt_s(v128.load(group, 32), all), i64x2.gt_s(v128.load(group, 48), all)),
  );
  // Each key above counts -1; the others come first, and the first of all keys is above no address.
  return (at << 3) + 7 + <u32>i64x2.extract_lane(above, 0) + <u32>i64x2.extract_lane(above, 1);
}

/** The last IPv6 range whose start's first half is not above `half` (biased), which is less than `GREATEST`. */
function lastNotAbove(half: i64): u32 {
  let at: u32 = 0;
  for (let level: u32 = 0; level < levelCount; level++) {
    at = descend(load<u32>(levels6 + ((<usize>level) << 2)), at, half);
  }
  return at;
}

/** The range of an address, where several begin with the same first half and the last of them, `range`, is above it. */
function rangeAmong(range: u32, half: i64, rest: u64): u32 {
  let first: u32 = half == i64.MIN_VALUE ? 0 : lastNotAbove(half - 1) + 1;
  // Where ranges are out of order, which only a damaged file's are, none lies between.
  let count = first < range ? range - first : 0;
  while (count > 0) {
    const middle = count >> 1;
    if (load<u64>(low6 + ((<usize>(first + middle)) << 3)) > rest) count = middle;
    else {
      first += middle + 1;
      count -= middle + 1;
    }
  }
  return first - 1;
}

function answerIPv6(): void {
  let keys: usize = 0;
  for (let level: u32 = 0; level < levelCount; level++) {
    keys = load<u32>(levels6 + ((<usize>level) << 2));
    for (let query = queries6; query < end6; query += QUERY6_BYTES) {
      const half = load<i64>(query);
      store<u32>(query, descend(keys, load<u32>(query, 20), half == GREATEST ? half - 1 : half), 20);
    }
  }
  for (let query = queries6; query < end6; query += QUERY6_BYTES) {
    const half = load<i64>(query);
    const rest = load<u64>(query, 8);
    let range = half == GREATEST ? count6 - 1 : load<u32>(query, 20);
    if (load<i64>(keys + ((<usize>range) << 3)) == half && load<u64>(low6 + ((<usize>range) << 3)) > rest) {
      range = rangeAmong(range, half, rest);
    }
    const record: u32 = load<u16>(record6 + ((<usize>range) << 1));
    const answer = load<u32>(query, 16);
    store<u32>(answer, record);
    // An address that holds an IPv4 one is answered by that.
    const outcome = load<u8>(outcomes + record);
    if (outcome >= SIX_TO_FOUR) {
      if (outcome == SIX_TO_FOUR) addIPv4(answer, <u32>((<u64>half ^ BIAS) >> 16));
      else addIPv4(answer, outcome == NAT64 ? <u32>rest : ~(<u32>rest));
    }
  }
}

/** Answers all that was asked. */
export function answerQueries(): void {
  if (end6 > queries6) answerIPv6();
  answerIPv4();
}

/**
 * The record that answers the address text `from … to`.
 *
 * @returns its number, or -1 where the text is no address
 */
export function recordOf(from: usize, to: usize): i32 {
  startQueries();
  if (!addQuery(answers, parseAddress(from, to))) return -1;
  answerQueries();
  return load<u32>(answers);
}
