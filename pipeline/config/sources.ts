/** `sources.json`: what a database is built from. Read, checked and completed with defaults here, and nowhere else. */
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { type ErrorObject, Ajv2020 as SchemaValidator, type ValidateFunction } from 'ajv/dist/2020.js';
import { type VerifierError, verifier } from 'stream-json/utils/verifier.js';
import { parseIPv4 } from '../../src/address/parse.js';
import { AtlasError, messageOf } from '../../src/errors.js';
import { DEFAULT_GATES, DEFAULT_MAX_REJECT_SHARE, KEPT_RELEASES, MAX_SOURCES } from '../../src/limits.js';
import { packageRoot } from '../../src/package-root.js';
import { parseCidr } from '../../src/range/cidr.js';
import type { SourceKind } from '../../src/range/vote.js';
import type { MergeStrategy, SourceEvidence } from '../merging/evidence.js';

/** A package in an npm registry. */
export interface NpmFetch {
  kind: 'npm';
  /** `name`, `name@tag` or `name@version`. */
  spec: string;
  /** Paths within the package. */
  files: string[];
}

/** A download. */
export interface HttpsFetch {
  kind: 'https';
  /** As written: `${NAME}` still stands for an environment variable, so that no secret gets into a message or the cache. */
  url: string;
  /** Names or globs of the files wanted; empty where the download is one file. */
  files: string[];
}

/** Files on this machine. */
export interface FileFetch {
  kind: 'file';
  /** A path or a glob, as written. */
  pattern: string;
  /** The directory that a relative pattern counts from: that of `sources.json`, absolute. */
  baseDir: string;
  /** Names or globs of the files wanted; empty for all that match, an archive holding one. */
  files: string[];
}

export type FetchConfig = NpmFetch | HttpsFetch | FileFetch;

/** How a source's rows are read: a ready-made format's name, or a description; see `schemas/source-format.schema.json`. */
export type FormatReference = string | Record<string, unknown>;

/** One source, defaults applied. */
export interface SourceConfig extends SourceEvidence {
  id: string;
  title: string;
  license: string;
  /** Empty where the license asks for none. */
  attribution: string;
  /** Empty where there is none. */
  homepage: string;
  fetch: FetchConfig;
  format: FormatReference;
  /** Share of the rows that may be unreadable, 0 to 1. */
  maxRejectShare: number;
}

/** What the gates let through; the defaults say what each is. */
export type GateLimits = Record<keyof typeof DEFAULT_GATES, number>;

/** The whole of `sources.json`, defaults applied. */
export interface SourcesConfig {
  /** Absolute path of the file. */
  path: string;
  /** In order of priority: the first answers first. */
  sources: SourceConfig[];
  /** Absolute path of the overrides, or undefined where none are configured. */
  overrides: string | undefined;
  merge: MergeStrategy;
  keepReleases: number;
  gates: GateLimits;
}

/** The file as it is written, once the schema has accepted it. */
interface SourcesFile {
  maxRejectShare?: number;
  merge?: MergeStrategy;
  overrides?: string;
  keepReleases?: number;
  gates?: Partial<GateLimits>;
  sources: SourceEntry[];
}

interface SourceEntry {
  id: string;
  title?: string;
  license: string;
  attribution?: string;
  homepage?: string;
  lineage?: string;
  kind?: SourceKind;
  space?: string[];
  fetch: { npm?: string; https?: string; file?: string; files?: string[] };
  format: FormatReference;
  maxRejectShare?: number;
}

/**
 * Reads and checks a sources file.
 *
 * @param file path of the file; relative paths in it count from its directory
 * @returns the configuration with every default filled in
 * @throws AtlasError E_CONFIG naming everything that is wrong: for broken JSON its line and column, else for each value its
 *   path, the value and what is expected
 */
export async function loadSources(file: string): Promise<SourcesConfig> {
  const absolute = path.resolve(file);
  const value = await readJson(absolute);
  const validate = await sourcesValidator();
  const problems = validate(value) ? contentProblems(value as SourcesFile) : schemaProblems(validate.errors ?? []);
  if (problems.length > 0) {
    throw new AtlasError('E_CONFIG', `${absolute} is not valid:\n${problems.map((text) => `  ${text}`).join('\n')}`);
  }
  return withDefaults(value as SourcesFile, absolute);
}

/**
 * The sources of a build that is limited to some, in order of priority.
 *
 * @param config the configuration
 * @param only ids, in any order
 * @throws AtlasError E_CONFIG where an id names no source
 */
