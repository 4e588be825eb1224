/**
 * Finds the block of an address: the largest CIDR block around it within which everything that was asked for is the same. It
 * follows from the bounds of the ranges with the same answers, which the row of its range has.
 */
import {
  KEPT_FAMILY,
  KEPT_HIGH,
  KEPT_LOW,
  KEPT_ROW,
  KEPT_ROW6,
  NO_PREFIX,
  OUTCOME_6TO4,
  OUTCOME_TEREDO,
  ROW_BLOCK,
  ROW_BLOCK_END,
  ROW_RECORD,
} from '../abi';
import { IPV4 } from './address';
import { COLON, DOT, SLASH } from './ascii';
import { decimals, levelCount6, levels6, low6, outcomes, scratch } from './settings';
import { outputEnd, putByte, putDecimal, setOutputEnd } from './slot';
import { BIAS, bottomLevel } from './tables';

/** Returns the length of the prefix that two different addresses have in common. */
@inline function common6(high: u64, low: u64, otherHigh: u64, otherLow: u64): u32 {
  return high == otherHigh ? 64 + <u32>clz(low ^ otherLow) : <u32>clz(high ^ otherHigh);
}

/** Returns the prefix length of the block of an IPv4 address: one bit more than what it has in common with a neighbor of the ranges. */
function prefix4(address: u32, row: usize): u32 {
  const first = load<u32>(row, ROW_BLOCK);
  const next = load<u32>(row, ROW_BLOCK_END);
  const below: u32 = first == 0 ? 0 : <u32>clz(address ^ (first - 1)) + 1;
  return next == 0 ? below : max(below, <u32>clz(address ^ next) + 1);
}

/** The same for an IPv6 address. */
function prefix6(high: u64, low: u64, row: usize): u32 {
  const highs = bottomLevel(levels6, levelCount6);
  const first: usize = load<u32>(row, ROW_BLOCK);
  const next: usize = load<u32>(row, ROW_BLOCK_END);
  let prefix: u32 = 0;
  if (first > 0) {
    const startLow = load<u64>(low6 + (first << 3));
    const startHigh = load<u64>(highs + (first << 3)) ^ BIAS;
    prefix = common6(high, low, startHigh - u64(startLow == 0), startLow - 1) + 1;
  }
  if (next != 0) {
    prefix = max(prefix, common6(high, low, load<u64>(highs + (next << 3)) ^ BIAS, load<u64>(low6 + (next << 3))) + 1);
  }
  return prefix;
}

/** Returns the prefix length of the block of an address that was kept. An embedded IPv4 address decides; its prefix is shifted. */
export function blockPrefix(kept: usize): u32 {
  const low = load<u64>(kept, KEPT_LOW);
  const row: usize = load<u32>(kept, KEPT_ROW);
  if (load<u32>(kept, KEPT_FAMILY) == IPV4) return prefix4(<u32>low, row);
  const high = load<u64>(kept, KEPT_HIGH);
  const row6: usize = load<u32>(kept, KEPT_ROW6);
  const prefix = prefix6(high, low, row6);
  if (row == row6) return prefix;
  const outcome: u32 = load<u8>(outcomes + load<u32>(row6, ROW_RECORD));
  // The 64 bits before the IPv4 address of Teredo vary, so its addresses are in no block.
  if (outcome == OUTCOME_TEREDO) return NO_PREFIX;
  if (outcome == OUTCOME_6TO4) return max(prefix, 16 + prefix4(<u32>(high >> 16), row));
  return max(prefix, 96 + prefix4(<u32>low, row));
}

/** Puts out an IPv4 address. */
export function putIPv4(address: u32): void {
  let to = outputEnd();
  for (let i = 0; i < 4; i++, address <<= 8) {
    const digits = load<u32>(decimals + ((<usize>address >> 24) << 2));
    store<u32>(to, digits);
    to += digits >> 24;
    store<u8>(to++, <u8>DOT);
  }
  setOutputEnd(to - 1);
}

/** Reverses the bytes of each half of an address: its halves become its 16 bytes in their order, and the other way round. */
@inline export function reverseHalves(halves: v128): v128 {
  return i8x16.shuffle(halves, halves, 7, 6, 5, 4, 3, 2, 1, 0, 15, 14, 13, 12, 11, 10, 9, 8);
}

