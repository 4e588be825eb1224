/**
 * Finds the block of an address: the largest CIDR block around it within which everything that was asked for is the same. It
 * follows from the bounds of the range of such addresses (../asked-ranges.ts) that has the address.
 */
import {
  KEPT_FAMILY,
  KEPT_HIGH,
  KEPT_LOW,
  KEPT_NETWORK,
  KEPT_PREFIX,
  NO_PREFIX,
  SCHEME_6TO4,
  SCHEME_NAT64,
  SCHEME_TEREDO,
} from '../abi';
import { IPV4 } from './address';
import { COLON, DOT } from './ascii';
import { findRange } from './lookup';
import {
  askedAnswer4,
  askedAnswer6,
  askedCount4,
  askedCount6,
  askedIndex4,
  askedLevelCount6,
  askedLevels6,
  askedLow6,
  askedScheme6,
  askedStart4,
} from './settings';
import { putByte, putDecimal, putHex } from './slot';
import { BIAS } from './tables';

const SLASH: u8 = 47;

/** The ranges of the last IPv4 and IPv6 address. */
let range4: u32 = 0;
let range6: u32 = 0;

/** Returns the length of the prefix that two different addresses have in common. */
@inline function common6(high: u64, low: u64, otherHigh: u64, otherLow: u64): u32 {
  return high == otherHigh ? 64 + <u32>clz(low ^ otherLow) : <u32>clz(high ^ otherHigh);
}

/** Returns the prefix length of the block of an IPv4 address: one bit more than what it has in common with a neighbor of its range.
 * Sets `range4`. */
function prefix4(address: u32): u32 {
  const entry = askedIndex4 + ((<usize>(address >> 16)) << 2);
  let range: i32 = load<i32>(entry) - 1;
  let left: i32 = load<i32>(entry, 4) - 1 - range;
  while (left > 0) {
    const half = (left + 1) >> 1;
    range = load<u32>(askedStart4 + ((<usize>(range + half)) << 2)) <= address ? range + half : range;
    left -= half;
  }
  range4 = <u32>range;
  let prefix: u32 = 0;
  if (range > 0) prefix = <u32>clz(address ^ (load<u32>(askedStart4 + ((<usize>range) << 2)) - 1)) + 1;
  if (<u32>range + 1 < askedCount4) {
    prefix = max(prefix, <u32>clz(address ^ load<u32>(askedStart4 + ((<usize>(range + 1)) << 2))) + 1);
  }
  return prefix;
}

/** The same for an IPv6 address; sets `range6`. */
function prefix6(high: u64, low: u64): u32 {
  const range = findRange(askedLevels6, askedLevelCount6, askedLow6, askedCount6, <i64>(high ^ BIAS), low);
  range6 = range;
  const highs: usize = load<u32>(askedLevels6 + ((<usize>(askedLevelCount6 - 1)) << 2));
  let prefix: u32 = 0;
  if (range > 0) {
    const startHigh = load<u64>(highs + ((<usize>range) << 3)) ^ BIAS;
    const startLow = load<u64>(askedLow6 + ((<usize>range) << 3));
    prefix = common6(high, low, startHigh - u64(startLow == 0), startLow - 1) + 1;
  }
  if (range + 1 < askedCount6) {
    const nextHigh = load<u64>(highs + ((<usize>(range + 1)) << 3)) ^ BIAS;
    prefix = max(prefix, common6(high, low, nextHigh, load<u64>(askedLow6 + ((<usize>(range + 1)) << 3))) + 1);
  }
  return prefix;
}

@inline function answer4(): u32 {
  return load<u32>(askedAnswer4 + ((<usize>range4) << 2));
}

/**
 * Writes the prefix length of the block of an address that was kept, and its network. An embedded IPv4 address decides; its prefix
 * is shifted.
 */
export function findBlock(kept: usize): void {
  const low = load<u64>(kept, KEPT_LOW);
  if (load<u32>(kept, KEPT_FAMILY) == IPV4) {
    store<u32>(kept, prefix4(<u32>low), KEPT_PREFIX);
    store<u32>(kept, answer4(), KEPT_NETWORK);
    return;
  }
  const high = load<u64>(kept, KEPT_HIGH);
  let prefix = prefix6(high, low);
  let network = load<u32>(askedAnswer6 + ((<usize>range6) << 2));
  const scheme = load<u32>(askedScheme6 + ((<usize>range6) << 2));
  if (scheme != 0) {
    const inside = prefix4(scheme == SCHEME_6TO4 ? <u32>(high >> 16) : scheme == SCHEME_NAT64 ? <u32>low : ~(<u32>low));
    network = answer4();
    // The 64 bits before the IPv4 address of Teredo vary, so its addresses are in no block.
    if (scheme == SCHEME_TEREDO) prefix = NO_PREFIX;
    else prefix = max(prefix, (scheme == SCHEME_6TO4 ? 16 : 96) + inside);
  }
  store<u32>(kept, prefix, KEPT_PREFIX);
  store<u32>(kept, network, KEPT_NETWORK);
}

/** Puts out an IPv6 address in the form of RFC 5952. */
function putIPv6(high: u64, low: u64): void {
  // The longest run of zero groups, the first of equally long ones; a single one is not shortened.
  let runAt: u32 = 8;
  let runLength: u32 = 1;
  let zeros: u32 = 0;
  for (let i: u32 = 0; i < 8; i++) {
    zeros = groupOf(high, low, i) == 0 ? zeros + 1 : 0;
    if (zeros <= runLength) continue;
    runLength = zeros;
    runAt = i + 1 - zeros;
  }
  for (let i: u32 = 0; i < 8; ) {
    if (i == runAt) {
      putByte(<u8>COLON);
      putByte(<u8>COLON);
      i += runLength;
      continue;
    }
    if (i > 0 && i != runAt + runLength) putByte(<u8>COLON);
    putHex(groupOf(high, low, i++));
  }
}

@inline function groupOf(high: u64, low: u64, i: u32): u32 {
  return <u32>((i < 4 ? high : low) >> <u64>(48 - 16 * (i & 3))) & 0xffff;
}

/** Puts out the block of an address that was kept. */
export function putBlock(kept: usize): void {
  const prefix = load<u32>(kept, KEPT_PREFIX);
  const low = load<u64>(kept, KEPT_LOW);
  if (load<u32>(kept, KEPT_FAMILY) == IPV4) {
    const address: u32 = prefix == 0 ? 0 : <u32>low & (<u32>-1 << (32 - prefix));
    putDecimal(address >> 24);
    putByte(<u8>DOT);
    putDecimal((address >> 16) & 255);
    putByte(<u8>DOT);
    putDecimal((address >> 8) & 255);
    putByte(<u8>DOT);
    putDecimal(address & 255);
  } else {
    const all = <u64>-1;
    const highMask: u64 = prefix == 0 ? 0 : prefix >= 64 ? all : all << <u64>(64 - prefix);
    const lowMask: u64 = prefix <= 64 ? 0 : all << <u64>(128 - prefix);
    putIPv6(load<u64>(kept, KEPT_HIGH) & highMask, low & lowMask);
  }
  putByte(SLASH);
  putDecimal(prefix);
}
