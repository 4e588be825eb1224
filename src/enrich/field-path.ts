/** The paths that name fields and targets: keys with dots between them, and elements of arrays in brackets. */
import { misuse } from '../errors.js';
import { MAX_ARRAY_INDEX } from '../limits.js';

/** Every element of an array, as a step of a path: `[]`. */
export const EACH: unique symbol = Symbol.for('ipatlas: each element');

/** A step of a path: a key of an object, the index of an element, or each element. */
export type PathStep = string | number | typeof EACH;

/** An escaped character that has a meaning in paths, the steps into an array, or any other character. */
const TOKEN = /\\([.=\\[\]|])|\[(\d*)\]|./gsu;

/** Splits a path into its steps. Returns undefined if a key is empty, or follows an element without a dot. */
function splitPath(text: string): PathStep[] | undefined {
  const steps: PathStep[] = [];
  let key = '';
  // A key is complete once it has a character; an element ends its step by itself.
  let isAfterElement = false;
  for (const { 0: token, 1: escaped, 2: index } of text.matchAll(TOKEN)) {
    if (index !== undefined) {
      if (key !== '') steps.push(key);
      else if (!isAfterElement) return undefined;
      if (Number(index) > MAX_ARRAY_INDEX) return undefined;
      steps.push(index === '' ? EACH : Number(index));
      key = '';
      isAfterElement = true;
    } else if (token === '.') {
      if (key !== '') steps.push(key);
      else if (!isAfterElement) return undefined;
      key = '';
      isAfterElement = false;
    } else if (isAfterElement) {
      return undefined;
    } else {
      key += escaped ?? token;
    }
  }
  if (key !== '') return [...steps, key];
  return isAfterElement ? steps : undefined;
}

/** Splits paths at the bars that are not escaped: a record is looked up by the first of them that leads to an address. */
export function splitAlternatives(text: string): string[] {
  const bars = [...text.matchAll(TOKEN)].filter(({ 0: token }) => token === '|').map(({ index }) => index);
  return [...bars, text.length].map((end, at) => text.slice(at === 0 ? 0 : bars[at - 1]! + 1, end));
}

/** Splits `PATH=TARGET` at the first equals sign that is not escaped. */
export function splitSpec(spec: string): { path: string; target: string | undefined } {
  for (const { 0: token, index } of spec.matchAll(TOKEN)) {
    if (token === '=') return { path: spec.slice(0, index), target: spec.slice(index + 1) };
  }
  return { path: spec, target: undefined };
}

/**
 * Parses the path of a field. In a key, a dot, an equals sign, a bar, a bracket or a backslash can be escaped with a backslash.
 *
 * @throws AtlasError E_USAGE for an empty key or a misplaced element
 */
export function parsePath(text: string, spec: string): PathStep[] {
  const path = splitPath(text);
  if (path !== undefined) return path;
  throw misuse(
    `the field ${JSON.stringify(spec)} has an empty key or a misplaced element; write it as ip, client.ip, hops[0], hops[] ` +
      'or client.ip=client.geo',
  );
}

/** Returns a path as text, without escapes: the name of the column in a table. */
export function pathText(path: readonly PathStep[]): string {
  let text = '';
  for (const step of path) {
    if (step === EACH) text += '[]';
    else if (typeof step === 'number') text += `[${step}]`;
    else text += text === '' ? step : `.${step}`;
  }
  return text;
}

/** Returns whether a path has a step into an array. */
export function hasElements(path: readonly PathStep[]): boolean {
  return path.some((step) => typeof step !== 'string');
}
