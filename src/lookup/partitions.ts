/** What the partitions of a compact form besides the countries say of an address. */
import { embeddedIPv4 } from '../address/embedded.js';
import { parseAddress } from '../address/parse.js';
import { Container } from '../compact/container.js';
import { readAbout } from '../compact/countries.js';
import type { DecodedPartition } from '../compact/partition.js';
import { decodeRanges, decodeRecords } from '../compact/records.js';
import { cellsOf, type FileRecord } from '../rangefile/layout.js';
import { KINDS, NETWORKS, type Partition } from '../rangefile/partitions.js';
import { findIPv4, findIPv6 } from '../rangefile/search.js';
import type { KindDatabase, Network, NetworkDatabase, NetworkKind } from './database.js';
import { type Ranges, searchable } from './ranges.js';

const words = new Uint32Array(4);

/** A partition alone. */
class CompactPartition<Value extends object> {
  readonly dataDate: string;
  readonly attribution: readonly string[];
  readonly #ranges: Ranges<Uint32Array>;
  readonly #records: readonly FileRecord[];
  readonly #values: readonly Value[];

  /** @throws AtlasError E_DAMAGED if it is not a compact form with the partition */
  constructor(bytes: Uint8Array, name: string, partition: Partition, valueAt: (record: FileRecord) => Value) {
    const container = new Container(bytes, name);
    const { data_date, as_of, attribution } = readAbout(container);
    this.dataDate = data_date ?? as_of;
    this.attribution = Object.freeze(attribution);
    this.#records = decodeRecords(container, partition);
    this.#values = this.#records.map((record) => Object.freeze(valueAt(record)));
    const { length } = this.#records;
    const ranges = (family: 4 | 6) => {
      return decodeRanges(container, partition, family, length, name, true) as DecodedPartition<Uint32Array>;
    };
    this.#ranges = searchable(ranges(6), ranges(4));
  }

  protected valueAt(ip: string): Value | undefined {
    const ranges = this.#ranges;
    const family = parseAddress(ip, words);
    if (family === 0) return undefined;
    let number = family === 4 ? ranges.record4[findIPv4(ranges, words[0]!)]! : ranges.record6[findIPv6(ranges, words)]!;
    const record = this.#records[number]!;
    if (record.kind === 'embedded') number = ranges.record4[findIPv4(ranges, embeddedIPv4(record.scheme, words))]!;
    return this.#values[number];
  }
}

export class CompactNetworks extends CompactPartition<Network> implements NetworkDatabase {
  constructor(bytes: Uint8Array, name: string) {
    super(bytes, name, NETWORKS, (record) => {
      const { asn, name: asName } = record.kind === 'network' ? record : { asn: null, name: '' };
      return { asn, as_name: asName === '' ? null : asName };
    });
  }

  network(ip: string): Network | undefined {
    return this.valueAt(ip);
  }
}

export class CompactKinds extends CompactPartition<NetworkKind> implements KindDatabase {
  constructor(bytes: Uint8Array, name: string) {
    super(bytes, name, KINDS, (record) => {
      const [anycast = null, kind = null, operator = null] = record.kind === 'label' ? cellsOf(record) : [];
      return { anycast, kind, operator } as NetworkKind;
    });
  }

  kind(ip: string): NetworkKind | undefined {
    return this.valueAt(ip);
  }
}
