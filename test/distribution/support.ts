/** A signed repository with its origin, a static web server that can be told to misbehave, and nodes that pull. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { ROLES, type Role } from '../../pipeline/distribution/keys.js';
import {
  addRelease,
  initRepository,
  type RepositoryOptions,
  refreshRepository,
  rotateKeys,
  type Threshold,
} from '../../pipeline/distribution/repository.js';
import { type PullOptions, pull } from '../../pipeline/pull.js';
import { currentReleaseId, RELEASES_DIR } from '../../src/database/release.js';
import { verifyRelease } from '../../src/database/verify.js';
import { AtlasError, ERROR_TABLE } from '../../src/errors.js';
import type { LabelBlock } from '../support/labels.js';
import type { NetworkBlock } from '../support/networks.js';
import { type Block, country, publishBlocks, SMALL_WORLD } from '../support/release.js';
import { writeSources } from '../support/sources.js';

/** Worlds that differ in one answer, that for 80.0.0.1. */
export const world = (code: string): Block[] => [...SMALL_WORLD, ['80.0.0.0/9', country(code, `Country ${code}`)]];

/** Gates that accept every release of these tests. */
export const OPEN_GATES = {
  maxChangedShareIPv4: 1,
  maxChangedShareIPv6: 1,
  maxLostShareIPv4: 1,
  maxLostShareIPv6: 1,
  maxChangedDelegationsIPv6: 1,
  maxLostDelegationsIPv6: 1,
  maxEuChangeShareIPv4: 1,
  maxPairShareIPv4: 1,
  maxCountryShareIPv4: 1,
  maxCountryDelegationsIPv6: 1,
  maxCountryLossShare: 1,
  maxCountryGainShare: 1000,
  maxVanishedCountries: 1000,
  maxBlockIPv4: 2 ** 32,
  maxBlockIPv6: 2 ** 48,
  maxRowsChange: 1000,
  maxWrongSentinels: 1000,
};

export { temporaryDir as scratchDir } from '../support/temporary.js';

export const ONE_OF_ONE: Threshold = { keys: 1, threshold: 1 };

/** The place where releases are made and signed: a new one, or the one that was `made` in the folder. */
export class Origin {
  readonly dir: string;
  readonly dataDir: string;
  readonly repo: string;
  readonly keys: string;
  readonly notes: string[] = [];

  constructor(
    dir: string,
    thresholds: Partial<Record<Role, Threshold>> | 'made' = {},
    options: Partial<RepositoryOptions> = {},
  ) {
    this.dir = dir;
    this.dataDir = join(dir, 'origin');
    this.repo = join(dir, 'repo');
    this.keys = join(dir, 'keys');
    const defaults = Object.fromEntries(ROLES.map((role) => [role, ONE_OF_ONE])) as Record<Role, Threshold>;
    if (thresholds !== 'made') initRepository(this.options(options), { ...defaults, ...thresholds });
  }

  options(options: Partial<RepositoryOptions> = {}): RepositoryOptions {
    return { dir: this.repo, keyDirs: [this.keys], note: (line) => this.notes.push(line), ...options };
  }

  /** Publishes a release at the origin and adds it to the repository; returns its id. */
  async add(
    blocks: Block[],
    options: Partial<RepositoryOptions> = {},
    networks: readonly NetworkBlock[] = [],
    labels: readonly LabelBlock[] = [],
  ): Promise<string> {
    const id = await publishBlocks(this.dataDir, blocks, undefined, 0, networks, labels);
    addRelease(this.options(options), join(this.dataDir, RELEASES_DIR, id));
    return id;
  }

  refresh(options: Partial<RepositoryOptions> = {}) {
    return refreshRepository(this.options(options));
  }

  rotate(roles: Role[], options: Partial<RepositoryOptions> = {}) {
    return rotateKeys(this.options(options), roles);
  }

  /** The root metadata of a version. */
  root(version = 1): Buffer {
    return readFileSync(this.metadataPath(`${version}.root.json`));
  }

  metadataPath(name: string): string {
    return join(this.repo, 'metadata', name);
  }
}

/** What a pull ended with. */
export interface Pulled {
  /** `published`, `unchanged`, or the code of the error. */
  outcome: string;
  exit: number;
  message: string;
  notes: string[];
}

