/** A pack: the entries of one month as a signed repository offers them. FORMAT.md is the specification. */
import { Container, damaged, writeContainer } from '../compact/container.js';
import { orElse } from '../errors.js';
import { type EntryName, parseEntryName } from './entry.js';

/** Returns whether a name is that of a pack. */
export function isPackName(name: string): boolean {
  return /^\d{4}-(0[1-9]|1[0-2])\.pack$/.test(name);
}

/** Has the names of the packs that belong here, as JSON, so that one that is lost is noticed. */
export const PACK_LIST_FILE = 'packs.json';

/**
 * Parses the list of the packs that belong here.
 *
 * @param path of the file, for messages
 * @throws AtlasError E_DAMAGED if it is not such a list
 */
export function parsePackList(text: string, path: string): string[] {
  const names = parseNames(text);
  const isList = Array.isArray(names) && names.every((name) => typeof name === 'string' && isPackName(name));
  if (!isList) throw damaged(path, 'it is not a list of packs');
  return names;
}

/** Returns the name of the pack for an entry of a time. */
export function packName(time: number): string {
  return `${new Date(time).toISOString().slice(0, 7)}.pack`;
}

/** An entry to pack, as src/history/archive.ts has it. */
interface Packable {
  time: number;
  file: string;
  content: () => Uint8Array;
}

/**
 * Returns the packs of entries, by path. The same entries always give the same bytes.
 *
 * @param folder of the entries in a data directory
 */
export function encodePacks(folder: string, entries: readonly Packable[]): Map<string, Uint8Array> {
  const months = new Map<string, Packable[]>();
  for (const entry of entries) {
    const name = `${folder}/${packName(entry.time)}`;
    months.set(name, [...(months.get(name) ?? []), entry]);
  }
  const encode = (month: readonly Packable[]): Uint8Array => {
    const names = new TextEncoder().encode(JSON.stringify(month.map(({ file }) => file)));
    const files = month.map((entry, index) => [`${index}`, entry.content()] as const);
    return writeContainer(new Map([['names', names], ...files]));
  };
  return new Map([...months].map(([name, month]) => [name, encode(month)]));
}

/** An entry in a pack. */
export interface PackedEntry {
  name: EntryName;
  /** Its file name. */
  file: string;
  bytes: number;
  /** Returns the entry file. Throws AtlasError E_DAMAGED if its checksum is wrong. */
  content: () => Uint8Array;
}

function parseNames(text: string): unknown {
  return orElse(
    () => JSON.parse(text),
    (error) => error instanceof SyntaxError,
    undefined,
  );
}

/**
 * Returns the entries of a pack, in the order of their times.
 *
 * @param name that of the pack
 * @param path of the file, for messages
 * @throws AtlasError E_DAMAGED if it is not a pack of its month
 */
export function readPack(bytes: Uint8Array, name: string, path: string): PackedEntry[] {
  const container = new Container(bytes, path);
  const files = parseNames(new TextDecoder().decode(container.section('names')));
  if (!Array.isArray(files)) throw damaged(path, 'it does not name its entries');
  let last = Number.NEGATIVE_INFINITY;
  return files.map((file: unknown, index) => {
    const entry = typeof file === 'string' ? parseEntryName(file) : undefined;
    if (entry === undefined || packName(entry.time) !== name || entry.time <= last) {
      throw damaged(path, `its entry ${index} does not belong there`);
    }
    last = entry.time;
    const content = (): Uint8Array => container.section(`${index}`);
    return { name: entry, file: file as string, bytes: container.length(`${index}`), content };
  });
}