@inline export function vectorOf(high: u64, low: u64): v128 {
  return i64x2.replace_lane(i64x2.splat(<i64>high), 1, <i64>low);
}

/** Returns the text of hexadecimal digits, one in each byte. */
@inline function hexText(digits: v128): v128 {
  return i8x16.swizzle(i8x16(48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 97, 98, 99, 100, 101, 102), digits);
}

/** Writes the first group of an address, or of its rest, and a colon. @param digits its four digits; @returns the end */
@inline function writeGroup(to: usize, rest: u64, digits: usize): usize {
  // Of leading zeros, the last digit stays.
  const zeros = <usize>clz(rest | ((<u64>1) << 48)) >> 2;
  store<u64>(to, (((<u64>COLON) << 32) | <u64>load<u32>(digits)) >> <u64>(zeros << 3));
  return to + 5 - zeros;
}

/** Writes one of the groups, whose digits are in the scratch memory. */
@inline function writeGroupAt(to: usize, high: u64, low: u64, i: u32): usize {
  return writeGroup(to, (i < 4 ? high : low) << <u64>((i & 3) << 4), scratch + (<usize>i << 2));
}

@inline function writeGroups(to: usize, half: u64, digits: usize): usize {
  to = writeGroup(to, half, digits);
  to = writeGroup(to, half << 16, digits + 4);
  to = writeGroup(to, half << 32, digits + 8);
  return writeGroup(to, half << 48, digits + 12);
}

/** Puts out an IPv6 address in the form of RFC 5952. @param isDotted whether the last 32 bits are an IPv4 address */
export function putIPv6(high: u64, low: u64, isDotted: bool): void {
  const count: u32 = isDotted ? 6 : 8;
  const bytes = reverseHalves(vectorOf(high, low));
  const nibble = i8x16.splat(15);
  const highs = v128.and(i16x8.shr_u(bytes, 4), nibble);
  const lows = v128.and(bytes, nibble);
  const digits = scratch;
  v128.store(digits, hexText(i8x16.shuffle(highs, lows, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)));
  v128.store(digits, hexText(i8x16.shuffle(highs, lows, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)), 16);
  // The longest run of zero groups, the first of equally long ones; a single one is not shortened.
  let runAt: u32 = 0;
  let runLength: u32 = 0;
  let zeroGroups = <u32>i16x8.bitmask(i16x8.eq(bytes, i16x8.splat(0))) & ((1 << count) - 1);
  for (; zeroGroups != 0; zeroGroups &= zeroGroups >> 1) {
    runAt = ctz(zeroGroups);
    runLength++;
  }
  let to = outputEnd();
  if (runLength > 1) {
    for (let i: u32 = 0; i < runAt; i++) to = writeGroupAt(to, high, low, i);
    // A colon is after the group before it.
    store<u16>(to, <u16>((COLON << 8) | COLON));
    to += runAt == 0 ? 2 : 1;
    for (let i = runAt + runLength; i < count; i++) to = writeGroupAt(to, high, low, i);
    if (!isDotted && runAt + runLength != 8) to--;
  } else if (isDotted) {
    for (let i: u32 = 0; i < count; i++) to = writeGroupAt(to, high, low, i);
  } else to = writeGroups(writeGroups(to, high, digits), low, digits + 16) - 1;
  setOutputEnd(to);
  if (isDotted) putIPv4(<u32>low);
}

/** Returns a mask of the first bits of 64, at most all. */
@inline export function maskOf(bits: u32): u64 {
  return bits == 0 ? 0 : <u64>-1 << <u64>(64 - bits);
}

/** Puts out an IPv6 address of which only a number of first bits stay. Parameters are those of {@link putIPv6}. */
export function putNetwork(high: u64, low: u64, bits: u32, isDotted: bool): void {
  putIPv6(high & maskOf(min(bits, 64)), low & maskOf(bits > 64 ? bits - 64 : 0), isDotted);
}

/** Puts out the block of an address that was kept. */
export function putBlock(kept: usize, prefix: u32): void {
  const low = load<u64>(kept, KEPT_LOW);
  if (load<u32>(kept, KEPT_FAMILY) == IPV4) putIPv4(<u32>(low & maskOf(32 + prefix)));
  else putNetwork(load<u64>(kept, KEPT_HIGH), low, prefix, false);
  putByte(<u8>SLASH);
  putDecimal(prefix);
}
