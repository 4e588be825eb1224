/** Who announces an address: the networks of a compact form. */
import { embeddedIPv4 } from '../address/embedded.js';
import { parseAddress } from '../address/parse.js';
import { Container } from '../compact/container.js';
import { readAbout } from '../compact/countries.js';
import type { DecodedPartition } from '../compact/partition.js';
import { decodeRanges, decodeRecords } from '../compact/records.js';
import type { NetworkRecord } from '../rangefile/layout.js';
import { NETWORKS } from '../rangefile/partitions.js';
import { findIPv4, findIPv6 } from '../rangefile/search.js';
import type { Network, NetworkDatabase } from './database.js';
import { type Ranges, searchable } from './ranges.js';

const words = new Uint32Array(4);

function networkOf(record: NetworkRecord): Network {
  const { asn, name } = record.kind === 'network' ? record : { asn: null, name: '' };
  return Object.freeze({ asn, as_name: name === '' ? null : name });
}

export class CompactNetworks implements NetworkDatabase {
  readonly dataDate: string;
  readonly attribution: readonly string[];
  readonly #ranges: Ranges<Uint32Array>;
  readonly #records: readonly NetworkRecord[];
  readonly #networks: readonly Network[];

  /** @throws AtlasError E_DAMAGED if it is not a compact form with networks */
  constructor(bytes: Uint8Array, name: string) {
    const container = new Container(bytes, name);
    const { data_date, as_of, attribution } = readAbout(container);
    this.dataDate = data_date ?? as_of;
    this.attribution = Object.freeze(attribution);
    this.#records = decodeRecords(container, NETWORKS);
    this.#networks = this.#records.map(networkOf);
    const { length } = this.#records;
    const ranges = (family: 4 | 6) => {
      return decodeRanges(container, NETWORKS, family, length, name, true) as DecodedPartition<Uint32Array>;
    };
    this.#ranges = searchable(ranges(6), ranges(4));
  }

  network(ip: string): Network | undefined {
    const ranges = this.#ranges;
    const family = parseAddress(ip, words);
    if (family === 0) return undefined;
    let number = family === 4 ? ranges.record4[findIPv4(ranges, words[0]!)]! : ranges.record6[findIPv6(ranges, words)]!;
    const record = this.#records[number]!;
    if (record.kind === 'embedded') number = ranges.record4[findIPv4(ranges, embeddedIPv4(record.scheme, words))]!;
    return this.#networks[number];
  }
}
