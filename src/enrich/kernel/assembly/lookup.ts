/**
 * Finds the record of an address, as src/rangefile/search.ts and src/address/embedded.ts do. Many addresses are looked up
 * together, step by step, so that they wait for memory at the same time.
 */
import {
  CANDIDATE_BYTES,
  CANDIDATES,
  CROWDED_BYTES,
  KEPT_BYTES,
  KEPT_FAMILY,
  KEPT_FROM,
  KEPT_HIGH,
  KEPT_LENGTH,
  KEPT_LOW,
  KEPT_ROW,
  KEPT_ROW6,
  KEPT_STATE,
  KEPT_TO,
  DAMAGED_STATE,
  NO_STATE,
  OUTCOME_6TO4,
  OUTCOME_COUNTRY,
  OUTCOME_NAT64,
  OUTCOME_NO_COUNTRY,
  PICK_FIRST,
  PICK_LAST,
  PICK_PUBLIC,
  QUERY4_BYTES,
  QUERY6_BYTES,
  ROW_BYTES,
  ROW_RECORD,
} from '../abi';
import { high, IPV4, low, NO_ADDRESS, textEnd, textStart } from './address';
import { QUOTE } from './ascii';
import { longestText, parseText } from './lenient';
import {
  buckets4,
  candidates,
  counts,
  crowded4,
  hasTables6,
  isDirect,
  keptOfCandidates,
  keptOfValues,
  levelCount6,
  levels6,
  locates,
  low6,
  outcomes,
  pick,
  queries4,
  queries6,
  record4,
  record6,
  recordCount,
  rows4,
  rows6,
  scratch,
  start4,
  steps,
  timelines,
  values,
} from './settings';
import { closingQuote, inputPosition, quoteOrBackslash, setSource, unescape } from './strings';
import { BIAS, DECIDED, recordOfRange } from './tables';

/** Ranges up to which a bucket is searched at once. A larger one is halved first. */
const FEW: u32 = 24;

// An IPv4 query: where its result goes, the address, the ranges that begin with its first 16 bits, and the state of the history.
const QUERY4_RESULT: usize = 0;
const QUERY4_ADDRESS: usize = 4;
const QUERY4_FIRST: usize = 8;
const QUERY4_COUNT: usize = 12;
const QUERY4_STATE: usize = 16;

// An IPv6 query: the halves of the address, the first one biased; where its result goes; the range found so far; the state.
const QUERY6_HIGH: usize = 0;
const QUERY6_LOW: usize = 8;
const QUERY6_RESULT: usize = 16;
const QUERY6_RANGE: usize = 20;
const QUERY6_STATE: usize = 24;

// A candidate: its record, and the address of the value that it is for.
const CANDIDATE_RECORD: usize = 0;
const CANDIDATE_VALUE: usize = 4;

/** The ends of the queries and of the candidates. */
let end4: usize = 0;
let end6: usize = 0;
let candidatesEnd: usize = 0;
/** The state of the history that holds for the queries that are added. */
let state: u32 = 0;
/** Keeps the compiler from removing loads that only fetch into the cache. */
let fetched: u32 = 0;

export function startQueries(): void {
  end4 = queries4;
  end6 = queries6;
  candidatesEnd = candidates;
}

/** Sets the state of the history for the queries that are added from now on. */
@inline export function setState(next: u32): void {
  state = next;
}

/**
 * Returns the record of a range in a state, if it has a row, which is kept with the address, or a timeline. Others are direct.
 *
 * @param found what `recordOfRange` returned; @param rows the rows of the family; @param result where the record goes
 */
function indirectRecord(found: u32, state: u32, rows: usize, result: usize): u32 {
  if (rows != 0) {
    const row = rows + <usize>found * ROW_BYTES;
    const kept = result < candidates ? keptOfValue(result) : keptOfCandidate(result);
    store<u32>(kept, <u32>row, KEPT_ROW);
    if (rows == rows6) store<u32>(kept, <u32>row, KEPT_ROW6);
    found = load<u32>(row, ROW_RECORD);
  }
  return timelines == 0 ? found : recordOfTimeline(found, state);
}

