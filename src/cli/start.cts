#!/usr/bin/env node
/**
 * The entry of the command line. The command lookup is one CommonJS file, and those that process records are another, because
 * that starts 10 ms sooner: Node's loader of ES modules need not start. All other commands are in main.js.
 */
const nodeModule = require('node:module') as typeof import('node:module') & {
  /** Since Node 22.8. */
  enableCompileCache?: (directory: string) => unknown;
};
const { homedir } = require('node:os') as typeof import('node:os');
const { isAbsolute, join } = require('node:path') as typeof import('node:path');

type Program = typeof import('./record-commands.js', { with: { 'resolution-mode': 'import' }});

const RECORD_COMMANDS = ['enrich', 'filter', 'summarize'];
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
const rare = {
  helpPage: async (command: string) => (await import('./commands.js')).helpPage(command),
};
if (name === 'lookup') {
  (require('./lookup-command.cjs') as Program).run(name, args, rare);
} else if (RECORD_COMMANDS.includes(name!) && !args.some((argument) => JSON_FORMAT.test(argument))) {
  (require('./record-commands.cjs') as Program).run(name!, args, rare);
} else {
  import('./main.js');
}
