/**
 * The table of all commands. Each is a file of its own and is loaded only when it is called: a cold lookup must not wait
 * for the build, the server or the native module.
 */
import { readFileSync } from 'node:fs';
import { EXIT } from '../errors.js';
import { packageFile } from '../package-root.js';
import { type Command, type NamedCommand, print, unknownName, usageError } from './command.js';
import { DATA_DIR_HELP } from './data-dir.js';

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
  stream: { summary: 'enrich the messages of a NATS JetStream stream', load: () => import('./stream.js') },
  export: { summary: 'write a release for other software', load: () => import('./export.js') },
  serve: { summary: 'serve the lookup API', load: () => import('./serve.js') },
  keys: { summary: 'create, list and revoke API keys', load: () => import('./keys.js') },
  repo: { summary: 'make a signed repository of releases', load: () => import('./repo.js') },
  pull: { summary: 'take over the release of a signed repository', load: () => import('./pull.js') },
  info: { summary: 'show what the current release is made of', load: () => import('./info.js') },
  verify: { summary: 'check every byte of a release', load: () => import('./verify.js') },
  explain: { summary: 'explain the result for an address', load: () => import('./explain.js') },
  report: { summary: 'report on the build of a release', load: () => import('./report.js') },
  diff: { summary: 'show what differs between two releases', load: () => import('./diff.js') },
  rollback: { summary: 'make an earlier release current again', load: () => import('./rollback.js') },
  releases: { summary: 'list the releases', load: () => import('./releases.js') },
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

/** The help text of `ipatlas` itself. */
export function overview(): string {
  const list = Object.entries(COMMANDS).map(([name, { summary }]) => `  ${name}  ${summary}`);
  return `Usage: ipatlas COMMAND [options]

Says which country an IP address is in, and whether that country is in the
European Union.

${list.join('\n')}

  --data DIR   ${DATA_DIR_HELP}
  -h, --help   show this page, or a command's
  --version    print the version

Exit codes:

  0    done, also if the reader of the output closed the pipe early
  1    internal error (bug), or a disk that is full or fails
  2    wrong usage or configuration
  3    refused to publish; the current release stays
  4    bad input
  5    no database, or a damaged one
  6    a source could not be fetched or read
  130  interrupted
`;
}

/** Returns the page that `--help` prints for a command, or for `ipatlas` itself. */
export async function helpPage(name?: string): Promise<string> {
  const { formatHelp, parseHelp } = await import('./help.js');
  if (name === undefined) return formatHelp(parseHelp(overview()));
  const { command } = await loadCommand(name);
  return formatHelp(await fullHelp(command));
}

/** Returns a command's help text together with the options that all commands have. */
export async function fullHelp(command: Command) {
  const { parseHelp } = await import('./help.js');
  const help = parseHelp(command.help);
  const common = [{ term: '-h, --help', lines: ['show this page'] }];
  if (command.needsDatabase === true) {
    common.unshift({ term: '--yes', lines: ['if there is no database, build one first, without a question'] });
  }
  if (command.withoutData !== true) common.unshift({ term: '--data DIR', lines: [DATA_DIR_HELP] });
  const own = help.blocks.at(-1);
  if (Array.isArray(own) && own.some(({ term }) => term.startsWith('-'))) own.push(...common);
  else help.blocks.push(common);
  return help;
}

const HELP_COMMAND: Command = {
  help: `Usage: ipatlas help [COMMAND]

Shows the list of commands, or the help of one command.
`,
  options: {},
  arguments: [0, 1],
  withoutData: true,
  async run({ positionals }) {
    await print(await helpPage(positionals[0]));
    return EXIT.ok;
  },
};

const VERSION_COMMAND: Command = {
  help: `Usage: ipatlas version

Prints the version, as --version does.
`,
  options: {},
  arguments: [0, 0],
  withoutData: true,
  async run() {
    await print(`${version()}\n`);
    return EXIT.ok;
  },
};