/** Returns the record that a timeline has in a state. A step is the record, and the state from which on it holds. */
function recordOfTimeline(timeline: u32, state: u32): u32 {
  // These numbers are no records, see lookUpValues.
  if (state == NO_STATE) return recordCount + 2;
  if (state == DAMAGED_STATE) return recordCount + 3;
  const first = timelines + (<usize>timeline << 2);
  const end = steps + (<usize>load<u32>(first, 4) << 2);
  let step = steps + (<usize>load<u32>(first) << 2);
  while (step + 4 < end && <u32>load<u16>(step + 4, 2) <= state) step += 4;
  return load<u16>(step);
}

/** Returns whether a record, or the number that a value without a record gets, is a country. */
@inline export function isCountry(record: u32): bool {
  return record < recordCount && load<u8>(outcomes + record) == <u8>OUTCOME_COUNTRY;
}

/** Returns whether a value with a record needs no further candidate. */
@inline export function isSettled(record: u32): bool {
  return pick == PICK_PUBLIC ? isCountry(record) : pick == PICK_FIRST && record < recordCount;
}

/** Returns what is kept of the address of a value. */
@inline export function keptOfValue(value: usize): usize {
  return keptOfValues + ((value - values) >> 2) * KEPT_BYTES;
}

@inline function keptOfCandidate(candidate: usize): usize {
  return keptOfCandidates + ((candidate - candidates) / CANDIDATE_BYTES) * KEPT_BYTES;
}

@inline function copy48(to: usize, from: usize): void {
  v128.store(to, v128.load(from));
  v128.store(to, v128.load(from, 16), 16);
  v128.store(to, v128.load(from, 32), 32);
}

/** Keeps the address that was parsed last, and its text, which has at most 45 bytes. */
@inline function keepAddress(to: usize, family: u32): void {
  copy48(to, textStart);
  store<u32>(to, <u32>(textEnd - textStart), KEPT_LENGTH);
  store<u32>(to, family, KEPT_FAMILY);
  store<u64>(to, high, KEPT_HIGH);
  store<u64>(to, low, KEPT_LOW);
  store<u32>(to, state, KEPT_STATE);
  if (!locates) return;
  store<u32>(to, <u32>inputPosition(textStart), KEPT_FROM);
  store<u32>(to, <u32>inputPosition(textEnd), KEPT_TO);
}

@inline function addIPv4(result: usize, address: u32): void {
  store<u32>(end4, <u32>result, QUERY4_RESULT);
  store<u32>(end4, address, QUERY4_ADDRESS);
  store<u32>(end4, state, QUERY4_STATE);
  end4 += QUERY4_BYTES;
}

/**
 * Adds a query for the address of a value, which was parsed last.
 *
 * @param family what `parseAddress` returned
 * @returns false if there was no address
 */
@inline export function queryValue(value: usize, family: u32): bool {
  if (keptOfValues != 0 && family != NO_ADDRESS) keepAddress(keptOfValue(value), family);
  return addQuery(value, family);
}

/**
 * Adds a query for the address that was parsed last.
 *
 * @param result where its record goes, 4 bytes; @param family what `parseAddress` returned
 * @returns false if there was no address
 */
@inline function addQuery(result: usize, family: u32): bool {
  if (family == IPV4) addIPv4(result, <u32>low);
  else if (family == NO_ADDRESS) return false;
  else {
    store<u64>(end6, high ^ BIAS, QUERY6_HIGH);
    store<u64>(end6, low, QUERY6_LOW);
    store<u32>(end6, <u32>result, QUERY6_RESULT);
    store<u32>(end6, 0, QUERY6_RANGE);
    store<u32>(end6, state, QUERY6_STATE);
    end6 += QUERY6_BYTES;
  }
  return true;
}

/**
 * Resolves the queries that are decided by their first 16 bits. The others move to the beginning of the list, and the first
 * of their ranges are fetched into the cache.
 */
