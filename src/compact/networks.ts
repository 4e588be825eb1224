/** The networks of a release in the compact form. See FORMAT.md. Nothing here needs Node. */
import { EMBEDDED_SCHEMES, type EmbeddedScheme } from '../address/embedded.js';
import type { Family } from '../address/parse.js';
import type { NetworkRecord } from '../rangefile/layout.js';
import type { Container } from './container.js';
import { decodeText } from './countries.js';
import { type DecodedPartition, decodePartition } from './partition.js';

/** The section of the records. Those of the ranges have the number of the family after it. */
export const SECTION = 'network';

/** Writes a record as a line. */
export function lineOf(record: NetworkRecord): string {
  switch (record.kind) {
    case 'none':
      return `none\t${record.reason}\n`;
    case 'embedded':
      return `embedded\t${record.scheme}\n`;
    case 'network':
      return `${record.asn}\t${record.name}\n`;
  }
}

/** Parses a line. Returns undefined if it is not a record. */
function parseLine(line: string): NetworkRecord | undefined {
  const [first = '', text, ...more] = line.split('\t');
  if (text === undefined || more.length > 0) return undefined;
  if (first === 'none' && text !== '') return { kind: 'none', reason: text };
  if (first === 'embedded' && EMBEDDED_SCHEMES.includes(text as EmbeddedScheme)) {
    return { kind: 'embedded', scheme: text as EmbeddedScheme };
  }
  const isNumber = /^[1-9]\d{0,9}$/.test(first) && Number(first) < 2 ** 32;
  return isNumber ? { kind: 'network', asn: Number(first), name: text } : undefined;
}

/** Returns whether a compact form has networks. */
export function hasNetworks(container: Container): boolean {
  return container.has(SECTION);
}

/**
 * Decodes the networks of a compact form, by record number.
 *
 * @throws AtlasError E_DAMAGED if they are not as FORMAT.md says
 */
export function decodeNetworks(container: Container): NetworkRecord[] {
  const lines = decodeText(container, SECTION).split('\n');
  if (lines.pop() !== '') throw container.damaged('its last network is not complete');
  return lines.map((line, index) => {
    const record = parseLine(line);
    if (record === undefined) throw container.damaged(`network ${index} is not valid`);
    return record;
  });
}

/**
 * Decodes the ranges of one family. There are more networks than 16 bits can number.
 *
 * @param recordCount number of networks
 * @param name of the compact form, for messages
 * @param isForSearch as for {@link decodePartition}
 */
export function networkRanges(
  container: Container,
  family: Family,
  recordCount: number,
  name: string,
  isForSearch = false,
): DecodedPartition<Uint32Array> {
  const column = (count: number) => new Uint32Array(count);
  return decodePartition(container.section(`${SECTION}${family}`), family, recordCount, name, column, isForSearch);
}
