/** Results that go into objects inside the line. */
import { STEP_BYTES, STEP_KEY_LENGTH, STEP_VALUE, STEPS_BYTES } from '../abi';
import { CLOSING_BRACE, COMMA, isBlank, OPENING_BRACE } from './ascii';
import { isSameKey } from './keys';
import { memberEnd, putMembers } from './members';
import { fieldCount, fieldResultKeys, lastMembers } from './settings';
import { putInputTo, skipInputTo } from './slot';
import { closingQuote } from './strings';

@inline function skipBlanks(at: usize): usize {
  while (isBlank(load<u8>(at))) at++;
  return at;
}

/** Returns the number of keys in the result path of a field. */
@inline function keyCount(field: u32): u32 {
  return load<u32>(fieldResultKeys + <usize>field * STEPS_BYTES, 4);
}

/** Returns the fields of a set, one bit each, whose result path has a key at a depth. */
function fieldsAt(fields: u64, depth: u32, open: usize, close: usize): u64 {
  let same: u64 = 0;
  for (let left = fields; left != 0; left &= left - 1) {
    const field = <u32>ctz(left);
    const step = <usize>load<u32>(fieldResultKeys + <usize>field * STEPS_BYTES) + <usize>depth * STEP_BYTES;
    if (isSameKey(open, close, load<u32>(step, STEP_VALUE), load<u32>(step, STEP_KEY_LENGTH))) same |= left & (0 - left);
  }
  return same;
}

/**
 * Notes for each field of a set the last member of an object with its key: of equal keys, JSON.parse takes the last. So each
 * result is put out at most once.
 */
function noteLastMembers(open: usize, depth: u32, fields: u64): void {
  const last = lastMembers + (<usize>(depth * fieldCount) << 2);
  for (let left = fields; left != 0; left &= left - 1) store<u32>(last + (<usize>ctz(left) << 2), 0);
  let key = skipBlanks(open + 1);
  while (load<u8>(key) != <u8>CLOSING_BRACE) {
    const close = closingQuote(key + 1);
    for (let left = fieldsAt(fields, depth, key, close); left != 0; left &= left - 1) {
      store<u32>(last + (<usize>ctz(left) << 2), <u32>key);
    }
    const end = memberEnd(close + 1);
    if (load<u8>(end) == <u8>CLOSING_BRACE) return;
    key = skipBlanks(end + 1);
  }
}

/** Returns the fields of a set that `noteLastMembers` has noted a member for. */
function fieldsOfMember(fields: u64, depth: u32, key: usize): u64 {
  const last = lastMembers + (<usize>(depth * fieldCount) << 2);
  let same: u64 = 0;
  for (let left = fields; left != 0; left &= left - 1) {
    if (load<u32>(last + (<usize>ctz(left) << 2)) == <u32>key) same |= left & (0 - left);
  }
  return same;
}

/** Returns the fields of a set whose result path ends at a depth. */
function fieldsEndingAt(fields: u64, depth: u32): u64 {
  let ending: u64 = 0;
  for (let left = fields; left != 0; left &= left - 1) {
    if (keyCount(<u32>ctz(left)) == depth + 1) ending |= left & (0 - left);
  }
  return ending;
}

/**
 * Puts out an object and the results that go into it or into objects in it: members with the key of a result are left out
 * together with a comma, and the results come last.
 *
 * @param open its opening brace; @param depth number of the objects around it
 * @param fields the fields whose result path is in the object or in an object in it, one bit each
 * @param value the records of the line
 * @returns its closing brace, which is not put out yet
 */
export function putObject(open: usize, depth: u32, fields: u64, value: usize): usize {
  const ending = fieldsEndingAt(fields, depth);
  noteLastMembers(open, depth, fields & ~ending);
  let hasMembers = false;
  let from = open + 1;
  let end = skipBlanks(from);
  while (load<u8>(end) != <u8>CLOSING_BRACE) {
    const key = skipBlanks(from);
    const close = closingQuote(key + 1);
    const colon = skipBlanks(close + 1);
    end = memberEnd(colon + 1);
    if (fieldsAt(ending, depth, key, close) != 0) {
      putInputTo(hasMembers ? from - 1 : from);
      skipInputTo(hasMembers || load<u8>(end) != <u8>COMMA ? end : end + 1);
    } else {
      hasMembers = true;
      const object = skipBlanks(colon + 1);
      const same = fieldsOfMember(fields & ~ending, depth, key);
      if (same != 0 && load<u8>(object) == <u8>OPENING_BRACE) putObject(object, depth + 1, same, value);
    }
    from = end + 1;
  }
  putInputTo(end);
  if (ending != 0) putMembers(open, end, hasMembers, ending, value);
  return end;
}

/** Puts out a line with its results; `fields` are all of them. There are at most 64 (MAX_FIELDS), so a set of them is a mask. */
export function putInnerResults(open: usize, value: usize, fields: u64): void {
  putObject(open, 0, fields, value);
}
