/** Reads `sources.json`, checks it, and fills in its defaults. */
import path from 'node:path';
import type { ValidateFunction } from 'ajv/dist/2020.js';
import type { NetworkList } from '../../src/database/release.js';
import { AtlasError } from '../../src/errors.js';
import { readJsonFile } from '../../src/json-file.js';
import {
  DEFAULT_GATES,
  DEFAULT_MAX_REJECT_SHARE,
  type GateLimit,
  type GateName,
  KEPT_RELEASES,
  MAX_SOURCES,
} from '../../src/limits.js';
import { parseCidr } from '../../src/range/cidr.js';
import type { SourceKind } from '../../src/range/vote.js';
import { compileSchema, describeSchemaErrors } from '../../src/schema-errors.js';
import { withoutCredentials } from '../../src/url.js';
import type { MergeStrategy, SourceEvidence } from '../merging/evidence.js';
import { checkOwner } from './commands.js';
import { addressProblem } from './url.js';

/** What a location may set for its files instead of the source. */
export interface LocationOverrides {
  format?: FormatReference;
  license?: string;
  attribution?: string;
  /** Set if the files are only a seed for the first build: the warning of their publisher. */
  seed?: string;
}

/** An npm package that is installed with ipatlas. */
export interface NpmLocation extends LocationOverrides {
  kind: 'npm';
  /** `name`, `name@tag` or `name@version`. */
  spec: string;
  /** Paths within the package. */
  files: string[];
}

/** Downloads. */
export interface HttpsLocation extends LocationOverrides {
  kind: 'https';
  /** As written, with placeholders, so that no secret gets into a message or the cache. */
  urls: string[];
  /** Names of the files wanted, or patterns of names; empty if each download is one file. */
  files: string[];
  /** Address of the SHA-256 or MD5 of a download; `${url}` and `${file}` are its address and its file name. */
  checksum?: string;
}

/** Files on this machine. */
export interface FileLocation extends LocationOverrides {
  kind: 'file';
  /** A path or a glob, as written. */
  pattern: string;
  /** The directory of a relative pattern: that of `sources.json`, absolute. */
  baseDir: string;
  /** Names of the files wanted, or patterns of names; empty for all that match, an archive then holding one. */
  files: string[];
}

/** What a command prints. */
export interface CommandLocation extends LocationOverrides {
  kind: 'command';
  /** The program and its arguments. */
  command: string[];
  /** What the command gives is called by this name. */
  file: string;
  /** Names of the files wanted out of an archive, or patterns of names. */
  files: string[];
  /** The directory in which it runs: that of `sources.json`, absolute. */
  baseDir: string;
  /** Such as `30s`; undefined for that of a download. */
  timeout: string | undefined;
}

/** Where the files of a source can be had. */
export type Location = NpmLocation | HttpsLocation | CommandLocation | FileLocation;

/** How a source's rows are parsed: the name of a built-in format, or a description; see `schemas/source-format.schema.json`. */
export type FormatReference = string | Record<string, unknown>;

/** The operators whose own lists have formats of their own. */
export const OPERATOR_FORMATS = {
  'aws-ip-ranges': 'aws',
  'azure-service-tags': 'azure',
  'google-cloud': 'google',
  'oracle-cloud': 'oracle',
} as const;

/** Returns what the rows of a format say of the networks of their addresses. */
function networkOfFormat(format: FormatReference): NetworkList | undefined {
  const operator = OPERATOR_FORMATS[format as keyof typeof OPERATOR_FORMATS];
  return operator && { kind: 'cloud', operator };
}

/** One source, defaults applied. */
export interface SourceConfig extends SourceEvidence {
  /** What its rows say of the networks of their addresses; undefined if they do not. */
  network?: NetworkList | undefined;
  id: string;
  title: string;
  license: string;
  /** Empty if the license asks for none. */
  attribution: string;
  /** Empty if there is none. */
  homepage: string;
  /** Web address where its publisher takes corrections; empty if there is none. */
  corrections: string;
  /** Whether a build may go on without the source. */
  optional: boolean;
  /** Tried in order. */
  locations: Location[];
  format: FormatReference;
  /** Share of the rows that may be rejected, 0 to 1. */
  maxRejectShare: number;
}