export function selectSources(config: SourcesConfig, only: readonly string[]): SourceConfig[] {
  const known = config.sources.map((source) => source.id);
  const unknown = only.filter((id) => !known.includes(id));
  if (unknown.length > 0) {
    const names = unknown.map((id) => `"${id}"`).join(', ');
    throw new AtlasError('E_CONFIG', `no source ${names} in ${config.path}; there are: ${known.join(', ')}`);
  }
  return config.sources.filter((source) => only.includes(source.id));
}

async function readJson(file: string): Promise<unknown> {
  let text: string;
  try {
    text = await readFile(file, 'utf8');
  } catch (error) {
    throw new AtlasError('E_CONFIG', `cannot read the sources file: ${messageOf(error)}`, { cause: error });
  }
  // Editors on Windows put a byte order mark there; JSON.parse refuses it.
  if (text.startsWith('\ufeff')) text = text.slice(1);
  try {
    return JSON.parse(text);
  } catch (error) {
    const where = await jsonErrorPlace(text);
    throw new AtlasError('E_CONFIG', `${file}${where} is not JSON: ${messageOf(error)}`, { cause: error });
  }
}

/** `:line:column` of the first error in JSON text, both from 1. JSON.parse does not always say where. */
async function jsonErrorPlace(text: string): Promise<string> {
  try {
    await pipeline(Readable.from([text]), verifier.asStream());
  } catch (error) {
    const { line, pos } = error as VerifierError;
    if (line !== undefined) return `:${line}:${pos}`;
  }
  return '';
}

async function sourcesValidator(): Promise<ValidateFunction> {
  const directory = path.join(packageRoot(), 'schemas');
  const readSchema = async (name: string) => JSON.parse(await readFile(path.join(directory, name), 'utf8'));
  // Strict but for two rules of style: alternatives may differ in required keys alone, and a value may have two types.
  const strictness = { strict: true, strictRequired: false, allowUnionTypes: true };
  const validator = new SchemaValidator({ ...strictness, allErrors: true, verbose: true });
  validator.addSchema(await readSchema('source-format.schema.json'));
  return validator.compile(await readSchema('sources.schema.json'));
}

/** One line for each thing that the schema does not accept. */
function schemaProblems(errors: ErrorObject[]): string[] {
  return errors.filter((error) => !isAlternative(error)).map(schemaProblem);
}

/**
 * Whether the error is that of one alternative of a choice. In our schemas alternatives differ in a required key alone
 * and describe no properties; that the choice as a whole is not met is an error of its own, which says more.
 */
function isAlternative(error: ErrorObject): boolean {
  return error.keyword === 'required' && error.parentSchema?.properties === undefined;
}

function schemaProblem(error: ErrorObject): string {
  const { keyword, params, parentSchema = {} } = error;
  const at = pathText(error.instancePath);
  if (keyword === 'required' || keyword === 'dependentRequired') {
    const key = String(params.missingProperty);
    return `${joinPath(at, key)} is missing; expected ${descriptionOf(parentSchema, key)}`;
  }
  if (keyword === 'additionalProperties') {
    const known = Object.keys((parentSchema.properties as object | undefined) ?? {}).join(', ');
    return `${joinPath(at, String(params.additionalProperty))} is not a known key; expected one of ${known}`;
  }
  return `${at || 'the file'} is ${shortened(error.data)}; expected ${expectation(error)}`;
}

function expectation(error: ErrorObject): string {
  const description = error.parentSchema?.description;
  const rule = (error.message ?? 'another value').replace(/^must NOT have /, 'no ').replace(/^must (be )?/, '');
  if (error.keyword === 'enum') return `one of ${(error.params.allowedValues as unknown[]).join(', ')}`;
  if (typeof description !== 'string') return rule;
  return ['pattern', 'oneOf', 'anyOf'].includes(error.keyword) ? description : `${rule} (${description})`;
}

/** What the schema says of a key. */
function descriptionOf(schema: Record<string, unknown>, key: string): string {
  const property = (schema.properties as Record<string, { description?: string }> | undefined)?.[key];
  return property?.description ?? 'a value for it';
}

/** A JSON pointer (RFC 6901) as a path in code: `/sources/0/id` is `sources[0].id`. */
function pathText(pointer: string): string {
  return pointer
    .split('/')
    .slice(1)
    .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'))
    .reduce((text, part) => (/^\d+$/.test(part) ? `${text}[${part}]` : joinPath(text, part)), '');
}

