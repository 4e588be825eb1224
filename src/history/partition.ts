/** What is archived: the countries, and the networks, each as a sequence of entries of its own. */
import type { LISTS } from '../compact/codes.js';
import type { Container } from '../compact/container.js';
import { decodeRecords, encodeRecords } from '../compact/countries.js';
import { encodeNetworks } from '../compact/network-file.js';
import { decodeNetworks } from '../compact/networks.js';
import type { FileRecord, NetworkRecord, RangeRecord } from '../rangefile/layout.js';

export interface ArchivedPartition<Rec extends FileRecord> {
  /** Folder of its entries in a data directory. */
  folder: string;
  /** Section of the records; those of the ranges have the family after it. */
  section: 'country' | 'network';
  list: (typeof LISTS)[number];
  encode(records: readonly Rec[]): Uint8Array;
  decode(container: Container): Rec[];
  /** Returns what identifies a record over time. */
  identity(record: Rec): string;
}

export const COUNTRIES: ArchivedPartition<RangeRecord> = {
  folder: 'history',
  section: 'country',
  list: 'fixed',
  encode: encodeRecords,
  decode: (container) => decodeRecords(container, 'country'),
  // Membership of the Union is computed for the day that is asked for.
  identity(record) {
    switch (record.kind) {
      case 'country':
        return `country ${record.code} ${record.name}`;
      case 'none':
        return `none ${record.reason}`;
      case 'embedded':
        return `embedded ${record.scheme}`;
    }
  },
};

export const NETWORKS: ArchivedPartition<NetworkRecord> = {
  folder: 'history/networks',
  section: 'network',
  list: 'recent',
  encode: encodeNetworks,
  decode: decodeNetworks,
  identity: (record) => (record.kind === 'network' ? `${record.asn} ${record.name}` : JSON.stringify(record)),
};