/** The limits of the gates; see DEFAULT_GATES. */
export type GateLimits = Record<GateName, GateLimit>;

/** The whole of `sources.json`, defaults applied. */
export interface SourcesConfig {
  /** Absolute path of the file. */
  path: string;
  /** The source with the highest priority first. */
  sources: SourceConfig[];
  /** Absolute path of the overrides; undefined if none are configured. */
  overrides: string | undefined;
  /** Absolute paths of the files of labels. */
  labels: string[];
  merge: MergeStrategy;
  keepReleases: number;
  /** Absolute path of the directory for reports; undefined if none are wanted. */
  report: string | undefined;
  gates: GateLimits;
  /** What runs after each publication. */
  after: AfterStep[];
}

/** A step after a publication; see schemas/after.schema.json. */
export type AfterStep = ExportStep | { run: string[]; timeout?: string; always?: boolean };

/** A step that writes a file. */
export interface ExportStep {
  export: string;
  output: string;
  flags?: string[];
}

/** The file as written, once the schema has accepted it. */
interface SourcesFile {
  merge?: MergeStrategy;
  maxRejectShare?: number;
  overrides?: string;
  labels?: string | string[];
  keepReleases?: number;
  report?: string;
  gates?: Partial<GateLimits>;
  after?: AfterStep[];
  sources: SourceEntry[];
}

interface SourceEntry {
  id: string;
  title?: string;
  license: string;
  attribution?: string;
  homepage?: string;
  corrections?: string;
  lineage?: string;
  kind?: SourceKind;
  interpolates?: boolean;
  space?: string[];
  asns?: number[];
  network?: NetworkList;
  optional?: boolean;
  fetch: LocationEntry | LocationEntry[];
  format: FormatReference;
  maxRejectShare?: number;
}

interface LocationEntry extends LocationOverrides {
  npm?: string;
  https?: string | string[];
  command?: string[];
  timeout?: string;
  file?: string;
  files?: string[];
  checksum?: string;
}

/** Returns one value or several as a list. */
function asList<Value>(value: Value | Value[]): Value[] {
  return Array.isArray(value) ? value : [value];
}

/**
 * Reads and checks a sources file.
 *
 * @param file path of the file; relative paths in it count from its directory
 * @returns the configuration with every default filled in
 * @throws AtlasError E_CONFIG with every error: for broken JSON its line and column, otherwise for each value its path, the
 *   value and what is expected; also if it has commands and others could have written it
 */
export async function loadSources(file: string): Promise<SourcesConfig> {
  const absolute = path.resolve(file);
  const value = await readJsonFile(absolute, 'the sources file');
  validator ??= compileSchema(['source-format', 'after', 'sources']);
  const problems = validator(value)
    ? contentProblems(value as SourcesFile)
    : describeSchemaErrors(validator.errors ?? []);
  if (problems.length > 0) {
    throw new AtlasError('E_CONFIG', `${absolute} is not valid:\n${problems.map((text) => `  ${text}`).join('\n')}`);
  }
  const config = withDefaults(value as SourcesFile, absolute);
  const locations = config.sources.flatMap((source) => source.locations);
  if (config.after.length > 0 || locations.some(({ kind }) => kind === 'command')) checkOwner(absolute);
  return config;
}

/**
 * Returns the sources of a build that is limited to some, in order of priority.
 *
 * @param config the configuration
 * @param only ids, in any order
 * @throws AtlasError E_CONFIG if there is no source of an id
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

/** Compiled for the first file; that takes longer than a small build. */
let validator: ValidateFunction | undefined;

