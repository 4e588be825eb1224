/** Lookups of chosen fields: of the country, of the network, and the block of addresses with the same answer. */
import { formatIPv4, formatIPv6Full } from '../address/format.js';
import {
  type Family,
  IPV6_IN_FULL,
  isMapped,
  looksLikeIPv6,
  NOT_IPV6,
  parseIPv4,
  parseIPv6Form,
} from '../address/parse.js';
import { addressWords, hostMask } from '../address/words.js';
import { continentTable } from '../country/continents.js';
import { isInEea } from '../country/memberships.js';
import { misuse } from '../errors.js';
import { formatCidr } from '../range/cidr.js';
import { withConfidence } from '../rangefile/confidence.js';
import { cellsOf, type FileRecord } from '../rangefile/layout.js';
import {
  COUNTRIES,
  KINDS,
  LABELS,
  NETWORKS,
  otherPartitions,
  PARTITIONS,
  type Partition,
} from '../rangefile/partitions.js';
import type { PartitionFile, RangeFile } from '../rangefile/reader.js';
import { recordResult } from './binary-engine.js';
import { NO_PREFIX, PartitionFinder } from './finder.js';

/** Returns the fields: those that partitions answer, and the block. The others are labels. */
export function resultFields(): string[] {
  return [...PARTITIONS.flatMap(({ members }) => members), 'network'];
}

/** A field, or the name of a label, which only the release knows. */
export type ResultField =
  | (
      | 'country'
      | 'country_code'
      | 'is_eu'
      | 'is_eea'
      | 'continent'
      | 'reason'
      | 'confidence'
      | 'asn'
      | 'as_name'
      | 'anycast'
      | 'kind'
      | 'operator'
      | 'network'
    )
  | (string & {});

/** The form of the name of a label. */
export const LABEL_NAME = /^[a-z][a-z0-9_]{0,63}$/;
/** Names that labels must not have: those of fields, and of what is beside them in results and in tables. */
const RESERVED_NAMES: readonly string[] = [
  ...resultFields(),
  ...['address', 'release_date', 'ip', 'error', 'seed', 'data_date', 'label', 'constructor'],
];

/** Fields that came after labels could have their names: until version 1.0, a label of such a name is answered instead of the field. */
const LATE_FIELDS: readonly string[] = [...KINDS.members, 'is_eea'];

/** Returns whether a name that has the form of one is taken; `late` if a label may have it until version 1.0. */
export function isTaken(name: string): boolean | 'late' {
  return LATE_FIELDS.includes(name) ? 'late' : RESERVED_NAMES.includes(name);
}

/** What a lookup of fields finds: the address as in {@link LookupResult}, and the fields asked for, in the order asked. */
export interface FieldResult {
  readonly ip: string;
  /** English short name, or null. */
  readonly country?: string | null;
  /** ISO 3166-1 alpha-2, or null. */
  readonly country_code?: string | null;
  readonly is_eu?: boolean;
  /** Whether the country is in the European Economic Area as of the date of the release. */
  readonly is_eea?: boolean;
  /** `AF`, `AN`, `AS`, `EU`, `NA`, `OC`, `SA`, or null. */
  readonly continent?: string | null;
  /** Why there is no country, or null. */
  readonly reason?: string | null;
  /** In percent, or null. */
  readonly confidence?: number | null;
  /** Number of the autonomous system that announces the address; null if none does, or the release has no networks. */
  readonly asn?: number | null;
  /** Its name, or null. */
  readonly as_name?: string | null;
  /** Whether the address is served from many places; null if nothing tells it. */
  readonly anycast?: boolean | null;
  /** `cloud`, `relay` or `tor` if an operator's list has the address, `none` if no list has it, null if a list is missing. */
  readonly kind?: string | null;
  /** Whose list has the address, such as `aws`; or null. */
  readonly operator?: string | null;
  /** The largest CIDR block around the address within which all that was asked for is the same; null for Teredo. */
  readonly network?: string | null;
  /** A label of the address, or null. */
  readonly [label: string]: string | number | boolean | null | undefined;
}

/** Looks up fields; undefined if the text is not an address. */
export type FieldLookup = (text: string) => FieldResult | undefined;

/** Returns the partition that answers a field; undefined for the block. @param labels those of the release, which come first */
function partitionOf(field: ResultField, labels: readonly string[]): Partition | undefined {
  if (field === 'network') return undefined;
  return labels.includes(field) ? LABELS : (PARTITIONS.find(({ members }) => members.includes(field)) ?? LABELS);
}

