/**
 * The formats `mmdb` and `asn-mmdb`: MaxMind DB 2.0 (https://maxmind.github.io/MaxMind-DB/), with records of the GeoIP2 Country and
 * GeoLite2 ASN shapes.
 *
 * The file: search tree, 16 zero bytes, data section, marker, metadata.
 */

import { type Continent, continentTable } from '../../country/continents.js';
import { startOfDay } from '../../day.js';
import {
  type CountryRecord,
  chosenCountries,
  chosenNetworks,
  isChosenRecord,
  type OperatorRecord,
  type RowColumns,
  type Selection,
} from '../ranges.js';
import { buildIPv4Tree, buildIPv6Tree, NO_DATA, type Reference, recordOf, type Tree } from './tree.js';
import { type MmdbMap, mapOf, type Unsigned, ValueWriter } from './values.js';

const DATA_SEPARATOR_BYTES = 16;
const METADATA_MARKER = Buffer.from('\xab\xcd\xefMaxMind.com', 'latin1');

/** Sizes of a node's record in bits that all readers support. */
const RECORD_SIZES = [24, 28, 32] as const;
type RecordSize = (typeof RECORD_SIZES)[number];

/** Most readers of GeoIP2 data require "Country" in the type. Names that begin with "GeoIP" belong to MaxMind. */
export const DEFAULT_DATABASE_TYPE = 'ipatlas-Country';

/** Some readers of GeoLite2-ASN look for this name in the type; others publish such files with a type of this form, too. */
export const ASN_DATABASE_TYPE = 'ipatlas-ASN (compat=GeoLite2-ASN)';
/** Of both, for the readers of either. */
export const BOTH_DATABASE_TYPE = 'ipatlas-Country-ASN (compat=GeoLite2-ASN)';

/** Returns the data of a country. */
function dataOf({ code, name, isEu }: CountryRecord, continent: Continent | undefined): MmdbMap {
  return mapOf({
    continent: continent && mapOf({ code: continent.code, names: mapOf({ en: continent.name }) }),
    country: mapOf({ is_in_european_union: isEu, iso_code: code, names: mapOf({ en: name }) }),
    country_code: code,
    country_name: name,
    is_eu: isEu,
  });
}

/** The data section, and the offset of the data by record number of the range file. */
interface DataSection {
  bytes: Uint8Array;
  offsets: readonly number[];
}

/** Returns the data of a network, of the GeoLite2 ASN shape. */
function networkData({ asn, name }: OperatorRecord): MmdbMap {
  return mapOf({
    autonomous_system_number: { bits: 32, value: asn },
    autonomous_system_organization: name === '' ? undefined : name,
  });
}

/** Returns what GeoIP2 says in `traits` of the kind of network: only what is known, and what is so. */
function traitsOf(anycast: unknown, kind: unknown): MmdbMap | undefined {
  const traits = {
    is_anonymous: kind === 'tor' || undefined,
    is_anycast: anycast === true || undefined,
    is_hosting_provider: kind === 'cloud' || undefined,
    is_tor_exit_node: kind === 'tor' || undefined,
    user_type: kind === 'cloud' ? 'hosting' : kind === 'relay' ? 'consumer_privacy_network' : undefined,
  };
  return Object.values(traits).some((value) => value !== undefined) ? mapOf(traits) : undefined;
}

/** Returns what else is said of a record, by its names here, and for those who read GeoIP2. */
function rowData({ names, values }: RowColumns, record: number): MmdbMap {
  const row = Object.fromEntries(names.map((name, at) => [name, values[record]![at] ?? undefined]));
  return mapOf({ ...row, traits: traitsOf(row.anycast, row.kind) });
}

function dataSection(selection: Selection): DataSection {
  const continents = continentTable();
  const networks = chosenNetworks(selection);
  const writer = new ValueWriter(true);
  const offsets = chosenCountries(selection).map((country, record) => {
    const network = networks[record];
    if (country === undefined && network === undefined) return 0;
    const ofCountry = country === undefined ? [] : dataOf(country, continents.get(country.code));
    const ofRow = selection.rows === undefined ? [] : rowData(selection.rows, record);
    return writer.append(new Map([...ofCountry, ...(network === undefined ? [] : networkData(network)), ...ofRow]));
  });
  return { bytes: writer.bytes, offsets };
}

