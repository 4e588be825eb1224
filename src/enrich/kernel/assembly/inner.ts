/** Results that go into objects inside the line: a tree of the objects, see `RESULT_…` in ../abi.ts. */
import {
  LEAF_BYTES,
  LEAF_FIELD,
  LEAF_INSERT,
  LEAF_KEY,
  LEAF_KEY_LENGTH,
  RESULT_BYTES,
  RESULT_CHILD_COUNT,
  RESULT_CHILDREN,
  RESULT_FIELDS,
  RESULT_IS_REQUIRED,
  RESULT_KEY,
  RESULT_KEY_LENGTH,
  RESULT_LEAF_COUNT,
  RESULT_LEAVES,
  RESULT_TEXT,
  RESULT_TEXT_LENGTH,
} from '../abi';
import { CLOSING_BRACE, COMMA, NEWLINE, OPENING_BRACE, skipBlanks } from './ascii';
import { isSameKey } from './keys';
import { endIndent, indent, indentLength, memberEnd, putInsert, putSeparator, startIndent } from './members';
import { createsObjects, lastMembers, results, terminator } from './settings';
import { put, putByte, putInputTo, skipInputTo } from './slot';
import { closingQuote } from './strings';

@inline function childrenEnd(node: usize): usize {
  return <usize>load<u32>(node, RESULT_CHILDREN) + <usize>load<u32>(node, RESULT_CHILD_COUNT) * RESULT_BYTES;
}

@inline function leavesEnd(node: usize): usize {
  return <usize>load<u32>(node, RESULT_LEAVES) + <usize>load<u32>(node, RESULT_LEAF_COUNT) * LEAF_BYTES;
}

/** Returns the place for the last member of the line with the key of a node. */
@inline function lastMember(node: usize): usize {
  return lastMembers + ((node - results) / RESULT_BYTES) * 4;
}

/** Returns the child of a node with a key, if a result of some fields, one bit each, is in it; or 0. */
function childWithKey(node: usize, fields: u64, open: usize, close: usize): usize {
  for (let child: usize = load<u32>(node, RESULT_CHILDREN); child < childrenEnd(node); child += RESULT_BYTES) {
    if ((load<u64>(child, RESULT_FIELDS) & fields) == 0) continue;
    if (isSameKey(open, close, load<u32>(child, RESULT_KEY), load<u32>(child, RESULT_KEY_LENGTH))) return child;
  }
  return 0;
}

/** Returns whether a result of some fields replaces the member of an object with a key. */
function isLeaf(node: usize, fields: u64, open: usize, close: usize): bool {
  for (let leaf: usize = load<u32>(node, RESULT_LEAVES); leaf < leavesEnd(node); leaf += LEAF_BYTES) {
    if (((fields >> <u64>load<u32>(leaf, LEAF_FIELD)) & 1) == 0) continue;
    if (isSameKey(open, close, load<u32>(leaf, LEAF_KEY), load<u32>(leaf, LEAF_KEY_LENGTH))) return true;
  }
  return false;
}

/**
 * Notes for each child of a node the last member of an object with its key, or 0: of equal keys, JSON.parse takes the last. So
 * each result is put out at most once.
 */
function noteLastMembers(node: usize, open: usize, fields: u64): void {
  for (let child: usize = load<u32>(node, RESULT_CHILDREN); child < childrenEnd(node); child += RESULT_BYTES) {
    store<u32>(lastMember(child), 0);
  }
  if (load<u32>(node, RESULT_CHILD_COUNT) == 0) return;
  let key = skipBlanks(open + 1);
  while (load<u8>(key) != <u8>CLOSING_BRACE) {
    const close = closingQuote(key + 1);
    const child = childWithKey(node, fields, key, close);
    if (child != 0) store<u32>(lastMember(child), <u32>key);
    const end = memberEnd(close + 1);
    if (load<u8>(end) == <u8>CLOSING_BRACE) return;
    key = skipBlanks(end + 1);
  }
}

/** Returns the first byte of the value of a member. */
@inline function valueOf(key: usize): usize {
  return skipBlanks(skipBlanks(closingQuote(key + 1) + 1) + 1);
}

