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
import { AtlasError } from '../errors.js';
import { formatCidr } from '../range/cidr.js';
import { withConfidence } from '../rangefile/confidence.js';
import type { FileRecord } from '../rangefile/layout.js';
import type { LabelFile, NetworkFile, PartitionFile, RangeFile } from '../rangefile/reader.js';
import { recordResult } from './binary-engine.js';
import { NO_PREFIX, PartitionFinder } from './finder.js';

/** The fields of a country, those of a network, and the block. The others are labels. */
const COUNTRY_FIELDS = ['country', 'country_code', 'is_eu', 'continent', 'reason', 'confidence'] as const;
const NETWORK_FIELDS = ['asn', 'as_name'] as const;
export const RESULT_FIELDS = [...COUNTRY_FIELDS, ...NETWORK_FIELDS, 'network'] as const;
/** A field, or the name of a label, which only the release knows. */
export type ResultField = (typeof RESULT_FIELDS)[number] | (string & {});

/** The form of the name of a label. */
export const LABEL_NAME = /^[a-z][a-z0-9_]{0,63}$/;
/** Names that labels must not have: those of fields, and of what is beside them in results and in tables. */
export const RESERVED_NAMES: readonly string[] = [
  ...RESULT_FIELDS,
  ...['address', 'release_date', 'ip', 'error', 'seed', 'data_date', 'label', 'constructor'],
];

/** What a lookup of fields finds: the address as in {@link LookupResult}, and the fields asked for, in the order asked. */
export interface FieldResult {
  readonly ip: string;
  /** English short name, or null. */
  readonly country?: string | null;
  /** ISO 3166-1 alpha-2, or null. */
  readonly country_code?: string | null;
  readonly is_eu?: boolean;
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
  /** The largest CIDR block around the address within which all that was asked for is the same; null for Teredo. */
  readonly network?: string | null;
  /** A label of the address, or null. */
  readonly [label: string]: string | number | boolean | null | undefined;
}

/** Looks up fields; undefined if the text is not an address. */
export type FieldLookup = (text: string) => FieldResult | undefined;

/** Returns whether fields need the networks of a release. */
export function needNetworks(fields: readonly ResultField[]): boolean {
  return fields.some((field) => NETWORK_FIELDS.includes(field as (typeof NETWORK_FIELDS)[number]));
}

/**
 * Checks the names of fields.
 *
 * @param labels the names of the labels of the release
 * @param name how messages call the list
 * @throws AtlasError E_USAGE for an unknown name, a duplicate, or an empty list
 */
export function checkFields(fields: readonly string[], labels: readonly string[], name: string): ResultField[] {
  const known: readonly string[] = [...RESULT_FIELDS, ...labels];
  const isValid = fields.every((field, i) => known.includes(field) && fields.indexOf(field) === i);
  if (isValid && fields.length > 0) return [...fields];
  const given = JSON.stringify(fields.join());
  throw new AtlasError('E_USAGE', `${name} is ${given}; choose from ${known.join(', ')}, each once`);
}

type Values = Partial<Record<string, unknown>>;

/** What the values of a record are made with: the continents, if they are asked for, and the names of the labels. */
interface Names {
  continents?: ReturnType<typeof continentTable> | undefined;
  labels?: readonly string[];
}

/** Returns the fields of a record. */
function valuesOf(record: FileRecord, { continents, labels = [] }: Names): Values {
  if (record.kind === 'label') {
    const values = JSON.parse(record.row) as (string | null)[];
    return Object.fromEntries(labels.map((label, index) => [label, values[index]]));
  }
  if (record.kind === 'network') return { asn: record.asn, as_name: record.name === '' ? null : record.name };
  const { confidence = null, ...country } = recordResult(record);
  return { ...country, confidence, continent: continents?.get(country.country_code ?? '')?.code ?? null };
}

/** Fields that one partition answers. */
interface Part {
  fields: readonly ResultField[];
  finder: PartitionFinder;
  /** Returns the fields of a record. */
  valuesOf(record: number): Values;
}

/** Most combinations of records whose answers are kept: all of a release without labels, some 25 MB. */
const MAX_ANSWERS = 200_000;

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

/** Where the fields come from: the countries, and what opens the networks and labels, called only if a field needs them. */
export interface FieldSources {
  file: RangeFile;
  networks(): NetworkFile | undefined;
  labels?(): LabelFile | undefined;
}

/** What a search of fields finds. One object serves all searches: it holds until the next one. */
export interface Found<Answer> {
  /** The address as in {@link LookupResult}. */
  ip: string;
  /** The block; null for Teredo, and if it is not asked for. */
  network: string | null;
  /** What was made of the fields. */
  answer: Answer;
}

/**
 * Prepares searches of fields.
 *
 * @param fields checked
 * @param answerOf makes an answer of the fields, in the order asked, after an empty `ip`; `network` is null. Answers are kept for
 *   other addresses with the same records
 * @returns undefined if the text is not an address
 * @throws AtlasError E_USAGE if the confidence is asked for and the file has none
 */
