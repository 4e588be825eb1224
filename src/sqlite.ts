/** Loads better-sqlite3, the one native module, and checks that it fits this Node. */
import { createRequire } from 'node:module';
import type Sqlite from 'better-sqlite3';
import { AtlasError, messageOf } from './errors.js';

/**
 * The first Node release with which better-sqlite3 13 works: it needs Node-API 10, and an older Node crashes without a
 * message. Version 12 works up to Node 23; on 24 it aborts when a statement is freed (nodejs/node#65446).
 */
const FIRST_NODE_FOR_13 = 22;
const FIRST_NODE_WITHOUT_12 = 24;

/** The range in package.json lets npm choose: 13 wherever Node is new enough, else 12. */
const FIX_BY_NODE = {
  old: 'install ipatlas again with npm; on Node 20, npm chooses better-sqlite3 12 (other package managers must be told to), and if install scripts are switched off (--ignore-scripts), "npm rebuild better-sqlite3" must follow',
  new: 'install ipatlas again with this version of Node; no compiler and no install script is needed',
};

/**
 * Returns the reason why a version of better-sqlite3 must not be loaded by a version of Node, because the process would
 * end without an error that can be caught.
 *
 * @param moduleVersion version of better-sqlite3, such as `13.2.0`
 * @param nodeVersion version of Node, such as `24.1.0`
 * @returns the reason, or undefined if the two fit
 */
export function sqliteMismatch(moduleVersion: string, nodeVersion: string): string | undefined {
  const major = Number.parseInt(moduleVersion, 10);
  const node = Number.parseInt(nodeVersion, 10);
  if (major >= 13 && node < FIRST_NODE_FOR_13) return `better-sqlite3 ${moduleVersion} needs Node 22 or later`;
  if (major < 13 && node >= FIRST_NODE_WITHOUT_12)
    return `better-sqlite3 ${moduleVersion} does not work on Node 24 or later`;
  return undefined;
}

function installError(reason: string, cause?: unknown): AtlasError {
  const { node } = process.versions;
  const fix = Number.parseInt(node, 10) < FIRST_NODE_FOR_13 ? FIX_BY_NODE.old : FIX_BY_NODE.new;
  return new AtlasError('E_INSTALL', `SQLite's native module cannot be used by Node ${node}: ${reason}; ${fix}`, {
    cause,
  });
}

/** The first line of an error's message, without the list of paths that were tried. */
function firstLine(error: unknown): string {
  return messageOf(error)
    .split('\n')[0]!
    .replace(/[.:]\s*(Tried)?:?$/, '');
}

let loaded: typeof Sqlite | undefined;

/**
 * Loads better-sqlite3 on first use. It is not imported because loading it takes a third of the time of a cold lookup, which
 * does not need it.
 *
 * @returns the constructor of databases
 * @throws AtlasError E_INSTALL if the module is missing, was compiled for another Node, or would end this process
 */
export function sqlite(): typeof Sqlite {
  if (loaded !== undefined) return loaded;
  const require = createRequire(import.meta.url);
  let Database: typeof Sqlite;
  try {
    const { version } = require('better-sqlite3/package.json') as { version: string };
    const mismatch = sqliteMismatch(version, process.versions.node);
    if (mismatch !== undefined) throw installError(mismatch);
    Database = require('better-sqlite3') as typeof Sqlite;
    // The compiled part is loaded by the first database that is opened.
    new Database(':memory:').close();
  } catch (error) {
    throw error instanceof AtlasError ? error : installError(firstLine(error), error);
  }
  loaded = Database;
  return Database;
}