/** A machine that pulls. */
export class Node {
  readonly dataDir: string;
  readonly sourcesFile: string;

  constructor(dir: string, name = 'node', gates: object = OPEN_GATES) {
    this.dataDir = join(dir, name);
    this.sourcesFile = writeSources(join(dir, `${name}-config`), { unused: '1.0.0.0,1.0.0.0,US\n' }, { gates });
  }

  /** Pulls once; an error that a user may meet is an outcome. */
  async pull(url: string, root: Buffer, options: Partial<PullOptions> = {}): Promise<Pulled> {
    const notes: string[] = [];
    const note = (line: string) => notes.push(line);
    const limits = { retries: 0, ...options.limits };
    const { dataDir, sourcesFile } = this;
    try {
      const { outcome } = await pull({ dataDir, url, root, sourcesFile, force: false, note, ...options, limits });
      return { outcome, exit: 0, message: '', notes };
    } catch (error) {
      if (!(error instanceof AtlasError)) throw error;
      return { outcome: error.code, exit: ERROR_TABLE[error.code].exit, message: error.message, notes };
    }
  }

  /** The current release, after checking that it is intact. */
  current(): string | undefined {
    const id = currentReleaseId(this.dataDir);
    if (id !== undefined) verifyRelease(join(this.dataDir, RELEASES_DIR, id));
    return id;
  }
}

/** Answers a request instead of the file; returns false to send the file after all. */
export type Interference = (request: IncomingMessage, response: ServerResponse, path: string) => boolean;

/** A static web server on the loopback address. */
export interface StaticServer {
  url: string;
  /** Paths that were asked for, in order. */
  requests: string[];
  /** The `Range` headers, by the same index; undefined if there was none. */
  ranges: (string | undefined)[];
  /** The folder that is served. */
  dir: string;
  interfere: Interference;
}

/** Answers requests of paths with this ending instead of the files. */
export function answerInstead(
  server: StaticServer,
  ending: string,
  answer: (response: ServerResponse, path: string) => void,
): void {
  server.interfere = (_request, response, path) => {
    const isAsked = path.endsWith(ending);
    if (isAsked) answer(response, path);
    return isAsked;
  };
}

/** Returns the files of a release that were requested, without the one that each pull asks for. */
export function filesRequested({ requests }: StaticServer): string[] {
  return requests
    .filter((path) => path.startsWith('/targets') && !path.endsWith('.current.json'))
    .map((path) => path.replace(/^.*[0-9a-f]{64}\./, ''));
}

/** Parses `bytes=N-`, the only range that a client of this project asks for. */
function rangeStart(header: string | undefined): number {
  return Number(/^bytes=(\d+)-$/.exec(header ?? '')?.[1] ?? 0);
}

/**
 * Serves a folder as common web servers do: 404 for what is missing, 206 for ranges.
 *
 * @param whenDone takes what closes the server; by default, the end of the test closes it
 */
export async function serveStatic(
  dir: string,
  whenDone: (close: () => Promise<void>) => void = onTestFinished,
): Promise<StaticServer> {
  const state: StaticServer = { url: '', requests: [], ranges: [], dir, interfere: () => false };
  const server = createServer((request, response) => {
    const path = decodeURIComponent(new URL(request.url!, 'http://localhost').pathname);
    state.requests.push(path);
    state.ranges.push(request.headers.range);
    if (state.interfere(request, response, path)) return;
    let content: Buffer;
    try {
      content = readFileSync(join(state.dir, path));
    } catch {
      response.writeHead(404).end('not found');
      return;
    }
    const start = rangeStart(request.headers.range);
    if (start === 0) response.writeHead(200, { 'content-length': content.length }).end(content);
    else if (start >= content.length) response.writeHead(416).end();
    else {
      const range = `bytes ${start}-${content.length - 1}/${content.length}`;
      const headers = { 'content-range': range, 'content-length': content.length - start };
      response.writeHead(206, headers).end(content.subarray(start));
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  whenDone(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  state.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return state;
}

/** Replaces a file of a served folder. */
export function put(dir: string, path: string, content: string | Buffer): void {
  mkdirSync(join(dir, path, '..'), { recursive: true });
  writeFileSync(join(dir, path), content);
}
