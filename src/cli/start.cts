#!/usr/bin/env node
/**
 * The entry of the command line. The commands that process records start in less than twice the time of Node itself, because they are
 * one CommonJS file, loaded with the code that V8 compiled from it before. All other commands are in main.js.
 */
const { readFileSync, statSync } = require('node:fs') as typeof import('node:fs');
const { join } = require('node:path') as typeof import('node:path');
const { Script } = require('node:vm') as typeof import('node:vm');

type RecordProgram = typeof import('./record-commands.js', { with: { 'resolution-mode': 'import' }});

const RECORD_COMMANDS = ['lookup', 'enrich', 'filter', 'summarize'];
/** The format of JSON documents needs a library, which the file does not have. */
const JSON_FORMAT = /^(--format=)?json$/;

/**
 * Returns the path of the compiled code for this very binary of Node. V8 itself compares its own version only, and then crashes
 * with the code of another build of Node.
 */
function compiledCodePath(): string {
  const { size, mtimeMs } = statSync(process.execPath);
  return join(__dirname, `record-commands-${process.version}-${size}-${mtimeMs}.compiled`);
}

/** Reads the compiled code; undefined if the package was built by another Node. */
function readCompiledCode(): Buffer | undefined {
  try {
    return readFileSync(compiledCodePath());
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

/** Loads the file as `require` does. The compiled code is ignored if it was made under other flags of V8. */
function loadRecordCommands(cachedData?: Buffer): { program: RecordProgram; script: InstanceType<typeof Script> } {
  const filename = join(__dirname, 'record-commands.cjs');
  const source = `(function (exports, require, __filename) {${readFileSync(filename, 'utf8')}\n})`;
  const script = new Script(source, { filename, cachedData });
  const program = {} as RecordProgram;
  script.runInThisContext()(program, require, filename);
  return { program, script };
}

if (require.main === module) {
  const [name, ...args] = process.argv.slice(2);
  if (RECORD_COMMANDS.includes(name!) && !args.some((argument) => JSON_FORMAT.test(argument))) {
    loadRecordCommands(readCompiledCode()).program.run(name!, args, {
      helpPage: async (command) => (await import('./commands.js')).helpPage(command),
      buildFirst: async (...request) => (await import('./first-build.js')).buildFirst(...request),
    });
  } else {
    import('./main.js');
  }
} else {
  // For scripts/store-compiled-code.js and the tests.
  Object.assign(exports, { compiledCodePath, loadRecordCommands });
}
