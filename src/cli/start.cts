#!/usr/bin/env node
/**
 * The entry of the command line. The commands that process records are one CommonJS file, because that starts 10 ms sooner: Node's
 * loader of ES modules need not start. All other commands are in main.js.
 */
const nodeModule = require('node:module') as typeof import('node:module') & {
  /** Since Node 22.8. */
  enableCompileCache?: (directory: string) => unknown;
};
const { homedir } = require('node:os') as typeof import('node:os');
const { isAbsolute, join } = require('node:path') as typeof import('node:path');

type RecordProgram = typeof import('./record-commands.js', { with: { 'resolution-mode': 'import' }});

const RECORD_COMMANDS = ['lookup', 'enrich', 'filter', 'summarize'];
/** The format of JSON documents needs a library, which the file does not have. */
const JSON_FORMAT = /^(--format=)?json$/;

/**
 * Returns where Node keeps the code that V8 compiled. Node's default is in the directory of temporary files, where another user
 * could put it first.
 */
function compileCacheDirectory(): string {
  const { NODE_COMPILE_CACHE, XDG_CACHE_HOME = '' } = process.env;
  const base = isAbsolute(XDG_CACHE_HOME) ? XDG_CACHE_HOME : join(homedir(), '.cache');
  return NODE_COMPILE_CACHE ?? join(base, 'ipatlas');
}

// If the directory cannot be written, the code is compiled each time.
nodeModule.enableCompileCache?.(compileCacheDirectory());
const [name, ...args] = process.argv.slice(2);
if (RECORD_COMMANDS.includes(name!) && !args.some((argument) => JSON_FORMAT.test(argument))) {
  const { run } = require('./record-commands.cjs') as RecordProgram;
  run(name!, args, {
    helpPage: async (command) => (await import('./commands.js')).helpPage(command),
  });
} else {
  import('./main.js');
}
