#!/usr/bin/env node
/**
 * The command line. Each command is a file of its own and loaded only when it is called: a look-up from cold must not pay
 * for the build, the server or the native module.
 */
import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { AtlasError, EXIT, messageOf, systemErrorCode, writeError } from '../errors.js';
import { packageFile } from '../package-root.js';
import type { Command, OptionValues } from './command.js';

/** The commands, in the order of the help page, each with its one line. */
const COMMANDS: Record<string, { summary: string; load: () => Promise<{ command: Command }> }> = {
  build: { summary: 'build the database from its sources and publish it', load: () => import('./build.js') },
  lookup: { summary: 'look addresses up', load: () => import('./lookup.js') },
  enrich: { summary: 'add the country to JSON lines, JSON, CSV, TSV or lists', load: () => import('./enrich.js') },
  stream: { summary: 'enrich the messages of a NATS JetStream stream', load: () => import('./stream.js') },
  export: {
    summary: 'write a release for other software: mmdb, csv, cidr, nginx, haproxy, nft',
    load: () => import('./export.js'),
  },
  info: { summary: 'say what the current release is made of', load: () => import('./info.js') },
  verify: { summary: 'check every byte of a release', load: () => import('./verify.js') },
  serve: { summary: 'serve the lookup API', load: () => import('./serve.js') },
  keys: { summary: 'make, list and revoke keys for the API', load: () => import('./keys.js') },
  explain: { summary: 'say why an address has its answer', load: () => import('./explain.js') },
  diff: { summary: 'say what differs between two releases', load: () => import('./diff.js') },
  rollback: { summary: 'make an earlier release current again', load: () => import('./rollback.js') },
  releases: { summary: 'list the releases there are', load: () => import('./releases.js') },
};

const GLOBAL_OPTIONS = {
  data: { type: 'string' },
  help: { type: 'boolean', short: 'h' },
  version: { type: 'boolean' },
} as const;

const DEFAULT_DATA_DIR = 'data';

function version(): string {
  return (JSON.parse(readFileSync(packageFile('package.json'), 'utf8')) as { version: string }).version;
}

function helpPage(): string {
  const width = Math.max(...Object.keys(COMMANDS).map((name) => name.length));
  const list = Object.entries(COMMANDS).map(([name, { summary }]) => `  ${name.padEnd(width)}  ${summary}`);
  return `ipatlas: which country an IP address is in, and whether that is in the European Union

Usage: ipatlas COMMAND [options]

${list.join('\n')}

  --data DIR   the data directory (or IPATLAS_DATA; default ${DEFAULT_DATA_DIR})
  --help       this page, or a command's
  --version    the version

Exit codes: 0 done, 1 internal error or failing disk, 2 wrong usage or configuration, 3 refused to publish, 4 bad input,
5 no database or a damaged one, 6 a source could not be fetched or read
`;
}

function usageError(message: string, name?: string): AtlasError {
  return new AtlasError('E_USAGE', `${message}; see "ipatlas ${name === undefined ? '' : `${name} `}--help"`);
}

/** Parses the rest of a command's line. */
function parseCommandLine(name: string, command: Command, argv: string[]) {
  try {
    return parseArgs({
      args: argv,
      options: { ...GLOBAL_OPTIONS, ...command.options },
      allowPositionals: true,
      strict: true,
    });
  } catch (error) {
    // Node's message goes on with advice about `--` that only confuses here; its first sentence says it all.
    throw usageError(messageOf(error).split(/\. To specify|\. Use/)[0]!, name);
  }
}

async function runCommand(name: string, argv: string[]): Promise<number> {
  const entry = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
  if (entry === undefined) throw usageError(`there is no command ${JSON.stringify(name)}`);
  const { command } = await entry.load();
  const parsed = parseCommandLine(name, command, argv);
  const values = parsed.values as OptionValues;
  if (values.help === true || command.writesToDescriptor !== true) exitWhenReaderCloses();
  if (values.help === true) {
    process.stdout.write(command.help);
    return EXIT.ok;
  }
  const { positionals } = parsed;
  const [least, most] = command.arguments;
  if (positionals.length < least) throw usageError('an argument is missing', name);
  if (positionals.length > most)
    throw usageError(`the argument ${JSON.stringify(positionals[most])} is one too many`, name);
  const dataDir = (values.data as string | undefined) ?? process.env.IPATLAS_DATA ?? DEFAULT_DATA_DIR;
  if (dataDir === '') throw usageError('--data (or IPATLAS_DATA) is empty', name);
  return command.run({ dataDir, values, positionals });
}

/** Splits `[global options] COMMAND …`: global options may stand in front of the command as well. */
function splitCommandLine(argv: string[]): { name: string | undefined; rest: string[] } {
  for (let i = 0; i < argv.length; i++) {
    const argument = argv[i]!;
    if (argument === '--data') i++;
    else if (!argument.startsWith('-')) return { name: argument, rest: [...argv.slice(0, i), ...argv.slice(i + 1)] };
  }
  return { name: undefined, rest: argv };
}

/** Ends the process quietly if the reader closes the pipe early, as in `ipatlas … | head -1`. */
function exitWhenReaderCloses(): void {
  process.stdout.on('error', (error) => {
    process.exit(systemErrorCode(error) === 'EPIPE' ? EXIT.ok : report(writeError('standard output', error)));
  });
}

async function main(argv: string[]): Promise<number> {
  const { name, rest } = splitCommandLine(argv);
  if (name !== undefined) return runCommand(name, rest);
  exitWhenReaderCloses();
  if (rest.includes('--version')) {
    process.stdout.write(`${version()}\n`);
    return EXIT.ok;
  }
  if (rest.includes('--help') || rest.includes('-h')) {
    process.stdout.write(helpPage());
    return EXIT.ok;
  }
  process.stderr.write(helpPage());
  return EXIT.usage;
}

/** One place turns whatever was thrown into a message and an exit code. */
function report(error: unknown): number {
  if (error instanceof AtlasError) {
    process.stderr.write(`ipatlas: ${error.message}\n`);
    return error.exitCode;
  }
  process.stderr.write(
    `ipatlas: internal error (a bug in ipatlas); please report it: ${error instanceof Error ? error.stack : error}\n`,
  );
  return EXIT.fault;
}

try {
  process.exitCode = await main(process.argv.slice(2));
} catch (error) {
  process.exitCode = report(error);
}