function resolveByBucket(): void {
  let touched: u32 = 0;
  let crowded = queries4;
  for (let query = queries4; query < end4; query += QUERY4_BYTES) {
    const result = load<u32>(query, QUERY4_RESULT);
    const address = load<u32>(query, QUERY4_ADDRESS);
    const entry = load<u32>(buckets4 + ((<usize>(address >> 16)) << 2));
    if ((entry & DECIDED) != 0) {
      const found = entry ^ DECIDED;
      store<u32>(result, isDirect ? found : indirectRecord(found, load<u32>(query, QUERY4_STATE), rows4, result));
      continue;
    }
    const ranges = crowded4 + <usize>entry * CROWDED_BYTES;
    const first = load<u32>(ranges);
    store<u32>(crowded, result, QUERY4_RESULT);
    store<u32>(crowded, address, QUERY4_ADDRESS);
    store<u32>(crowded, first, QUERY4_FIRST);
    store<u32>(crowded, load<u32>(ranges, 4), QUERY4_COUNT);
    store<u32>(crowded, load<u32>(query, QUERY4_STATE), QUERY4_STATE);
    crowded += QUERY4_BYTES;
    touched ^= load<u8>(start4 + (<usize>first << 1));
    touched ^= rows4 == 0 ? recordOfRange(record4, first) : load<u32>(rows4 + <usize>first * ROW_BYTES);
  }
  end4 = crowded;
  fetched ^= touched;
}

/** Returns which of eight ranges begin above an address, of whose last 16 bits they have theirs. */
@inline function startsAbove(starts: usize, rest: u32): u32 {
  return i16x8.bitmask(i16x8.gt_u(v128.load(starts), i16x8.splat(<i16>rest)));
}

/** Returns the record of an IPv4 address whose last 16 bits are `rest`. Its first 16 bits begin `count` ranges from `first` on. */
@inline function searchRanges(rest: u32, first: u32, count: u32): u32 {
  while (count > FEW) {
    const half = count >> 1;
    const above = <u32>load<u16>(start4 + ((<usize>(first + half)) << 1)) > rest;
    first = above ? first : first + half + 1;
    count = above ? half : count - half - 1;
  }
  // The range before the first one that begins above the address has it. All are compared, since a loop would be mispredicted.
  const starts = start4 + (<usize>first << 1);
  const above = startsAbove(starts, rest) | (startsAbove(starts + 16, rest) << 8) | (startsAbove(starts + 32, rest) << 16);
  return recordOfRange(record4, first + ctz(above | (1 << count)) - 1);
}

function resolveIPv4(): void {
  resolveByBucket();
  for (let query = queries4; query < end4; query += QUERY4_BYTES) {
    const rest = load<u32>(query, QUERY4_ADDRESS) & 0xffff;
    const found = searchRanges(rest, load<u32>(query, QUERY4_FIRST), load<u32>(query, QUERY4_COUNT));
    const result: usize = load<u32>(query, QUERY4_RESULT);
    store<u32>(result, isDirect ? found : indirectRecord(found, load<u32>(query, QUERY4_STATE), rows4, result));
  }
}

/** The greatest key. It pads the levels, so searches are for smaller ones only. */
const GREATEST: i64 = i64.MAX_VALUE;

/** Descends one level: returns the last of a group's eight keys that is not above `half`, which is less than `GREATEST`. */
@inline function descend(level: usize, at: u32, half: i64): u32 {
  const group = level + (<usize>at << 6);
  const all = i64x2.splat(half);
  const above = i64x2.add(
    i64x2.add(i64x2.gt_s(v128.load(group), all), i64x2.gt_s(v128.load(group, 16), all)),
    i64x2.add(i64x2.gt_s(v128.load(group, 32), all), i64x2.gt_s(v128.load(group, 48), all)),
  );
  // Each key above adds -1. The very first key is above no address.
  return (at << 3) + 7 + <u32>i64x2.extract_lane(above, 0) + <u32>i64x2.extract_lane(above, 1);
}

/** Returns the last IPv6 range whose start's first half is not above `half` (biased), which is less than `GREATEST`. */
function lastNotAbove(half: i64): u32 {
  let at: u32 = 0;
  for (let level: u32 = 0; level < levelCount6; level++) {
    at = descend(load<u32>(levels6 + ((<usize>level) << 2)), at, half);
  }
  return at;
}

