/** `ipatlas completion`: completion scripts for shells, made from the table of commands. */
import { EXIT } from '../errors.js';
import { type Command, choicesOf, type Flag, type NamedCommand, print, unknownName, usageError } from './command.js';
import { allFlags, PROGRAM_FLAGS } from './command-line.js';

/** A flag as a shell needs to know it. */
interface CompletedFlag {
  name: string;
  short: string | undefined;
  description: string;
  /** What its value is, or undefined if it takes none. */
  value: Candidates | undefined;
}

/** A command that prints the ids of the releases, for all shells. */
const RELEASE_IDS = `ipatlas releases 2>/dev/null | grep -oE '[0-9]{4}-[0-9]{2}-[0-9]{2}-[0-9a-f]{12}'`;

/**
 * What is offered for a word, as each shell says it: in bash the command that prints the candidates that begin with the current
 * word; the action of zsh; options of fish's `complete`: -f without files, -F with files.
 */
const OFFERS = {
  file: { bash: 'compgen -f -- "$cur"', zsh: '_files', fish: '-F' },
  directory: { bash: 'compgen -d -- "$cur"', zsh: '_directories', fish: `-f -a '(__fish_complete_directories)'` },
  release: {
    bash: `compgen -W "$(${RELEASE_IDS})" -- "$cur"`,
    zsh: '_ipatlas_releases',
    fish: `-f -a '(__ipatlas_releases)'`,
  },
  nothing: { bash: ':', zsh: ' ', fish: '-f' },
};

/** What is offered for a word: names of files or directories, ids of releases, nothing, one of these words, or a list of them with commas. */
type Candidates = keyof typeof OFFERS | readonly string[] | { list: readonly string[] };

/** Returns what a shell is told to offer. */
function offerOf(candidates: Candidates): (typeof OFFERS)['file'] {
  if (typeof candidates === 'string') return OFFERS[candidates];
  if ('list' in candidates) {
    const words = candidates.list.join(' ');
    return {
      bash: `_ipatlas_list '${words}'`,
      zsh: `_sequence compadd - ${words}`,
      fish: `-f -a '(__ipatlas_list ${words})'`,
    };
  }
  const words = candidates.join(' ');
  return { bash: `compgen -W '${words}' -- "$cur"`, zsh: `(${words})`, fish: `-f -a '${words}'` };
}

interface Completed {
  name: string;
  summary: string;
  flags: CompletedFlag[];
  /** What the first argument can be, and the others. */
  first: Candidates;
  others: Candidates;
}

const VALUES: Readonly<Record<string, Candidates>> = { FILE: 'file', DIR: 'directory', ID: 'release' };

function flagValue(flag: Flag): Candidates | undefined {
  const { value, common } = flag;
  if (value === undefined) return undefined;
  if (common !== undefined) return value === 'LIST' ? { list: common() } : common();
  return choicesOf(flag) ?? VALUES[value] ?? 'nothing';
}

