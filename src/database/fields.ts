/** Lookups of chosen fields: of the country, of the network, and the block of addresses with the same answer. */
import { formatIPv4, formatIPv6Full } from '../address/format.js';
import { parseAddress } from '../address/parse.js';
import { hostMask } from '../address/words.js';
import { continentTable } from '../country/continents.js';
import { AtlasError } from '../errors.js';
import { formatCidr } from '../range/cidr.js';
import { withConfidence } from '../rangefile/confidence.js';
import type { FileRecord } from '../rangefile/layout.js';
import type { LabelFile, NetworkFile, PartitionFile, RangeFile } from '../rangefile/reader.js';
import { recordResult } from './binary-engine.js';
import { NO_PREFIX, PartitionFinder, withSameAnswers } from './finder.js';

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

/** Views of open files by the fields that they are made for: lookups of other fields use them, too. */
const views = new WeakMap<PartitionFile, Map<string, PartitionFile>>();

function viewOf(
  file: PartitionFile,
  fields: readonly ResultField[],
  answerOf: (record: FileRecord) => string,
): PartitionFile {
  const known = views.get(file) ?? new Map<string, PartitionFile>();
  views.set(file, known);
  const key = fields.join();
  const view = known.get(key) ?? withSameAnswers(file, answerOf);
  known.set(key, view);
  return view;
}

function makePart(file: PartitionFile, fields: readonly ResultField[], wantsBlock: boolean, names: Names = {}): Part {
  const pick = (record: FileRecord): string => {
    const values = valuesOf(record, names);
    return JSON.stringify(fields.map((field) => values[field] ?? null));
  };
  // Without a field of its own, the block is that of the record; and no two records have the same number, or all labels the same.
  const isOfRecord = [0, names.labels?.length].includes(fields.length) || fields.includes('asn');
  const view = wantsBlock && !isOfRecord ? viewOf(file, fields, pick) : file;
  return {
    fields,
    finder: new PartitionFinder(view, wantsBlock),
    valuesOf: (record) => valuesOf(view.recordAt(record), names),
  };
}

/**
 * Prepares lookups of fields.
 *
 * @param fields checked
 * @param file the countries
 * @param networks opens the networks, @param labels opens the labels; called only if a field needs them
 * @throws AtlasError E_USAGE if the confidence is asked for and the file has none
 */
export function fieldLookup(
  fields: readonly ResultField[],
  file: RangeFile,
  networks: () => NetworkFile | undefined,
  labels: () => LabelFile | undefined = () => undefined,
): FieldLookup {
  const wantsBlock = fields.includes('network');
  const ofNetwork = fields.filter((field) => NETWORK_FIELDS.includes(field as (typeof NETWORK_FIELDS)[number]));
  const ofLabels = fields.filter((field) => !RESULT_FIELDS.includes(field as (typeof RESULT_FIELDS)[number]));
  const ofCountry = fields.filter((field) => COUNTRY_FIELDS.includes(field as (typeof COUNTRY_FIELDS)[number]));
  const others: Part[] = [];
  const networkFile = ofNetwork.length > 0 ? networks() : undefined;
  if (networkFile !== undefined) others.push(makePart(networkFile, ofNetwork, wantsBlock));
  const labelFile = ofLabels.length > 0 ? labels() : undefined;
  if (labelFile !== undefined) others.push(makePart(labelFile, ofLabels, wantsBlock, { labels: labelFile.columns }));
  // The countries come first: they say for all parts whether an IPv4 address inside decides.
  const continents = fields.includes('continent') ? continentTable() : undefined;
  const countries = fields.includes('confidence') ? withConfidence(file) : file;
  const onlyEmbedded = ofCountry.length === 0 && others.length > 0;
  const first = makePart(onlyEmbedded ? viewOf(file, [], () => '') : countries, ofCountry, wantsBlock, { continents });
  const parts = [first, ...others];
  const words = new Uint32Array(4);
  /** Results without address and block, by the records of all parts. Copying an object is faster than adding its members. */
  const answers = new Map<number, Record<string, unknown>>();
  const makeAnswer = (): Record<string, unknown> => {
    // The order of the members is that of the fields, whichever partition they are from.
    const answer: Record<string, unknown> = { ip: '' };
    for (const field of fields) answer[field] = null;
    for (const { fields: own, finder, valuesOf: valuesAt } of parts) {
      const found = valuesAt(finder.record);
      for (const field of own) answer[field] = found[field] ?? null;
    }
    return answer;
  };

  return (text) => {
    const family = parseAddress(text, words);
    if (family === 0) return undefined;
    let records = 0;
    let prefix = 0;
    for (const { finder } of parts) {
      if (family === 4) finder.findIPv4(words[0]! | 0);
      else finder.findIPv6(words, finder === first.finder ? undefined : first.finder.scheme);
      records = records * finder.file.recordCount + finder.record;
      if (finder.prefix === NO_PREFIX || prefix === NO_PREFIX) prefix = NO_PREFIX;
      else if (finder.prefix > prefix) prefix = finder.prefix;
    }
    let answer = answers.get(records);
    if (answer === undefined) {
      if (answers.size === MAX_ANSWERS) answers.clear();
      answer = makeAnswer();
      answers.set(records, answer);
    }
    const result = { ...answer };
    if (family === 6) result.ip = formatIPv6Full(words);
    else result.ip = text.includes(':') ? formatIPv4(words[0]!) : text;
    if (wantsBlock && prefix !== NO_PREFIX) {
      for (let k = 0; k < (family === 4 ? 1 : 4); k++) words[k] = words[k]! & ~hostMask(prefix, k);
      result.network = formatCidr(family, words, prefix);
    }
    return result as unknown as FieldResult;
  };
}