/** Returns the smallest record size that holds a number. */
function recordSizeFor(greatest: number): RecordSize {
  const size = RECORD_SIZES.find((bits) => greatest < 2 ** bits);
  if (size === undefined) throw new RangeError(`${greatest} does not fit in 32 bits`);
  return size;
}

/** Writes a node: its two records, most significant byte first. With 28 bits, byte 3 holds the top 4 bits of both. */
export function encodeNode(size: RecordSize, bytes: Buffer, at: number, left: number, right: number): void {
  if (size === 32) {
    bytes.writeUInt32BE(left, at);
    bytes.writeUInt32BE(right, at + 4);
    return;
  }
  bytes.writeUIntBE(left & 0xffffff, at, 3);
  if (size === 28) bytes[at + 3] = ((left >>> 24) << 4) | (right >>> 24);
  bytes.writeUIntBE(right & 0xffffff, at + (size === 28 ? 4 : 3), 3);
}

/** Encodes the search tree. */
function encodeTree(tree: Tree, offsets: readonly number[], size: RecordSize): Buffer {
  const numberOf = (reference: Reference): number => {
    if (reference >= 0) return reference;
    return reference === NO_DATA ? tree.count : tree.count + DATA_SEPARATOR_BYTES + offsets[recordOf(reference)]!;
  };
  const nodeBytes = (2 * size) / 8;
  const bytes = Buffer.allocUnsafe(tree.count * nodeBytes);
  for (let node = 0; node < tree.count; node++) {
    encodeNode(size, bytes, node * nodeBytes, numberOf(tree.left[node]!), numberOf(tree.right[node]!));
  }
  return bytes;
}

/** The labels of an MMDB file. */
export interface MmdbLabels {
  /** Description of the database, in English. */
  title: string;
  databaseType: string;
  /** Day that the data is from, `YYYY-MM-DD`; undefined if it is not known. */
  dataDate?: string | undefined;
}

/** All of the metadata that depends on the release and the selection. */
interface FileLabels extends MmdbLabels {
  /** `YYYY-MM-DD`. */
  asOf: string;
  ipVersion: 4 | 6;
}

function metadata(nodeCount: number, recordSize: RecordSize, labels: FileLabels): Uint8Array {
  const u16 = (value: number): Unsigned => ({ bits: 16, value });
  const writer = new ValueWriter(false);
  writer.append(
    mapOf({
      binary_format_major_version: u16(2),
      binary_format_minor_version: u16(0),
      // Readers take it for the age of the data.
      build_epoch: { bits: 64, value: startOfDay(labels.dataDate ?? labels.asOf) / 1000 },
      database_type: labels.databaseType,
      description: mapOf({ en: labels.title }),
      ip_version: u16(labels.ipVersion),
      languages: ['en'],
      node_count: { bits: 32, value: nodeCount },
      record_size: u16(recordSize),
    }),
  );
  return writer.bytes;
}

/** Yields the sections of a file. */
export function* assemble(
  tree: Tree,
  data: DataSection,
  recordSize: RecordSize,
  labels: FileLabels,
): Generator<Uint8Array> {
  yield encodeTree(tree, data.offsets, recordSize);
  yield new Uint8Array(DATA_SEPARATOR_BYTES);
  yield data.bytes;
  yield METADATA_MARKER;
  yield metadata(tree.count, recordSize, labels);
}

/** Yields an MMDB file. Its build time is the day of the data, so that the bytes are always the same. */
export function mmdb(selection: Selection, labels: MmdbLabels): Generator<Uint8Array> {
  const { file, families, embedded } = selection;
  const isChosen = isChosenRecord(selection);
  const ipVersion = families.includes(6) ? 6 : 4;
  const request = { file, isChosen, embedded };
  const tree = ipVersion === 4 ? buildIPv4Tree(request) : buildIPv6Tree(request, families.includes(4));
  const data = dataSection(selection);
  const recordSize = recordSizeFor(tree.count + DATA_SEPARATOR_BYTES + data.bytes.length);
  return assemble(tree, data, recordSize, { ...labels, asOf: file.asOf, ipVersion });
}
