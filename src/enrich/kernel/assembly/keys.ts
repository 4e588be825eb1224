/**
 * The keys that count, as a tree: the keys of each field's path, and the top-level keys that results are written to.
 * ../key-tree.ts writes it; ../abi.ts has the format of its nodes and edges.
 */
import {
  EDGE_BYTES,
  EDGE_CHILD,
  EDGE_KEY,
  EDGE_KEY_LENGTH,
  EDGE_TAIL,
  EDGE_TAIL_MASK,
  NODE_BYTES,
  NODE_CHILD_COUNT,
  NODE_EDGES,
  NODE_FIRST_TARGET,
  NODE_IS_RESULT,
  NODE_IS_TARGET,
  NODE_TARGETS_END,
} from '../abi';
import { BACKSLASH, includes, QUOTE } from './ascii';
import { keyTree, longestKey, scratch, targetCount, valueOffsets } from './settings';
import { unescape } from './strings';

/** Bytes that an escape takes at most: `\u0041`. */
const LONGEST_ESCAPE: usize = 6;

@inline function nodeAt(node: u32): usize {
  return keyTree + <usize>node * NODE_BYTES;
}

/** Returns whether a node has keys below it. */
@inline export function hasChildren(node: u32): bool {
  return load<u32>(nodeAt(node), NODE_CHILD_COUNT) != 0;
}

/** Returns whether a node is a top-level key that a result is written to. */
@inline export function isResultKey(node: u32): bool {
  return load<u32>(nodeAt(node), NODE_IS_RESULT) != 0;
}

function isSame(a: usize, b: usize, length: usize): bool {
  for (let i: usize = 0; i < length; i++) if (load<u8>(a + i) != load<u8>(b + i)) return false;
  return true;
}

/**
 * Finds a key without escapes below a node.
 *
 * @param open its opening quote; @param close its closing quote
 * @returns the child, or -1 if the key does not count
 */
@inline export function findKey(node: u32, open: usize, close: usize): i32 {
  const at = nodeAt(node);
  const length = close - open - 1;
  let edge: usize = load<u32>(at, NODE_EDGES);
  const end = edge + <usize>load<u32>(at, NODE_CHILD_COUNT) * EDGE_BYTES;
  // The end of a key with the quote before it, as one number.
  const tail = load<u64>(close - 8);
  for (; edge < end; edge += EDGE_BYTES) {
    if ((tail & load<u64>(edge, EDGE_TAIL_MASK)) != load<u64>(edge, EDGE_TAIL)) continue;
    if (<usize>load<u16>(edge, EDGE_KEY_LENGTH) != length) continue;
    if (length <= 7 || isSame(open + 1, load<u32>(edge, EDGE_KEY), length - 7)) return load<u16>(edge, EDGE_CHILD);
  }
  return -1;
}

/** Finds a key that may have escapes, see `findKey`. */
export function findEscapedKey(node: u32, open: usize, close: usize): i32 {
  if (close - open - 1 > LONGEST_ESCAPE * <usize>longestKey) return -1;
  if (!includes(open + 1, close, BACKSLASH)) return findKey(node, open, close);
  const text = scratch + 8;
  store<u8>(text - 1, QUOTE);
  const length = unescape(open + 1, close, text, longestKey);
  return length < 0 ? -1 : findKey(node, text - 1, text + length);
}

/** Returns whether a key, which may have escapes, is equal to the `length` bytes at `wanted`. */
export function isSameKey(open: usize, close: usize, wanted: usize, length: usize): bool {
  const raw = close - open - 1;
  if (!includes(open + 1, close, BACKSLASH)) return raw == length && isSame(open + 1, wanted, length);
  if (raw > LONGEST_ESCAPE * length) return false;
  return unescape(open + 1, close, scratch, length) == <i32>length && isSame(scratch, wanted, length);
}

/**
 * Notes a key of the current line. Of equal keys the last one counts, as in JSON.parse, so what was found below an earlier
 * one is forgotten.
 *
 * @returns whether something was
 */
export function noteKey(node: u32, colon: usize): bool {
  const at = nodeAt(node);
  let isEqual = false;
  const first = load<u32>(at, NODE_FIRST_TARGET);
  const end = load<u32>(at, NODE_TARGETS_END);
  for (let target = first; target < end; target++) {
    const offset = valueOffsets + (<usize>target << 2);
    if (load<u32>(offset) != 0) isEqual = true;
    store<u32>(offset, 0);
  }
  if (load<u32>(at, NODE_IS_TARGET) != 0) store<u32>(valueOffsets + (<usize>first << 2), <u32>colon);
  return isEqual;
}

/** Forgets the values of a line. */
@inline export function clearValues(): void {
  for (let target: u32 = 0; target < targetCount; target++) store<u32>(valueOffsets + (<usize>target << 2), 0);
}