/** Returns the partitions besides the countries that answer some of the fields. */
export function neededPartitions(fields: readonly ResultField[]): Partition[] {
  const asked = fields.map((field) => partitionOf(field, []));
  return otherPartitions().filter((partition) => asked.includes(partition));
}

/**
 * Checks the names of fields.
 *
 * @param labels the names of the labels of the release
 * @param name how messages call the list
 * @throws AtlasError E_USAGE for an unknown name, a duplicate, or an empty list
 */
export function checkFields(fields: readonly string[], labels: readonly string[], name: string): ResultField[] {
  const known = [...new Set([...resultFields(), ...labels])];
  const isValid = fields.every((field, i) => known.includes(field) && fields.indexOf(field) === i);
  if (isValid && fields.length > 0) return [...fields];
  const given = JSON.stringify(fields.join());
  throw misuse(`${name} is ${given}; choose from ${known.join(', ')}, each once`);
}

type Values = Partial<Record<string, unknown>>;

/** What the values of a record are made with. */
interface Names {
  /** If they are asked for. */
  continents?: ReturnType<typeof continentTable> | undefined;
  /** The day, if membership in the European Economic Area is asked for. */
  eeaDay?: string | undefined;
  /** Names of the columns of rows. */
  columns?: readonly string[] | undefined;
}

/** Returns the fields of a record. */
function valuesOf(record: FileRecord, { continents, eeaDay, columns = [] }: Names): Values {
  if (record.kind === 'label') {
    const values = cellsOf(record);
    return Object.fromEntries(columns.map((column, index) => [column, values[index]]));
  }
  if (record.kind === 'network') return { asn: record.asn, as_name: record.name === '' ? null : record.name };
  const { confidence = null, ...country } = recordResult(record);
  const continent = continents?.get(country.country_code ?? '')?.code ?? null;
  return { ...country, confidence, continent, is_eea: eeaDay !== undefined && isInEea(country.country_code, eeaDay) };
}

/** Fields that one partition answers. */
interface Part {
  fields: readonly ResultField[];
  finder: PartitionFinder;
  /** Returns the fields of a record. */
  valuesOf(record: number): Values;
}

/** @param block what the block has in common: the record, or only the fields; undefined if it is not wanted */
function makePart(
  file: PartitionFile,
  fields: readonly ResultField[],
  block: 'record' | 'fields' | undefined,
  names: Names = {},
): Part {
  const pick = (record: FileRecord): string => {
    const values = valuesOf(record, names);
    return JSON.stringify(fields.map((field) => values[field] ?? null));
  };
  return {
    fields,
    finder: new PartitionFinder(file, block !== undefined, block === 'fields' ? pick : undefined),
    valuesOf: (record) => valuesOf(file.recordAt(record), names),
  };
}

/** Where the fields come from: the countries, and what opens another partition, called only if a field needs it. */
export interface FieldSources {
  file: RangeFile;
  open<File extends PartitionFile>(partition: Partition<File>): File | undefined;
  /** The names of the labels that are answered; those of fields are answered instead of them. */
  labels?: readonly string[];
}

/** Finds the fields of addresses. The result of a find is in the members, so that none is made for each address. */
export class FieldSearch {
  /** The address as in {@link LookupResult}. */
  ip = '';
  /** The block of the address; null for Teredo, and if it is not asked for. */
  network: string | null = null;
  readonly #wantsBlock: boolean;
  /** The countries come first: they say for all parts whether an IPv4 address inside decides. */
  readonly #parts: readonly [Part, ...Part[]];
  readonly #words = new Uint32Array(4);

  /**
   * @param fields checked
   * @throws AtlasError E_USAGE if the confidence is asked for and the file has none
   */
  constructor(fields: readonly ResultField[], { file, open, labels = [] }: FieldSources) {
    const fieldsOf = (partition: Partition) => fields.filter((field) => partitionOf(field, labels) === partition);
    const wantsBlock = fields.includes('network');
    const block = (isOfRecord: boolean) => (wantsBlock ? (isOfRecord ? 'record' : 'fields') : undefined);
    const others = otherPartitions().flatMap((partition): Part[] => {
      const own = fieldsOf(partition);
      const opened: PartitionFile | undefined = own.length > 0 ? open(partition) : undefined;
      if (opened === undefined) return [];
      const { columns } = opened;
      // No two records have the same number, or the same values.
      const isOfRecord = own.includes(partition.subject) || own.length === columns?.length;
      return [makePart(opened, own, block(isOfRecord), { columns })];
    });
    const ofCountry = fieldsOf(COUNTRIES);
    const continents = fields.includes('continent') ? continentTable() : undefined;
    const countries = fields.includes('confidence') ? withConfidence(file) : file;
    const isAlone = ofCountry.length === 0 && others.length === 0;
    const eeaDay = fields.includes('is_eea') ? file.asOf : undefined;
    this.#parts = [makePart(countries, ofCountry, block(isAlone), { continents, eeaDay }), ...others];
    this.#wantsBlock = wantsBlock;
  }