/** Returns whether nothing but objects is where objects are required for results of some fields. */
export function hasRequiredObjects(node: usize, open: usize, fields: u64): bool {
  noteLastMembers(node, open, fields);
  for (let child: usize = load<u32>(node, RESULT_CHILDREN); child < childrenEnd(node); child += RESULT_BYTES) {
    const key: usize = load<u32>(lastMember(child));
    if (key == 0 || load<u32>(child, RESULT_IS_REQUIRED) == 0) continue;
    const value = valueOf(key);
    if (load<u8>(value) != <u8>OPENING_BRACE || !hasRequiredObjects(child, value, fields)) return false;
  }
  return true;
}

/**
 * Puts out the results of some fields that go into an object, and then the objects in it that the line does not have.
 *
 * @param blanks, length the white space before each
 */
function putNewMembers(
  node: usize,
  fields: u64,
  values: usize,
  hasMembers: bool,
  blanks: usize,
  length: usize,
): void {
  for (let leaf: usize = load<u32>(node, RESULT_LEAVES); leaf < leavesEnd(node); leaf += LEAF_BYTES) {
    const field = load<u32>(leaf, LEAF_FIELD);
    // The text of the first leaf has all of a field in this object.
    const insert: usize = load<u32>(leaf, LEAF_INSERT);
    if (insert == 0 || ((fields >> <u64>field) & 1) == 0) continue;
    putSeparator(hasMembers, blanks, length);
    putInsert(insert, values + (<usize>field << 2), 1);
    hasMembers = true;
  }
  if (!createsObjects) return;
  for (let child: usize = load<u32>(node, RESULT_CHILDREN); child < childrenEnd(node); child += RESULT_BYTES) {
    if (load<u32>(lastMember(child)) != 0 || (load<u64>(child, RESULT_FIELDS) & fields) == 0) continue;
    putSeparator(hasMembers, blanks, length);
    hasMembers = true;
    put(load<u32>(child, RESULT_TEXT), load<u32>(child, RESULT_TEXT_LENGTH));
    putNewObject(child, fields, values);
    putByte(<u8>CLOSING_BRACE);
  }
}

/** Puts out the members of an object that the line does not have. */
function putNewObject(node: usize, fields: u64, values: usize): void {
  for (let child: usize = load<u32>(node, RESULT_CHILDREN); child < childrenEnd(node); child += RESULT_BYTES) {
    store<u32>(lastMember(child), 0);
  }
  putNewMembers(node, fields, values, false, 0, 0);
}

/**
 * Puts out an object and the results that go into it or into objects in it: members with the key of a result are left out
 * together with a comma, and the results come last.
 *
 * @param node of the object; @param open its opening brace
 * @param fields the fields that have a result, one bit each; @param values the records of the line
 */
export function putObject(node: usize, open: usize, fields: u64, values: usize): void {
  noteLastMembers(node, open, fields);
  let hasMembers = false;
  let from = open + 1;
  let end = skipBlanks(from);
  while (load<u8>(end) != <u8>CLOSING_BRACE) {
    const key = skipBlanks(from);
    const close = closingQuote(key + 1);
    end = memberEnd(close + 1);
    let isReplaced = isLeaf(node, fields, key, close);
    const child: usize = isReplaced ? 0 : childWithKey(node, fields, key, close);
    if (child != 0 && <usize>load<u32>(lastMember(child)) == key) {
      const value = valueOf(key);
      if (load<u8>(value) == <u8>OPENING_BRACE) putObject(child, value, fields, values);
      else if (createsObjects) {
        store<u32>(lastMember(child), 0);
        isReplaced = true;
      }
    }
    if (isReplaced) {
      putInputTo(hasMembers ? from - 1 : from);
      skipInputTo(hasMembers || load<u8>(end) != <u8>COMMA ? end : end + 1);
    } else hasMembers = true;
    from = end + 1;
  }
  putInputTo(end);
  if (terminator == NEWLINE) {
    putNewMembers(node, fields, values, hasMembers, 0, 0);
    return;
  }
  startIndent(open, end);
  putNewMembers(node, fields, values, hasMembers, indent, indentLength);
  endIndent(end);
}
