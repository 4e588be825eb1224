/**
 * Fields whose path leads through arrays: the elements of a valid line, walked one by one. A path to one element (`hops[0]`) leads
 * to one value. Each value of a path to each element (`hops[]`) is a candidate.
 */
import {
  PICK_FIRST,
  ROLE_NEVER,
  STEP_BYTES,
  STEP_IS_EACH,
  STEP_IS_INDEX,
  STEP_IS_KEY,
  STEP_KEY_LENGTH,
  STEP_KIND,
  STEP_VALUE,
  STEPS_BYTES,
} from '../abi';
import { NO_ADDRESS } from './address';
import { CLOSING_BRACE, CLOSING_BRACKET, OPENING_BRACE, OPENING_BRACKET, QUOTE, skipBlanks } from './ascii';
import { hideJson } from './hide';
import { isSameKey } from './keys';
import { addCandidate, parseString } from './lookup';
import { memberEnd } from './members';
import { fieldSteps, hasRoles, pick, recordCount, searchesStrings } from './settings';
import { closingQuote } from './strings';
import { queryStringText, roleOfString } from './values';

/** The value that the candidates are for; 0 if an element is only to be found. The element that was found, or that is a candidate, or 0. */
let candidateFor: usize = 0;
let found: usize = 0;
/** Whether the addresses of all values are hidden. */
let isHiding: bool = false;
/** Whether the best role of the texts is to be found, and that role. Only texts that have it count. */
let isRanking: bool = false;
let best: u32 = 0;

/** Returns the address of a field's steps into arrays; their number is 4 bytes after it. */
@inline function stepsOf(field: u32): usize {
  return fieldSteps + <usize>field * STEPS_BYTES;
}

/** Returns whether a field's path leads through an array. */
@inline export function hasStepsInto(field: u32): bool {
  return load<u32>(stepsOf(field), 4) != 0;
}

/** Returns whether a field's path leads to several values: it has a step to each element. */
function hasEachStep(field: u32): bool {
  const steps: usize = load<u32>(stepsOf(field));
  const end = steps + <usize>load<u32>(stepsOf(field), 4) * STEP_BYTES;
  for (let step = steps; step < end; step += STEP_BYTES) if (load<u32>(step, STEP_KIND) == STEP_IS_EACH) return true;
  return false;
}

/** Returns whether a field may have several values. */
@inline export function hasSeveralValues(field: u32): bool {
  return hasStepsInto(field) && hasEachStep(field);
}

/** Takes a value. Returns whether no further one is needed. */
function take(element: usize): bool {
  if (HIDING && isHiding) {
    hideJson(element);
    return false;
  }
  if (candidateFor == 0) {
    found = element;
    return true;
  }
  if (load<u32>(candidateFor) > recordCount) store<u32>(candidateFor, recordCount);
  if (isRanking) {
    best = min(best, roleOfString(element));
    return false;
  }
  if (searchesStrings) {
    if (hasRoles && roleOfString(element) != best) return false;
    if (!queryStringText(candidateFor, element)) return false;
    found = element;
    return pick == PICK_FIRST;
  }
  const family = load<u8>(element) == <u8>QUOTE ? parseString(element + 1) : NO_ADDRESS;
  if (family == NO_ADDRESS) return false;
  found = element;
  return addCandidate(candidateFor, family);
}

/** Follows the step from an object: the value of the last member with the key. */
function takeMember(step: usize, end: usize, object: usize): bool {
  const key: usize = load<u32>(step, STEP_VALUE);
  const length: usize = load<u32>(step, STEP_KEY_LENGTH);
  let last: usize = 0;
  let at = skipBlanks(object + 1);
  while (load<u8>(at) != <u8>CLOSING_BRACE) {
    const close = closingQuote(at + 1);
    const colon = skipBlanks(close + 1);
    if (isSameKey(at, close, key, length)) last = skipBlanks(colon + 1);
    at = memberEnd(colon + 1);
    if (load<u8>(at) == <u8>CLOSING_BRACE) break;
    at = skipBlanks(at + 1);
  }
  return last != 0 && takeAll(step + STEP_BYTES, end, last);
}

/** Follows the step from an array: one element, or each until no further one is needed. */
function takeElements(step: usize, end: usize, array: usize): bool {
  const isIndex = load<u32>(step, STEP_KIND) == STEP_IS_INDEX;
  const wanted: u32 = load<u32>(step, STEP_VALUE);
  let at = skipBlanks(array + 1);
  if (load<u8>(at) == <u8>CLOSING_BRACKET) return false;
  for (let index: u32 = 0; ; index++) {
    const isWanted = !isIndex || index == wanted;
    if (isWanted && takeAll(step + STEP_BYTES, end, at)) return true;
    if (isIndex && isWanted) return false;
    at = memberEnd(at);
    if (load<u8>(at) == <u8>CLOSING_BRACKET) return false;
    at = skipBlanks(at + 1);
  }
  return false;
}

/** Takes the values that the steps from `step` to `end` lead to, in order; returns whether no further one is needed. */
function takeAll(step: usize, end: usize, value: usize): bool {
  if (step == end) return take(value);
  const byte: u32 = load<u8>(value);
  if (load<u32>(step, STEP_KIND) == STEP_IS_KEY) return byte == OPENING_BRACE && takeMember(step, end, value);
  return byte == OPENING_BRACKET && takeElements(step, end, value);
}

/** Follows a field's path from the colon before the array, or before what is in its place. */
function follow(field: u32, colon: usize): void {
  found = 0;
  const steps: usize = load<u32>(stepsOf(field));
  takeAll(steps, steps + <usize>load<u32>(stepsOf(field), 4) * STEP_BYTES, skipBlanks(colon + 1));
}

/** Returns the value of a field in an array, which has one at most, or 0. `colon` is before the array or what is in its place. */
export function findElement(field: u32, colon: usize): usize {
  candidateFor = 0;
  follow(field, colon);
  return found;
}

/**
 * Adds the values of a field in an array as candidates for `value`, which becomes `recordCount` if none of them is an address.
 *
 * @returns whether one is
 */
export function queryElements(value: usize, field: u32, colon: usize): bool {
  candidateFor = value;
  if (searchesStrings && hasRoles) {
    best = ROLE_NEVER + 1;
    isRanking = true;
    follow(field, colon);
    isRanking = false;
    if (best > <u32>ROLE_NEVER) return false;
  }
  follow(field, colon);
  return found != 0;
}

/** Hides the addresses of all values of a field in an array. */
export function hideElements(field: u32, colon: usize): void {
  isHiding = true;
  follow(field, colon);
  isHiding = false;
}