/** Returns the first words of a text, which say enough in a list of candidates. */
function shortened(help: string): string {
  return help
    .split(/[.:;(]/)[0]!
    .trim()
    .slice(0, 60);
}

function describeFlag(name: string, flag: Flag): CompletedFlag {
  return { name, short: flag.short, description: shortened(flag.help), value: flagValue(flag) };
}

function describeCommand({ name, summary, command }: NamedCommand, names: readonly string[]): Completed {
  const { words, actions, arguments: counts } = command;
  const { operand = counts === undefined && actions === undefined ? 'none' : undefined } = command;
  const operands = { release: 'release', command: names, none: 'nothing' } as const;
  const others = operand === undefined ? 'file' : operands[operand];
  const flags = Object.entries(allFlags(command)).map(([flag, facts]) => describeFlag(flag, facts));
  const first = words ?? actions;
  return {
    name,
    summary,
    flags,
    first: first === undefined ? others : Object.keys(first).filter((word) => word !== ''),
    others,
  };
}

const HEADER = 'made by "ipatlas completion"; do not edit';

function bash(commands: Completed[]): string {
  const reply = (candidates: Candidates): string => {
    const isList = typeof candidates === 'object' && 'list' in candidates;
    return `${isList ? 'compopt -o nospace 2>/dev/null; ' : ''}mapfile -t COMPREPLY < <(${offerOf(candidates).bash})`;
  };
  const values = commands.flatMap(({ name, flags }) =>
    flags.flatMap((flag) => {
      if (flag.value === undefined) return [];
      const pattern = flagWords(flag)
        .map((word) => `${name}:${word}`)
        .join('|');
      return [`    ${pattern}) ${reply(flag.value)}; return ;;`];
    }),
  );
  const cases = commands.map(({ name, flags, first, others }) => {
    const operands = `if ((COMP_CWORD == at + 1)); then ${reply(first)}; else ${reply(others)}; fi`;
    const names = flags.map((flag) => `--${flag.name}`);
    return `    ${name}) if [[ $cur == -* ]]; then ${reply(names)}; else ${operands}; fi ;;`;
  });
  const ofProgram = Object.keys(PROGRAM_FLAGS).map((flag) => `--${flag}`);
  return `# bash completion for ipatlas, ${HEADER}
_ipatlas_list() {
  local before=''
  [[ $cur == *,* ]] && before=\${cur%,*},
  compgen -P "$before" -W "$1" -- "\${cur##*,}"
}
_ipatlas() {
  local cur=\${COMP_WORDS[COMP_CWORD]} prev=\${COMP_WORDS[COMP_CWORD - 1]} command='' at
  for ((at = 1; at < COMP_CWORD; at++)); do
    case \${COMP_WORDS[at]} in
      --data) ((at++)) ;;
      -*) ;;
      *) command=\${COMP_WORDS[at]}; break ;;
    esac
  done
  compopt -o filenames 2>/dev/null
  case $command:$prev in
    :--data) ${reply('directory')}; return ;;
${values.join('\n')}
  esac
  case $command in
    '') if [[ $cur == -* ]]; then ${reply(ofProgram)}; else ${reply(commands.map(({ name }) => name))}; fi ;;
${cases.join('\n')}
  esac
}
complete -F _ipatlas ipatlas
`;
}

/** Returns the flag as it is written: `--output`, and `-o` if it has a letter. */
function flagWords({ name, short }: CompletedFlag): string[] {
  return short === undefined ? [`--${name}`] : [`--${name}`, `-${short}`];
}

/** Quotes a text for a single-quoted string of zsh and fish, without characters that mean something in a specification. */
function plain(text: string): string {
  return text
    .replaceAll("'", '')
    .replaceAll(/[[\]\\:]/g, ' ')
    .replaceAll(/\s+/g, ' ')
    .trim();
}

function zsh(commands: Completed[]): string {
  const flagSpecs = (flag: CompletedFlag): string[] => {
    const value = flag.value === undefined ? '' : `:value:${offerOf(flag.value).zsh}`;
    return flagWords(flag).map((word) => `'*${word}[${plain(flag.description)}]${value}'`);
  };
  const cases = commands.map(({ name, flags, first, others }) => {
    const operands = [`'1:argument:${offerOf(first).zsh}'`, `'*:argument:${offerOf(others).zsh}'`];
    const specs = [...flags.flatMap(flagSpecs), ...operands].map((spec) => `        ${spec}`);
    return `      ${name}) _arguments \\\n${specs.join(' \\\n')} ;;`;
  });
  const ofProgram = Object.entries(PROGRAM_FLAGS).flatMap(([name, flag]) => flagSpecs(describeFlag(name, flag)));
  return `#compdef ipatlas
# zsh completion for ipatlas, ${HEADER}
_ipatlas_releases() {
  local -a ids
  ids=(\${(f)"$(${RELEASE_IDS})"})
  compadd -a ids
}
_ipatlas() {
  local curcontext=$curcontext state
  local -a line commands
  commands=(
${commands.map(({ name, summary }) => `    '${name}:${plain(summary)}'`).join('\n')}
  )
  _arguments -C ${ofProgram.join(' ')} \\
    '1: :->command' '*:: :->arguments'
  case $state in
    command) _describe command commands ;;
    arguments) case $words[1] in
${cases.join('\n')}
    esac ;;
  esac
}
if [[ $funcstack[1] == _ipatlas ]]; then _ipatlas "$@"; else compdef _ipatlas ipatlas; fi
`;
}

function fish(commands: Completed[]): string {
  const flagLine = (condition: string, flag: CompletedFlag): string => {
    const short = flag.short === undefined ? '' : ` -s ${flag.short}`;
    const value = flag.value === undefined ? '' : ` -r ${offerOf(flag.value).fish}`;
    return `complete -c ipatlas -n '${condition}' -l ${flag.name}${short}${value} -d '${plain(flag.description)}'`;
  };
  const ofCommands = commands.flatMap(({ name, summary, flags, first, others }) => [
    `complete -c ipatlas -n __fish_use_subcommand -a ${name} -d '${plain(summary)}'`,
    `complete -c ipatlas -n '__ipatlas_first ${name}' ${offerOf(first).fish}`,
    `complete -c ipatlas -n '__ipatlas_others ${name}' ${offerOf(others).fish}`,
    ...flags.map((flag) => flagLine(`__fish_seen_subcommand_from ${name}`, flag)),
  ]);
  const ofProgram = Object.entries(PROGRAM_FLAGS).map(([name, flag]) =>
    flagLine('__fish_use_subcommand', describeFlag(name, flag)),
  );
  return `# fish completion for ipatlas, ${HEADER}
function __ipatlas_releases
  ${RELEASE_IDS}
end
function __ipatlas_list
  set -l before (string match -r '^.*,' -- (commandline -ct))
  printf "$before%s\\n" $argv
end
function __ipatlas_first -a command
  set -l words (commandline -opc)
  test "$words[-1]" = $command
end
function __ipatlas_others -a command
  __fish_seen_subcommand_from $command; and not __ipatlas_first $command
end
complete -c ipatlas -f
${[...ofProgram, ...ofCommands].join('\n')}
`;
}

const SHELLS: Readonly<Record<string, { print: (commands: Completed[]) => string; help: string }>> = {
  bash: { print: bash, help: 'add to ~/.bashrc: source <(ipatlas completion bash)' },
  zsh: { print: zsh, help: 'add to ~/.zshrc, after compinit: source <(ipatlas completion zsh)' },
  fish: { print: fish, help: 'ipatlas completion fish > ~/.config/fish/completions/ipatlas.fish' },
};

/**
 * Returns the command `completion`.
 *
 * @param loadCommands loads the table of commands, which this command is in itself
 */
export function completionCommand(loadCommands: () => Promise<NamedCommand[]>): Command {
  return {
    usage: ['completion bash|zsh|fish'],
    description: 'Prints a script that completes commands, flags and their values.',
    words: Object.fromEntries(Object.entries(SHELLS).map(([shell, { help }]) => [shell, help])),
    operand: 'none',
    options: {},
    examples: { 'source <(ipatlas completion bash)': 'completes in this shell' },
    arguments: [1, 1],
    withoutData: true,
    async run({ positionals: [name] }) {
      const shell = Object.hasOwn(SHELLS, name!) ? SHELLS[name!] : undefined;
      if (shell === undefined) throw usageError(await unknownName('shell', name!, Object.keys(SHELLS)), 'completion');
      const commands = await loadCommands();
      const names = commands.map(({ name }) => name);
      await print(shell.print(commands.map((command) => describeCommand(command, names))));
      return EXIT.ok;
    },
  };
}
