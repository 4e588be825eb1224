/** The file of networks of a release, from and to the compact form. */
import type { Family } from '../address/parse.js';
import type { NetworkRecord } from '../rangefile/layout.js';
import { type NetworkFile, rangeColumns } from '../rangefile/reader.js';
import { encodeNetworkFile } from '../rangefile/writer.js';
import type { Container } from './container.js';
import { decodeNetworks, lineOf, networkRanges, SECTION } from './networks.js';
import { encodePartition } from './partition.js';

/** Encodes records as the section `network`. */
export function encodeNetworks(records: readonly NetworkRecord[]): Uint8Array {
  return new TextEncoder().encode(records.map(lineOf).join(''));
}

/** Returns the sections of the networks of a release, in file order, for `writeContainer`. */
export function networkSections(file: NetworkFile): Map<string, Uint8Array> {
  return new Map([
    [SECTION, encodeNetworks(file.records)],
    [`${SECTION}4`, encodePartition(rangeColumns(file, 4), 'recent')],
    [`${SECTION}6`, encodePartition(rangeColumns(file, 6), 'recent')],
  ]);
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
  const records = decodeNetworks(container);
  const columns = (family: Family) => networkRanges(container, family, records.length, name);
  return encodeNetworkFile({ asOf, v4: columns(4), v6: columns(6), records });
}