/** Returns the errors that a schema cannot express. */
function contentProblems(file: SourcesFile): string[] {
  const problems: string[] = [];
  if (file.sources.length > MAX_SOURCES) {
    problems.push(`sources has ${file.sources.length} entries; expected at most ${MAX_SOURCES}`);
  }
  const firstUse = new Map<string, number>();
  file.sources.forEach((source, index) => {
    const earlier = firstUse.get(source.id);
    if (earlier === undefined) firstUse.set(source.id, index);
    else {
      problems.push(`sources[${index}].id is "${source.id}", as is sources[${earlier}].id; expected ids that differ`);
    }
    problems.push(...spaceProblems(source, file.merge).map((problem) => `sources[${index}].${problem}`));
    asList(source.fetch).forEach(({ https = [], checksum }, location) => {
      const at = `sources[${index}].fetch${Array.isArray(source.fetch) ? `[${location}]` : ''}`;
      for (const address of asList(https)) {
        const expected = addressProblem(address);
        const shown = JSON.stringify(withoutCredentials(address));
        if (expected !== undefined) problems.push(`${at}.https is ${shown}; expected ${expected}`);
      }
      const isBesideDownload = checksum === undefined || /^\$\{url\}/.test(checksum);
      const expected = isBesideDownload ? undefined : addressProblem(checksum);
      const shown = JSON.stringify(withoutCredentials(checksum ?? ''));
      if (expected !== undefined) problems.push(`${at}.checksum is ${shown}; expected ${expected}`);
    });
  });
  return problems;
}

/** Returns what is wrong with the space of the owner of a source's data. */
function spaceProblems({ kind, space, asns }: SourceEntry, merge: MergeStrategy | undefined): string[] {
  if (kind === 'registry' && (space ?? asns) !== undefined) {
    return [
      `${space === undefined ? 'asns' : 'space'} is not for kind registry, whose rows say which space is delegated; leave it out`,
    ];
  }
  if (space === undefined) {
    const needsOwner = merge === 'evidence' && (kind === 'operator' || kind === 'geofeed') && asns === undefined;
    if (!needsOwner) return [];
    return [
      `space is missing; expected the CIDR blocks of the owner, or its AS numbers in "asns", because data of kind ${kind} overrides all other sources`,
    ];
  }
  return space.flatMap((text, index) => {
    const block = parseCidr(text, new Uint32Array(4), new Uint32Array(4));
    const isValid = block !== undefined && text.includes('/') && !block.hostBitsSet;
    return isValid ? [] : [`space[${index}] is ${JSON.stringify(text)}; expected a CIDR block without host bits`];
  });
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
      corrections: source.corrections ?? '',
      lineage: source.lineage ?? source.id,
      kind: source.kind ?? 'other',
      interpolates: source.interpolates ?? false,
      space: source.space ?? [],
      asns: source.asns ?? [],
      network: source.network ?? networkOfFormat(source.format),
      optional: source.optional ?? false,
      locations: asList(source.fetch).map((location) => locationConfig(location, baseDir)),
      format: source.format,
      maxRejectShare: source.maxRejectShare ?? file.maxRejectShare ?? DEFAULT_MAX_REJECT_SHARE,
    })),
    overrides: file.overrides === undefined ? undefined : path.resolve(baseDir, file.overrides),
    labels: asList(file.labels ?? []).map((label) => path.resolve(baseDir, label)),
    merge: file.merge ?? 'priority',
    keepReleases: file.keepReleases ?? KEPT_RELEASES,
    report: file.report === undefined ? undefined : path.resolve(baseDir, file.report),
    gates: { ...DEFAULT_GATES, ...file.gates },
    after: file.after ?? [],
  };
}

function locationConfig(
  { npm, https, command, timeout, file = '', files = [], checksum, ...overrides }: LocationEntry,
  baseDir: string,
): Location {
  if (npm !== undefined) return { kind: 'npm', spec: npm, files, ...overrides };
  if (https !== undefined) {
    return { kind: 'https', urls: asList(https), files, ...(checksum !== undefined && { checksum }), ...overrides };
  }
  if (command !== undefined) return { kind: 'command', command, file, files, baseDir, timeout, ...overrides };
  return { kind: 'file', pattern: file, baseDir, files, ...overrides };
}