export function fieldSearch<Answer>(
  fields: readonly ResultField[],
  { file, networks, labels = () => undefined }: FieldSources,
  answerOf: (values: Record<string, unknown>) => Answer,
): (text: string) => Found<Answer> | undefined {
  const wantsBlock = fields.includes('network');
  const ofNetwork = fields.filter((field) => NETWORK_FIELDS.includes(field as (typeof NETWORK_FIELDS)[number]));
  const ofLabels = fields.filter((field) => !RESULT_FIELDS.includes(field as (typeof RESULT_FIELDS)[number]));
  const ofCountry = fields.filter((field) => COUNTRY_FIELDS.includes(field as (typeof COUNTRY_FIELDS)[number]));
  const blockOf = (isOfRecord: boolean) => (wantsBlock ? (isOfRecord ? 'record' : 'fields') : undefined);
  const others: Part[] = [];
  const networkFile = ofNetwork.length > 0 ? networks() : undefined;
  // No two records have the same number, or the same labels.
  if (networkFile !== undefined) others.push(makePart(networkFile, ofNetwork, blockOf(ofNetwork.includes('asn'))));
  const labelFile = ofLabels.length > 0 ? labels() : undefined;
  if (labelFile !== undefined) {
    const { columns } = labelFile;
    others.push(makePart(labelFile, ofLabels, blockOf(ofLabels.length === columns.length), { labels: columns }));
  }
  // The countries come first: they say for all parts whether an IPv4 address inside decides.
  const continents = fields.includes('continent') ? continentTable() : undefined;
  const countries = fields.includes('confidence') ? withConfidence(file) : file;
  const isAlone = ofCountry.length === 0 && others.length === 0;
  const first = makePart(countries, ofCountry, blockOf(isAlone), { continents });
  const parts = [first, ...others];
  const words = new Uint32Array(4);
  const found = { ip: '', network: null } as Found<Answer>;
  /** By the records of all parts. */
  const answers = new Map<number, Answer>();
  const makeAnswer = (): Answer => {
    // The order of the members is that of the fields, whichever partition they are from.
    const values: Record<string, unknown> = { ip: '' };
    for (const field of fields) values[field] = null;
    for (const { fields: own, finder, valuesOf: valuesAt } of parts) {
      const ofPart = valuesAt(finder.record);
      for (const field of own) values[field] = ofPart[field] ?? null;
    }
    return answerOf(values);
  };

  /** Finishes a search: what the parts found is in their finders. */
  const finish = (family: Family): Found<Answer> => {
    let records = 0;
    let prefix = 0;
    for (let i = 0; i < parts.length; i++) {
      const { fields: own, finder } = parts[i]!;
      if (own.length > 0) records = records * finder.file.recordCount + finder.record;
      if (finder.prefix === NO_PREFIX || prefix === NO_PREFIX) prefix = NO_PREFIX;
      else if (finder.prefix > prefix) prefix = finder.prefix;
    }
    const known = answers.get(records);
    if (known === undefined) {
      if (answers.size === MAX_ANSWERS) answers.clear();
      found.answer = makeAnswer();
      answers.set(records, found.answer);
    } else found.answer = known;
    if (!wantsBlock) return found;
    found.network = null;
    if (prefix === NO_PREFIX) return found;
    for (let k = 0; k < addressWords(family); k++) words[k] = words[k]! & ~hostMask(prefix, k);
    found.network = formatCidr(family, words, prefix);
    return found;
  };
  const searchIPv4 = (address: number, text: string): Found<Answer> => {
    for (let i = 0; i < parts.length; i++) parts[i]!.finder.findIPv4(address | 0);
    words[0] = address;
    found.ip = text;
    return finish(4);
  };
  const searchIPv6 = (text: string): Found<Answer> | undefined => {
    const form = parseIPv6Form(text, words);
    if (form === NOT_IPV6) return undefined;
    if (isMapped(words)) return searchIPv4(words[3]!, formatIPv4(words[3]!));
    first.finder.findIPv6(words);
    for (const { finder } of others) finder.findIPv6(words, first.finder.scheme);
    found.ip = form === IPV6_IN_FULL ? text : formatIPv6Full(words);
    return finish(6);
  };
  return (text) => {
    const address = looksLikeIPv6(text) ? -1 : parseIPv4(text);
    return address < 0 ? searchIPv6(text) : searchIPv4(address, text);
  };
}

/**
 * Prepares lookups of fields.
 *
 * @param fields checked
 * @throws AtlasError E_USAGE if the confidence is asked for and the file has none
 */
export function fieldLookup(fields: readonly ResultField[], sources: FieldSources): FieldLookup {
  const search = fieldSearch(fields, sources, (values) => values);
  const wantsBlock = fields.includes('network');
  return (text) => {
    const found = search(text);
    if (found === undefined) return undefined;
    // Copying an object is faster than adding its members.
    const result = { ...found.answer };
    result.ip = found.ip;
    if (wantsBlock) result.network = found.network;
    return result as unknown as FieldResult;
  };
}
