/**
 * The table of all commands. Each is a file of its own and is loaded only when it is called: a cold lookup must not wait
 * for the build, the server or the native module.
 */
import { readFileSync } from 'node:fs';
import { EXIT } from '../errors.js';
import { packageFile } from '../package-root.js';
import { type Command, type NamedCommand, print, unknownName, usageError } from './command.js';
import { PROGRAM_FLAGS } from './command-line.js';
import type { HelpText } from './help.js';

interface Entry {
  /** One line for the help page. */
  summary: string;
  load(): Promise<{ command: Command }>;
}

/** The commands, in the order of the help page. */
export const COMMANDS: Readonly<Record<string, Entry>> = {
  build: { summary: 'build the database from its sources and publish it', load: () => import('./build.js') },
  lookup: { summary: 'look addresses up', load: () => import('./lookup.js') },
  enrich: { summary: 'add the country to JSON lines, JSON, CSV, TSV or lists', load: () => import('./enrich.js') },
  filter: { summary: 'pass on the lines of some countries', load: () => import('./filter.js') },
  summarize: { summary: 'count lines by country', load: () => import('./summarize.js') },
  redact: { summary: 'hide the addresses of records, or get them back', load: () => import('./redact.js') },
  extract: { summary: 'print the addresses in files and text', load: () => import('./extract.js') },
  recognize: {
    summary: 'say what format files have, and where their addresses are',
    load: () => import('./recognize.js'),
  },
  stream: { summary: 'enrich the messages of a NATS JetStream stream', load: () => import('./stream.js') },
  export: { summary: 'write a release for other software', load: () => import('./export.js') },
  serve: { summary: 'serve the lookup API', load: () => import('./serve.js') },
  keys: { summary: 'create, list and revoke API keys', load: () => import('./keys.js') },
  repo: { summary: 'make a signed repository of releases', load: () => import('./repo.js') },
  pull: { summary: 'install the release of a signed repository', load: () => import('./pull.js') },
  info: { summary: 'show what the current release is made of', load: () => import('./info.js') },
  verify: {
    summary: 'check the files of a release against its hashes, and their content',
    load: () => import('./verify.js'),
  },
  explain: { summary: 'explain the result for an address', load: () => import('./explain.js') },
  report: { summary: 'report on the build of a release', load: () => import('./report.js') },
  diff: { summary: 'show what differs between two releases', load: () => import('./diff.js') },
  rollback: { summary: 'make an earlier release current again', load: () => import('./rollback.js') },
  after: { summary: 'run what is to run after a publication', load: () => import('./after.js') },
  releases: { summary: 'list the releases', load: () => import('./releases.js') },
  history: { summary: 'show which answers an address had, and when', load: () => import('./history.js') },
  completion: {
    summary: 'print a completion script for a shell',
    load: async () => ({ command: (await import('./completion.js')).completionCommand(loadCommands) }),
  },
  help: { summary: "show this page, or a command's", load: async () => ({ command: HELP_COMMAND }) },
  version: { summary: 'print the version', load: async () => ({ command: VERSION_COMMAND }) },
};

/**
 * Loads one command.
 *
 * @throws AtlasError E_USAGE if there is no command of that name
 */
export async function loadCommand(name: string): Promise<NamedCommand> {
  const entry = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
  if (entry === undefined) throw usageError(await unknownName('command', name, Object.keys(COMMANDS)));
  return { name, summary: entry.summary, command: (await entry.load()).command };
}

/** Loads all commands, in the order of the help page. */
export function loadCommands(): Promise<NamedCommand[]> {
  return Promise.all(Object.keys(COMMANDS).map(loadCommand));
}

/** Returns the version of the package. */
export function version(): string {
  return (JSON.parse(readFileSync(packageFile('package.json'), 'utf8')) as { version: string }).version;
}

const EXIT_CODES = {
  [EXIT.ok]: 'done, also if the reader of the output closed the pipe early',
  [EXIT.fault]: 'internal error (bug), or a disk that is full or fails',
  [EXIT.usage]: 'wrong usage or configuration',
  [EXIT.refused]: 'refused to publish; the current release stays',
  [EXIT.badInput]: 'bad input',
  [EXIT.noDatabase]: 'no database, or a damaged one',
  [EXIT.fetchFailed]: 'a source could not be fetched, or a signed repository not trusted',
  [EXIT.afterFailed]: 'published, but a step of "after" failed',
  [EXIT.busy]: 'another build, pull, import or repo command is running',
  [EXIT.interrupted]: 'interrupted (Ctrl-C)',
  143: 'ended by SIGTERM',
};

/** Returns the help of `ipatlas` itself. */
export async function overview(): Promise<HelpText> {
  const { flagItems, wordItems } = await import('./help.js');
  const summaries = Object.fromEntries(Object.entries(COMMANDS).map(([name, { summary }]) => [name, summary]));
  return {
    usage: ['ipatlas COMMAND [options]', 'ipatlas ADDRESS…'],
    blocks: [
      'Says which country an IP address is in, and whether that country is in the European Union.',
      wordItems(summaries),
      flagItems(PROGRAM_FLAGS),
      'Exit codes:',
      wordItems(EXIT_CODES),
    ],
    examples: {
      'ipatlas 8.8.8.8 2001:4860:4860::8888': 'the countries of two addresses',
      'ipatlas help enrich': 'what a command does, and its flags',
    },
  };
}

/**
 * Returns the page that `--help` prints for a command or one of its actions, or for `ipatlas` itself.
 *
 * @throws AtlasError E_USAGE if there is no such command or action
 */
export async function helpPage(name?: string, action?: string): Promise<string> {
  const { commandHelp, formatHelp } = await import('./help.js');
  if (name === undefined) return formatHelp(await overview());
  const { command } = await loadCommand(name);
  if (action !== undefined && !Object.hasOwn(command.actions ?? {}, action)) {
    throw usageError(await unknownName(`help page of "${name}"`, action, Object.keys(command.actions ?? {})), name);
  }
  return formatHelp(commandHelp(name, command, action));
}

const HELP_COMMAND: Command = {
  usage: ['help [COMMAND [ACTION]]'],
  description: 'Shows the list of commands, or the help of one command or of one of its actions.',
  operand: 'command',
  options: {},
  examples: {
    'ipatlas help lookup': 'as "ipatlas lookup --help"',
    'ipatlas help keys create': 'only what "keys create" does',
  },
  arguments: [0, 2],
  withoutData: true,
  async run({ positionals: [name, action] }) {
    await print(await helpPage(name, action));
    return EXIT.ok;
  },
};

const VERSION_COMMAND: Command = {
  usage: ['version'],
  description: 'Prints the version, as --version does.',
  options: {},
  examples: { 'ipatlas version': 'such as 1.0.0' },
  withoutData: true,
  async run() {
    await print(`${version()}\n`);
    return EXIT.ok;
  },
};
