#!/usr/bin/env node
/**
 * The entry of the command line. The command lookup is one CommonJS file, and those that process records are another, because
 * that starts 10 ms sooner: Node's loader of ES modules need not start. All other commands are in main.js.
 */
const { mkdirSync, readFileSync, renameSync, statSync, writeFileSync } = require('node:fs') as typeof import('node:fs');
const nodeModule = require('node:module') as typeof import('node:module') & {
  /** Since Node 22.8. */
  enableCompileCache?: (directory: string) => unknown;
};
const { homedir } = require('node:os') as typeof import('node:os');
const { dirname, isAbsolute, join } = require('node:path') as typeof import('node:path');

/** `importModule` is how the file imports what few need; scripts/bundle-cli.js adds it. */
type Program = typeof import('./record-commands.js', { with: { 'resolution-mode': 'import' }}) & {
  importModule(name: string): Promise<unknown>;
};

const RECORD_COMMANDS = ['enrich', 'extract', 'filter', 'redact', 'summarize'];

/**
 * Returns where Node keeps the code that V8 compiled. Node's default is in the directory of temporary files, where another user
 * could put it first.
 */
function compileCacheDirectory(): string {
  const { NODE_COMPILE_CACHE, XDG_CACHE_HOME = '' } = process.env;
  const base = isAbsolute(XDG_CACHE_HOME) ? XDG_CACHE_HOME : join(homedir(), '.cache');
  return NODE_COMPILE_CACHE ?? join(base, 'ipatlas');
}

/** A cache that cannot be read or written is no error. */
function attempt<Result>(action: () => Result): Result | undefined {
  try {
    return action();
  } catch {
    return undefined;
  }
}

/**
 * Loads one of the files as `require` does, with what V8 compiled in an earlier run, which takes a third of the time: for versions of
 * Node without a cache. The file is stored with its code, for this very binary of Node, since V8 compares little of either.
 */
function loadCached(name: string): Program {
  const { Script } = require('node:vm') as typeof import('node:vm');
  const filename = join(__dirname, name);
  const source = readFileSync(filename);
  const { size, mtimeMs } = statSync(process.execPath);
  const key = `${name}-${source.length}-${process.version}-${process.arch}-${size}-${mtimeMs}`;
  const path = join(compileCacheDirectory(), key);
  const stored = attempt(() => readFileSync(path));
  const isSame = stored?.subarray(0, source.length).equals(source) === true;
  const script = new Script(`(function (exports, require, __filename) {${source}\n})`, {
    filename,
    cachedData: isSame ? stored!.subarray(source.length) : undefined,
  });
  const store = (): void => {
    mkdirSync(dirname(path), { recursive: true });
    // On the disk before it has its name: V8 does not check the code.
    writeFileSync(`${path}.${process.pid}`, Buffer.concat([source, script.createCachedData()]), { flush: true });
    renameSync(`${path}.${process.pid}`, path);
  };
  // At the end, what has run is compiled.
  if (!isSame || script.cachedDataRejected === true) process.on('exit', () => attempt(store));
  const program = {} as Program;
  script.runInThisContext()(program, require, filename);
  program.importModule = (name) => import(name);
  return program;
}

const hasCache = nodeModule.enableCompileCache !== undefined || process.env.NODE_DISABLE_COMPILE_CACHE === '1';
const load = hasCache ? (name: string) => require(`./${name}`) as Program : loadCached;
nodeModule.enableCompileCache?.(compileCacheDirectory());
const [name, ...args] = process.argv.slice(2);
const rare = {
  helpPage: async (command: string) => (await import('./commands.js')).helpPage(command),
};
if (name === 'lookup') {
  load('lookup-command.cjs').run(name, args, rare);
} else if (RECORD_COMMANDS.includes(name!)) {
  load('record-commands.cjs').run(name!, args, rare);
} else {
  import('./main.js');
}
