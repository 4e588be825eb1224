/**
 * The keys that count, as a tree: the keys of each path from the top of the object down, and the names that answers go
 * to. `../layout.ts` writes it.
 *
 * A node is 32 bytes:
 *    0  u64  lengths of its children's keys: bit n for n bytes, bit 63 for 63 and more
 *    8  u32  address of its children's edges
 *   12  u32  number of children
 *   16  u32  first target at or below it; 20 u32 behind the last
 *   24  u32  1 where it is a target itself (then it is the first)
 *   28  u32  1 where it is a name that an answer goes to
 * An edge is 24 bytes:
 *    0  u64  the last 8 bytes of the key and the quote before it, zeros before a shorter one
 *    8  u64  the bits of those that count
 *   16  u32  address of the key; 20 u16 its length; 22 u16 the child's number
 */
import { longestKey, nodes } from './config';
import { found, scratch } from './slot';
import { hasEscape, unescape } from './text';

const QUOTE: u8 = 34;
const NODE_BYTES: usize = 32;
const EDGE_BYTES: usize = 24;

@inline function nodeAt(node: u32): usize {
  return nodes + <usize>node * NODE_BYTES;
}

/** Whether a node has keys below it that count. */
@inline export function hasChildren(node: u32): bool {
  return load<u32>(nodeAt(node), 12) != 0;
}

/** Whether a node is a name that an answer goes to. */
@inline export function isAnswerName(node: u32): bool {
  return load<u32>(nodeAt(node), 28) != 0;
}

function sameBytes(a: usize, b: usize, length: usize): bool {
  for (let i: usize = 0; i < length; i++) if (load<u8>(a + i) != load<u8>(b + i)) return false;
  return true;
}

/** Whether the bytes before `close` end like an edge's key, the quote before it included where there is room for it. */
@inline function endsLike(edge: usize, close: usize): bool {
  return (load<u64>(close - 8) & load<u64>(edge, 8)) == load<u64>(edge);
}

/** Whether the bytes of a longer key before the ones that `endsLike` saw are those of an edge's. */
@inline function beginsLike(edge: usize, close: usize, length: usize): bool {
  return length <= 7 || sameBytes(close - length, load<u32>(edge, 16), length - 7);
}

/** The child whose key is the `length` bytes before `close`, with a quote before them; or -1. */
function childOf(at: usize, close: usize, length: usize): i32 {
  let edge: usize = load<u32>(at, 8);
  const end = edge + <usize>load<u32>(at, 12) * EDGE_BYTES;
  for (; edge < end; edge += EDGE_BYTES) {
    if (load<u16>(edge, 20) != <u32>length) continue;
    if (endsLike(edge, close) && beginsLike(edge, close, length)) return load<u16>(edge, 22);
  }
  return -1;
}

/**
 * Finds a key at the top that has no escapes.
 *
 * @param close where its closing quote stands
 * @returns its node, or -1 where it does not count
 */
@inline export function findTopKey(close: usize): i32 {
  let edge: usize = load<u32>(nodes, 8);
  const end = edge + <usize>load<u32>(nodes, 12) * EDGE_BYTES;
  for (; edge < end; edge += EDGE_BYTES) {
    if (!endsLike(edge, close)) continue;
    const length: usize = load<u16>(edge, 20);
    if (load<u8>(close - length - 1) == QUOTE && beginsLike(edge, close, length)) return load<u16>(edge, 22);
  }
  return -1;
}

/**
 * Finds a key below a node.
 *
 * @param key the first byte behind its opening quote; @param length in bytes as written
 * @param mayEscape whether backslashes are about
 * @returns the child, or -1 where the key does not count
 */
@inline export function findKey(node: u32, key: usize, length: usize, mayEscape: bool): i32 {
  const at = nodeAt(node);
  if (mayEscape) return findEscapedKey(at, key, length);
  if (((load<u64>(at) >> min<u64>(length, 63)) & 1) == 0) return -1;
  return childOf(at, key + length, length);
}

function findEscapedKey(at: usize, key: usize, length: usize): i32 {
  // A byte takes at most six as an escape.
  if (length > 6 * <usize>longestKey) return -1;
  if (!hasEscape(key, key + length)) return childOf(at, key + length, length);
  const text = scratch + 8;
  store<u8>(text - 1, QUOTE);
  const plain = unescape(key, key + length, text, longestKey);
  return plain < 0 ? -1 : childOf(at, text + plain, plain);
}

/**
 * Notes that a key that counts stands in this line. Of keys that stand twice the last counts, as a whole: what was found
 * below an earlier one is forgotten.
 *
 * @param colon where the colon behind it stands
 */
export function noteKey(node: u32, colon: usize): void {
  const at = nodeAt(node);
  const first = load<u32>(at, 16);
  const end = load<u32>(at, 20);
  for (let target = first; target < end; target++) store<u32>(found + (target << 2), 0);
  if (load<u32>(at, 24) != 0) store<u32>(found + (first << 2), <u32>colon);
}
