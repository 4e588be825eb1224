/** Reads JSON files that people write by hand. Errors name the line, and a key that is given twice is refused. */
import { readFile } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { VerifierError } from 'stream-json/utils/verifier.js';
import { AtlasError, causedError, messageOf } from './errors.js';

/** Joins the path of an object and one of its keys: `sources[0]` and `id` are `sources[0].id`. */
export function joinPath(base: string, key: string): string {
  return base === '' ? key : `${base}.${key}`;
}

/**
 * Reads a JSON file.
 *
 * @param file path, for reading and for messages
 * @param what what the file is, for messages
 * @throws AtlasError E_CONFIG if the file cannot be read, is not JSON, or has an object with a duplicate key
 */
export async function readJsonFile(file: string, what: string): Promise<unknown> {
  let text: string;
  try {
    text = await readFile(file, 'utf8');
  } catch (error) {
    throw causedError('E_CONFIG', `cannot read ${what}`, error, 'fix its path or permissions');
  }
  // Editors on Windows write a byte order mark, which JSON.parse refuses.
  if (text.startsWith('\ufeff')) text = text.slice(1);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    const position = await jsonErrorPosition(text);
    throw new AtlasError('E_CONFIG', `${file}${position} is not JSON: ${messageOf(error)}; fix it there`, {
      cause: error,
    });
  }
  const duplicates = await duplicateKeys(text);
  if (duplicates.length > 0) {
    // JSON.parse would use the last value without notice (RFC 8259 §4).
    throw new AtlasError('E_CONFIG', `${file} has keys that are given twice: ${duplicates.join(', ')}; keep one`);
  }
  return value;
}

/** Returns `:line:column` of the first error in JSON text, both from 1. JSON.parse does not always report it. */
export async function jsonErrorPosition(text: string): Promise<string> {
  const { verifier } = await import('stream-json/utils/verifier.js');
  try {
    await pipeline(Readable.from([text]), verifier.asStream());
  } catch (error) {
    const { line, pos } = error as VerifierError;
    if (line !== undefined) return `:${line}:${pos}`;
  }
  return '';
}

/** Returns the paths of the keys that occur twice in an object of valid JSON text. */
async function duplicateKeys(text: string): Promise<string[]> {
  const { default: parser } = await import('stream-json/parser.js');
  /** The open objects (with the keys so far) and arrays (with the index), the outermost first. */
  const open: { path: string; keys?: Set<string>; key: string; index: number }[] = [];
  const duplicates: string[] = [];
  const childPath = (): string => {
    const parent = open.at(-1);
    if (parent === undefined) return '';
    return parent.keys === undefined ? `${parent.path}[${parent.index++}]` : joinPath(parent.path, parent.key);
  };
  const tokens = Readable.from([text]).pipe(parser.asStream({ streamValues: false }));
  for await (const { name, value } of tokens as AsyncIterable<{ name: string; value?: string }>) {
    if (name === 'startObject') open.push({ path: childPath(), keys: new Set(), key: '', index: 0 });
    else if (name === 'startArray') open.push({ path: childPath(), key: '', index: 0 });
    else if (name === 'endObject' || name === 'endArray') open.pop();
    else if (name === 'keyValue') {
      const parent = open.at(-1)!;
      parent.key = value!;
      if (parent.keys!.has(value!)) duplicates.push(joinPath(parent.path, value!));
      parent.keys!.add(value!);
    } else childPath();
  }
  return duplicates;
}
