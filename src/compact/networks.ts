/** The networks of a release in the compact form. See FORMAT.md. */
import { EMBEDDED_SCHEMES, type EmbeddedScheme } from '../address/embedded.js';
import type { Family } from '../address/parse.js';
import type { NetworkRecord } from '../rangefile/layout.js';
import { type NetworkFile, rangeColumns } from '../rangefile/reader.js';
import { encodeNetworkFile } from '../rangefile/writer.js';
import type { Container } from './container.js';
import { decodeText } from './countries.js';
import { encodePartition, PartitionReader } from './partition.js';

/** The sections, in file order. */
const SECTION = 'network';

/** Writes a record as a line. */
function lineOf(record: NetworkRecord): string {
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

/** Returns the sections of the networks of a release, in file order, for `writeContainer`. */
export function networkSections(file: NetworkFile): Map<string, Uint8Array> {
  return new Map([
    [SECTION, new TextEncoder().encode(file.records.map(lineOf).join(''))],
    [`${SECTION}4`, encodePartition(rangeColumns(file, 4), 'recent')],
    [`${SECTION}6`, encodePartition(rangeColumns(file, 6), 'recent')],
  ]);
}

/** Returns whether a compact form has networks. */
export function hasNetworks(container: Container): boolean {
  return container.has(SECTION);
}

/**
 * Builds the file of networks from its compact form.
 *
 * @param asOf date of the release, `YYYY-MM-DD`
 * @param name of the compact form, for messages
 * @returns the bytes of the file that the compact form was made from
 * @throws AtlasError E_DAMAGED if the compact form is not as FORMAT.md says
 */
export function buildNetworkFile(container: Container, asOf: string, name: string): Buffer {
  const lines = decodeText(container, SECTION).split('\n');
  if (lines.pop() !== '') throw container.damaged('its last network is not complete');
  const records = lines.map((line, index) => {
    const record = parseLine(line);
    if (record === undefined) throw container.damaged(`network ${index} is not valid`);
    return record;
  });
  const columns = (family: Family) => {
    const ranges = new PartitionReader(container.section(`${SECTION}${family}`), family, records.length, name);
    return ranges.readAll(new Uint32Array(ranges.count));
  };
  return encodeNetworkFile({ asOf, v4: columns(4), v6: columns(6), records });
}