function joinPath(base: string, key: string): string {
  return base === '' ? key : `${base}.${key}`;
}

function shortened(value: unknown): string {
  const text = JSON.stringify(value);
  return text.length > 60 ? `${text.slice(0, 57)}…` : text;
}

/** What a schema cannot say. */
function contentProblems(file: SourcesFile): string[] {
  const problems: string[] = [];
  if (file.sources.length > MAX_SOURCES) {
    problems.push(`sources has ${file.sources.length} entries; expected at most ${MAX_SOURCES}`);
  }
  const firstUse = new Map<string, number>();
  file.sources.forEach((source, index) => {
    const earlier = firstUse.get(source.id);
    if (earlier === undefined) firstUse.set(source.id, index);
    else
      problems.push(`sources[${index}].id is "${source.id}", as is sources[${earlier}].id; expected ids that differ`);
    problems.push(...spaceProblems(source, file.merge).map((problem) => `sources[${index}].${problem}`));
    const { https } = source.fetch;
    const reason = https === undefined ? undefined : urlProblem(https.replaceAll(PLACEHOLDER, 'x'));
    if (reason !== undefined)
      problems.push(`sources[${index}].fetch.https is ${JSON.stringify(https)}; expected ${reason}`);
  });
  return problems;
}

/** Returns what is wrong with a source's `space`. An operator's own list needs none; anybody can publish a geofeed. */
function spaceProblems({ kind, space }: SourceEntry, merge: MergeStrategy | undefined): string[] {
  if (space === undefined) {
    if (merge !== 'evidence' || kind !== 'geofeed') return [];
    return ['space is missing; expected the CIDR blocks of the owner, because a geofeed overrides all other sources'];
  }
  return space.flatMap((text, index) => {
    const block = parseCidr(text, new Uint32Array(4), new Uint32Array(4));
    const isValid = block !== undefined && text.includes('/') && !block.hostBitsSet;
    return isValid ? [] : [`space[${index}] is ${JSON.stringify(text)}; expected a CIDR block without host bits`];
  });
}

/** `${NAME}` in an address: the environment variable NAME. */
export const PLACEHOLDER = /\$\{([A-Za-z_][A-Za-z0-9_]*)\}/g;

/**
 * Why an address may not be downloaded from, as what is expected instead, or undefined where it may. Plain HTTP can be
 * altered on the way, so it is for this machine alone (a local mirror).
 */
export function urlProblem(text: string): string | undefined {
  if (!URL.canParse(text)) return 'a well-formed address';
  const url = new URL(text);
  if (url.protocol === 'https:') return undefined;
  if (url.protocol === 'http:' && isLoopback(url.hostname)) return undefined;
  return 'an https:// address (http:// is for this machine alone)';
}

/** Whether a URL's host is this machine: `localhost` (RFC 6761 §6.3), 127.0.0.0/8 or `::1`. */
function isLoopback(hostname: string): boolean {
  return hostname === 'localhost' || hostname === '[::1]' || parseIPv4(hostname) >>> 24 === 127;
}

function withDefaults(file: SourcesFile, absolute: string): SourcesConfig {
  const baseDir = path.dirname(absolute);
  return {
    path: absolute,
    sources: file.sources.map((source) => ({
      id: source.id,
      title: source.title ?? source.id,
      license: source.license,
      attribution: source.attribution ?? '',
      homepage: source.homepage ?? '',
      lineage: source.lineage ?? source.id,
      kind: source.kind ?? 'geolocation',
      space: source.space ?? [],
      fetch: fetchConfig(source.fetch, baseDir),
      format: source.format,
      maxRejectShare: source.maxRejectShare ?? file.maxRejectShare ?? DEFAULT_MAX_REJECT_SHARE,
    })),
    overrides: file.overrides === undefined ? undefined : path.resolve(baseDir, file.overrides),
    merge: file.merge ?? 'priority',
    keepReleases: file.keepReleases ?? KEPT_RELEASES,
    gates: { ...DEFAULT_GATES, ...file.gates },
  };
}

function fetchConfig(fetch: SourceEntry['fetch'], baseDir: string): FetchConfig {
  const files = fetch.files ?? [];
  if (fetch.npm !== undefined) return { kind: 'npm', spec: fetch.npm, files };
  if (fetch.https !== undefined) return { kind: 'https', url: fetch.https, files };
  return { kind: 'file', pattern: fetch.file ?? '', baseDir, files };
}
