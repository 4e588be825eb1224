/** Which record answers an address: src/rangefile/search.ts and the embedded addresses of src/address/embedded.ts. */
import { high, IPV4, low, NO_ADDRESS, parseAddress } from './address';
import {
  count6,
  index4,
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

/** Ranges up to which a bucket is searched eight at a time; in a larger one it is halved first. */
const FEW: u32 = 24;

/** The record of an IPv4 address. */
function recordOfIPv4(address: u32): u32 {
  const bucket = index4 + ((<usize>(address >> 16)) << 2);
  let first: u32 = load<u32>(bucket);
  let count: u32 = load<u32>(bucket, 4) - first;
  // All ranges of a bucket begin with the same 16 bits, so the others decide.
  const rest = address & 0xffff;
  while (count > FEW) {
    const half = count >> 1;
    const above = <u32>load<u16>(low4 + ((<usize>(first + half)) << 1)) > rest;
    first = above ? first : first + half + 1;
    count = above ? half : count - half - 1;
  }
  // The first range that begins above the address; the answer is the one before it.
  const all = i16x8.splat(<i16>rest);
  const end = first + count;
  while (first < end) {
    const above = i16x8.bitmask(i16x8.gt_u(v128.load(low4 + ((<usize>first) << 1)), all));
    if (above != 0) {
      first = min(first + ctz(above), end);
      break;
    }
    first = min(first + 8, end);
  }
  return load<u16>(record4 + ((<usize>(first - 1)) << 1));
}

/** The last IPv6 range whose start's first half is not above `half` (biased); -1 where there is none. */
function lastNotAbove(half: i64): i32 {
  const all = i64x2.splat(half);
  let at: i32 = 0;
  for (let level: u32 = 0; level < levelCount; level++) {
    const group = <usize>load<u32>(levels6 + ((<usize>level) << 2)) + ((<usize>at) << 6);
    const above = i64x2.add(
      i64x2.add(i64x2.gt_s(v128.load(group), all), i64x2.gt_s(v128.load(group, 16), all)),
      i64x2.add(i64x2.gt_s(v128.load(group, 32), all), i64x2.gt_s(v128.load(group, 48), all)),
    );
    // Each key above counts -1; the others come first.
    const below = 8 + <i32>i64x2.extract_lane(above, 0) + <i32>i64x2.extract_lane(above, 1);
    at = (at << 3) + below - 1;
    if (at < 0) return -1;
  }
  return min(at, <i32>count6 - 1);
}

/** The record of an IPv6 address. */
function recordOfIPv6(addressHigh: u64, addressLow: u64): u32 {
  const half = <i64>(addressHigh ^ 0x8000_0000_0000_0000);
  let range = lastNotAbove(half);
  const keys: usize = load<u32>(levels6 + ((<usize>(levelCount - 1)) << 2));
  if (load<i64>(keys + ((<usize>range) << 3)) == half && load<u64>(low6 + ((<usize>range) << 3)) > addressLow) {
    // Several ranges begin with the same half, and the last of them above the address: the other half decides.
    let first = half == i64.MIN_VALUE ? 0 : lastNotAbove(half - 1) + 1;
    let count = range - first;
    while (count > 0) {
      const middle = count >> 1;
      if (load<u64>(low6 + ((<usize>(first + middle)) << 3)) > addressLow) count = middle;
      else {
        first += middle + 1;
        count -= middle + 1;
      }
    }
    range = first - 1;
  }
  return load<u16>(record6 + ((<usize>range) << 1));
}

/**
 * The record that answers the address text `from … to`.
 *
 * @returns its number, or -1 where the text is no address
 */
export function recordOf(from: usize, to: usize): i32 {
  const family = parseAddress(from, to);
  if (family == NO_ADDRESS) return -1;
  if (family == IPV4) return recordOfIPv4(<u32>low);
  const record = recordOfIPv6(high, low);
  const outcome = load<u8>(outcomes + record);
  if (outcome == SIX_TO_FOUR) return recordOfIPv4(<u32>(high >> 16));
  if (outcome == NAT64) return recordOfIPv4(<u32>low);
  if (outcome == TEREDO) return recordOfIPv4(~(<u32>low));
  return record;
}
