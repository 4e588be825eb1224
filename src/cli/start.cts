#!/usr/bin/env node
/**
 * The entry of the command line. The commands that process records start in twice the time of Node itself, because they are one
 * CommonJS file, loaded with the code that V8 compiled from it when the package was built. All other commands are in main.js.
 */
const { readFileSync } = require('node:fs') as typeof import('node:fs');
const { join } = require('node:path') as typeof import('node:path');
const { Script } = require('node:vm') as typeof import('node:vm');

type RecordProgram = typeof import('./record-commands.js', { with: { 'resolution-mode': 'import' }});

const RECORD_COMMANDS = ['lookup', 'enrich', 'filter', 'summarize'];
/** The format of JSON documents needs a library, which the file does not have. */
const JSON_FORMAT = /^(--format=)?json$/;

/** Reads the compiled code, which is missing in a package that was built without it. */
function readCache(path: string): Buffer | undefined {
  try {
    return readFileSync(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

/** Loads the commands as `require` does, with the compiled code. V8 ignores that of another version of Node. */
function loadRecordCommands(): { program: RecordProgram; script: InstanceType<typeof Script> } {
  const filename = join(__dirname, 'record-commands.cjs');
  const source = `(function (exports, require, __filename) {${readFileSync(filename, 'utf8')}\n})`;
  const script = new Script(source, {
    filename,
    cachedData: readCache(`${filename}.cache`),
  });
  const program = {} as RecordProgram;
  script.runInThisContext()(program, require, filename);
  return { program, script };
}

if (require.main === module) {
  const [name, ...args] = process.argv.slice(2);
  if (RECORD_COMMANDS.includes(name!) && !args.some((argument) => JSON_FORMAT.test(argument))) {
    loadRecordCommands().program.run(name!, args, {
      helpPage: async (command) => (await import('./commands.js')).helpPage(command),
      buildFirst: async (...request) => (await import('./first-build.js')).buildFirst(...request),
    });
  } else {
    import('./main.js');
  }
} else {
  // For scripts/store-compiled-code.js.
  exports.loadRecordCommands = loadRecordCommands;
}