/** Returns the range of an address if several begin with its first half and the last of them, `range`, begins above it. */
function rangeAmong(range: u32, half: i64, rest: u64): u32 {
  let first: u32 = half == i64.MIN_VALUE ? 0 : lastNotAbove(half - 1) + 1;
  // In a damaged file, whose ranges are out of order, none may be between.
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

/** Reads the columns of IPv6 addresses, and makes their tables. */
@external('env', 'readIPv6')
declare function readIPv6(): void;

function resolveIPv6(): void {
  if (!hasTables6) readIPv6();
  const stateOfNext = state;
  let keys: usize = 0;
  for (let level: u32 = 0; level < levelCount6; level++) {
    keys = load<u32>(levels6 + ((<usize>level) << 2));
    for (let query = queries6; query < end6; query += QUERY6_BYTES) {
      const half = load<i64>(query, QUERY6_HIGH);
      const range = descend(keys, load<u32>(query, QUERY6_RANGE), half == GREATEST ? half - 1 : half);
      store<u32>(query, range, QUERY6_RANGE);
    }
  }
  for (let query = queries6; query < end6; query += QUERY6_BYTES) {
    const half = load<i64>(query, QUERY6_HIGH);
    const rest = load<u64>(query, QUERY6_LOW);
    let range = half == GREATEST ? load<u32>(counts, 4) - 1 : load<u32>(query, QUERY6_RANGE);
    if (load<i64>(keys + ((<usize>range) << 3)) == half && load<u64>(low6 + ((<usize>range) << 3)) > rest) {
      range = rangeAmong(range, half, rest);
    }
    state = load<u32>(query, QUERY6_STATE);
    const result: usize = load<u32>(query, QUERY6_RESULT);
    const found = recordOfRange(record6, range);
    const record = isDirect ? found : indirectRecord(found, state, rows6, result);
    store<u32>(result, record);
    // If the address embeds an IPv4 address, that one decides.
    const outcome: u32 = record < recordCount ? load<u8>(outcomes + record) : OUTCOME_NO_COUNTRY;
    if (outcome >= <u32>OUTCOME_6TO4) {
      if (outcome == OUTCOME_6TO4) addIPv4(result, <u32>((<u64>half ^ BIAS) >> 16));
      else addIPv4(result, outcome == OUTCOME_NAT64 ? <u32>rest : ~(<u32>rest));
    }
  }
  state = stateOfNext;
}

/**
 * Chooses among the candidates for each value: by default the first one with a country, otherwise the first address. A value
 * without an address so far is `recordCount` or more.
 */
function chooseCandidates(): void {
  for (let candidate = candidates; candidate < candidatesEnd; candidate += CANDIDATE_BYTES) {
    const record = load<u32>(candidate, CANDIDATE_RECORD);
    const value: usize = load<u32>(candidate, CANDIDATE_VALUE);
    const current = load<u32>(value);
    const isBetter = pick == PICK_PUBLIC ? isCountry(record) && !isCountry(current) : pick == PICK_LAST;
    if (current < recordCount && !isBetter) continue;
    store<u32>(value, record);
    if (keptOfValues != 0) memory.copy(keptOfValue(value), keptOfCandidate(candidate), KEPT_BYTES);
  }
}

/** Resolves all queries. */
export function resolveQueries(): void {
  if (end6 > queries6) resolveIPv6();
  resolveIPv4();
  chooseCandidates();
}

/**
 * Adds the address that was parsed last as a candidate for a value; see `chooseCandidates`.
 *
 * @returns whether the value needs no further candidate
 */
export function addCandidate(value: usize, family: u32): bool {
  if (keptOfValues != 0) keepAddress(keptOfCandidate(candidatesEnd), family);
  addQuery(candidatesEnd + CANDIDATE_RECORD, family);
  store<u32>(candidatesEnd, <u32>value, CANDIDATE_VALUE);
  candidatesEnd += CANDIDATE_BYTES;
  if (candidatesEnd < candidates + CANDIDATES * CANDIDATE_BYTES) return false;
  resolveQueries();
  startQueries();
  return isSettled(load<u32>(value));
}

/** Parses the address in the string whose text begins at `from`; returns its family, see `parseAddress`. */
@inline export function parseString(from: usize): u32 {
  const end = quoteOrBackslash(from);
  if (load<u8>(end) == <u8>QUOTE) return parseText(from, end);
  const length = unescape(from, closingQuote(end), scratch, longestText());
  if (locates) setSource(from, scratch);
  return length >= 0 ? parseText(scratch, scratch + length) : NO_ADDRESS;
}
