/**
 * Fields whose path leads through arrays: the elements of a valid line, walked one by one. A path to one element (`hops[0]`) leads
 * to a value that is looked up with the batch. Of a path to each element (`hops[]`), the values are looked up until one has a country.
 */
import {
  OUTCOME_COUNTRY,
  STEP_BYTES,
  STEP_IS_EACH,
  STEP_IS_INDEX,
  STEP_IS_KEY,
  STEP_KEY_LENGTH,
  STEP_KIND,
  STEP_VALUE,
  STEPS_BYTES,
} from '../abi';
import { CLOSING_BRACE, CLOSING_BRACKET, isBlank, OPENING_BRACE, OPENING_BRACKET, QUOTE } from './ascii';
import { fieldSteps, outcomes, recordCount } from './config';
import { isSameKey } from './keys';
import { lookUpString } from './lookup';
import { memberEnd } from './members';
import { closingQuote } from './strings';

/** The best result so far: record `recordCount` + 1 if no value was found, `recordCount` if no value was an address. */
let best: u32 = 0;

@inline function skipBlanks(at: usize): usize {
  while (isBlank(load<u8>(at))) at++;
  return at;
}

/** Returns the address of a field's steps into arrays; their number is 4 bytes after it. */
@inline function stepsOf(field: u32): usize {
  return fieldSteps + <usize>field * STEPS_BYTES;
}

/** Returns whether a field's path leads through an array. */
@inline export function hasStepsInto(field: u32): bool {
  return load<u32>(stepsOf(field), 4) != 0;
}

/** Whether values are only found, not looked up, and the value that was found, or 0. */
let onlyFinds: bool = false;
let foundValue: usize = 0;

/** Returns whether a field's path leads to several values: it has a step to each element. */
function hasEachStep(field: u32): bool {
  const steps: usize = load<u32>(stepsOf(field));
  const end = steps + <usize>load<u32>(stepsOf(field), 4) * STEP_BYTES;
  for (let step = steps; step < end; step += STEP_BYTES) if (load<u32>(step, STEP_KIND) == STEP_IS_EACH) return true;
  return false;
}

/** Returns whether the values of a field must be looked up one after the other, because the result of one decides on the next. */
@inline export function hasSeveralValues(field: u32): bool {
  return hasStepsInto(field) && hasEachStep(field);
}

/** Looks up a value, and keeps its result if it is better than the best. Returns whether no further value is needed. */
function take(value: usize): bool {
  if (onlyFinds) {
    foundValue = value;
    return true;
  }
  const record = load<u8>(value) == <u8>QUOTE ? lookUpString(value + 1) : recordCount;
  const isCountry = record < recordCount && load<u8>(outcomes + record) == <u8>OUTCOME_COUNTRY;
  // The first address counts if none has a country.
  if (isCountry || best > recordCount || (best == recordCount && record < recordCount)) best = record;
  return isCountry;
}

/** Follows the step from an object: the value of the last member with the key. */
function takeMember(step: usize, end: usize, object: usize): bool {
  const key: usize = load<u32>(step, STEP_VALUE);
  const length: usize = load<u32>(step, STEP_KEY_LENGTH);
  let found: usize = 0;
  let at = skipBlanks(object + 1);
  while (load<u8>(at) != <u8>CLOSING_BRACE) {
    const close = closingQuote(at + 1);
    const colon = skipBlanks(close + 1);
    if (isSameKey(at, close, key, length)) found = skipBlanks(colon + 1);
    at = memberEnd(colon + 1);
    if (load<u8>(at) == <u8>CLOSING_BRACE) break;
    at = skipBlanks(at + 1);
  }
  return found != 0 && takeAll(step + STEP_BYTES, end, found);
}

/** Follows the step from an array: one element, or each until one has a country. */
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

/** Takes the values that the steps from `step` to `end` lead to, in order, until one has a country; returns whether one has. */
function takeAll(step: usize, end: usize, value: usize): bool {
  if (step == end) return take(value);
  const byte: u32 = load<u8>(value);
  if (load<u32>(step, STEP_KIND) == STEP_IS_KEY) return byte == OPENING_BRACE && takeMember(step, end, value);
  return byte == OPENING_BRACKET && takeElements(step, end, value);
}

/** Follows a field's path from the colon before the array, or before what is in its place. */
function follow(field: u32, colon: usize): void {
  const steps: usize = load<u32>(stepsOf(field));
  takeAll(steps, steps + <usize>load<u32>(stepsOf(field), 4) * STEP_BYTES, skipBlanks(colon + 1));
}

/** Returns the value of a field in an array, which has one at most, or 0; see `lookUpElements`. */
export function findElement(field: u32, colon: usize): usize {
  onlyFinds = true;
  foundValue = 0;
  follow(field, colon);
  onlyFinds = false;
  return foundValue;
}

/**
 * Looks up the values of a field in an array.
 *
 * @param colon the colon before the array, or before what is in its place
 * @returns the record of the first address with a country, otherwise of the first address; `recordCount` if no value is an
 *   address, `recordCount` + 1 if there is no value
 */
export function lookUpElements(field: u32, colon: usize): u32 {
  best = recordCount + 1;
  follow(field, colon);
  return best;
}