  /**
   * Returns a function that returns what `make` makes of fields of the address found last. It is made once for each record.
   *
   * @param fields some of those asked for, all of the country, of the network, or labels
   * @param make gets the values, null for those that the release does not have
   */
  each<Value>(fields: readonly ResultField[], make: (values: Values) => Value): () => Value {
    const part = this.#parts.find((each) => each.fields.includes(fields[0] ?? ''));
    const valuesAt = (record: number): Values => {
      const values = part?.valuesOf(record);
      return Object.fromEntries(fields.map((field) => [field, values?.[field] ?? null]));
    };
    if (part === undefined) {
      const none = make(valuesAt(0));
      return () => none;
    }
    const { finder } = part;
    const made = new Array<Value | undefined>(finder.file.recordCount).fill(undefined);
    return () => {
      const { record } = finder;
      const known = made[record];
      if (known !== undefined) return known;
      const value = make(valuesAt(record));
      made[record] = value;
      return value;
    };
  }

  /** Returns whether a text is an address, and finds it. */
  find(text: string): boolean {
    const address = looksLikeIPv6(text) ? -1 : parseIPv4(text);
    if (address < 0) return this.#findIPv6(text);
    this.ip = text;
    this.#findIPv4(address);
    return true;
  }

  #findIPv4(address: number): void {
    const parts = this.#parts;
    for (let i = 0; i < parts.length; i++) parts[i]!.finder.findIPv4(address | 0);
    this.#words[0] = address;
    if (this.#wantsBlock) this.#setBlock(4);
  }

  #findIPv6(text: string): boolean {
    const words = this.#words;
    const form = parseIPv6Form(text, words);
    if (form === NOT_IPV6) return false;
    if (isMapped(words)) {
      this.ip = formatIPv4(words[3]!);
      this.#findIPv4(words[3]!);
      return true;
    }
    const parts = this.#parts;
    const first = parts[0].finder;
    first.findIPv6(words);
    for (let i = 1; i < parts.length; i++) parts[i]!.finder.findIPv6(words, first.scheme);
    this.ip = form === IPV6_IN_FULL ? text : formatIPv6Full(words);
    if (this.#wantsBlock) this.#setBlock(6);
    return true;
  }

  #setBlock(family: Family): void {
    const words = this.#words;
    const parts = this.#parts;
    this.network = null;
    let prefix = 0;
    for (let i = 0; i < parts.length; i++) {
      const own = parts[i]!.finder.prefix;
      if (own === NO_PREFIX) return;
      if (own > prefix) prefix = own;
    }
    for (let k = 0; k < addressWords(family); k++) words[k] = words[k]! & ~hostMask(prefix, k);
    this.network = formatCidr(family, words, prefix);
  }
}

/**
 * Prepares lookups of fields.
 *
 * @param fields checked
 * @throws AtlasError E_USAGE if the confidence is asked for and the file has none
 */
export function fieldLookup(fields: readonly ResultField[], sources: FieldSources): FieldLookup {
  const search = new FieldSearch(fields, sources);
  const [wantsBlock, wantsNumber, wantsName] = ['network', 'asn', 'as_name'].map((field) => fields.includes(field));
  const fieldsOf = (partition: Partition) =>
    fields.filter((field) => partitionOf(field, sources.labels ?? []) === partition);
  const ofCountry = search.each(fieldsOf(COUNTRIES), (values) => {
    // The order of the members is that of the fields, whichever partition they are from.
    const result: Record<string, unknown> = { ip: '' };
    for (const field of fields) result[field] = values[field] ?? null;
    return result;
  });
  const ofNetwork = search.each(fieldsOf(NETWORKS), (values) => values);
  const rows = otherPartitions().flatMap((partition) => {
    const own = partition === NETWORKS ? [] : fieldsOf(partition);
    return own.length === 0 ? [] : [search.each(own, (values) => values)];
  });
  return (text) => {
    if (!search.find(text)) return undefined;
    // Copying an object and setting named members is faster than adding members, and than setting them by computed names.
    const result = { ...ofCountry() };
    result.ip = search.ip;
    if (wantsNumber) result.asn = ofNetwork().asn;
    if (wantsName) result.as_name = ofNetwork().as_name;
    for (const row of rows) Object.assign(result, row());
    if (wantsBlock) result.network = search.network;
    return result as unknown as FieldResult;
  };
}
