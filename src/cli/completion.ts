/** `ipatlas completion`: completion scripts for shells, made from the table of commands. */
import { EXIT } from '../errors.js';
import { type Command, type NamedCommand, print, unknownName, usageError } from './command.js';
import { allOptions } from './command-line.js';
import { type HelpItem, parseHelp } from './help.js';

/** A flag as a shell needs to know it. */
interface Flag {
  name: string;
  short: string | undefined;
  description: string;
  /** What its value is, or undefined if it takes none. */
  value: 'file' | 'directory' | 'text' | readonly string[] | undefined;
}

interface Completed {
  name: string;
  summary: string;
  flags: Flag[];
  /** Words that the first argument can be; files if there are none. */
  words: readonly string[];
}

const COMMON_DESCRIPTIONS: Record<string, string> = {
  data: 'the data directory',
  help: 'show the help page',
  yes: 'build a database first if there is none',
};

/** Returns the help item of a flag, or undefined. */
function itemOf(items: HelpItem[], flag: string): HelpItem | undefined {
  return items.find(({ term }) => new RegExp(`(^|[ ,])--${flag}([ ,=]|$)`).test(term));
}

function valueKind(command: Command, flag: string, item: HelpItem | undefined): Flag['value'] {
  const choices = command.choices?.[flag];
  if (choices !== undefined) return choices;
  const [, placeholder] = new RegExp(`--${flag} ([^ ,]+)`).exec(item?.term ?? '') ?? [];
  if (flag === 'data' || placeholder === 'DIR') return 'directory';
  return placeholder === 'FILE' ? 'file' : 'text';
}

function describeCommand({ name, summary, command }: NamedCommand): Completed {
  const items = parseHelp(command.help)
    .blocks.filter((block) => typeof block !== 'string')
    .flat();
  const flags = Object.entries(allOptions(command)).map(([flag, { type, short }]): Flag => {
    const item = itemOf(items, flag);
    // The first words say enough in a list of candidates.
    const text = COMMON_DESCRIPTIONS[flag] ?? item?.lines[0] ?? '';
    const description = text
      .split(/[.:;(]/)[0]!
      .trim()
      .slice(0, 60);
    return { name: flag, short, description, value: type === 'boolean' ? undefined : valueKind(command, flag, item) };
  });
  return { name, summary, flags, words: command.choices?.[''] ?? [] };
}

const HEADER = 'made by "ipatlas completion"; do not edit';

function bash(commands: Completed[]): string {
  const values = commands.flatMap(({ name, flags }) =>
    flags.flatMap((flag) => {
      if (flag.value === undefined) return [];
      const pattern = [`--${flag.name}`, ...(flag.short === undefined ? [] : [`-${flag.short}`])]
        .map((word) => `${name}:${word}`)
        .join('|');
      const candidates = {
        file: 'compgen -f -- "$cur"',
        directory: 'compgen -d -- "$cur"',
        text: ':',
      };
      const command =
        typeof flag.value === 'string' ? candidates[flag.value] : `compgen -W '${flag.value.join(' ')}' -- "$cur"`;
      return [`    ${pattern}) mapfile -t COMPREPLY < <(${command}); return ;;`];
    }),
  );
  const words = commands.flatMap(({ name, flags, words: first }) => [
    `    ${name}) flags='${flags.map((flag) => `--${flag.name}`).join(' ')}' words='${first.join(' ')}' ;;`,
  ]);
  return `# bash completion for ipatlas, ${HEADER}
_ipatlas() {
  local cur=\${COMP_WORDS[COMP_CWORD]} prev=\${COMP_WORDS[COMP_CWORD - 1]}
  local command='' flags='--data --help --version' words='${commands.map(({ name }) => name).join(' ')}' i
  for ((i = 1; i < COMP_CWORD; i++)); do
    case \${COMP_WORDS[i]} in
      --data) ((i++)) ;;
      -*) ;;
      *) command=\${COMP_WORDS[i]}; break ;;
    esac
  done
  compopt -o filenames 2>/dev/null
  case $command:$prev in
    :--data) mapfile -t COMPREPLY < <(compgen -d -- "$cur"); return ;;
${values.join('\n')}
  esac
  case $command in
${words.join('\n')}
  esac
  if [[ $cur == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$flags" -- "$cur")
  elif [[ -n $words ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
  else
    mapfile -t COMPREPLY < <(compgen -f -- "$cur")
  fi
}
complete -F _ipatlas ipatlas
`;
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
  const action = (value: NonNullable<Flag['value']>): string => {
    if (typeof value !== 'string') return `:value:(${value.join(' ')})`;
    return { file: ':file:_files', directory: ':directory:_directories', text: ':value: ' }[value];
  };
  const cases = commands.map(({ name, flags, words }) => {
    const specs = flags.flatMap((flag) => {
      const rest = `[${plain(flag.description)}]${flag.value === undefined ? '' : action(flag.value)}`;
      const names = [`--${flag.name}`, ...(flag.short === undefined ? [] : [`-${flag.short}`])];
      return names.map((word) => `        '*${word}${rest}'`);
    });
    const argument = words.length > 0 ? `'1:argument:(${words.join(' ')})' '*:file:_files'` : `'*:file:_files'`;
    return `      ${name}) _arguments \\\n${specs.join(' \\\n')} \\\n        ${argument} ;;`;
  });
  return `#compdef ipatlas
# zsh completion for ipatlas, ${HEADER}
_ipatlas() {
  local curcontext=$curcontext state
  local -a line commands
  commands=(
${commands.map(({ name, summary }) => `    '${name}:${plain(summary)}'`).join('\n')}
  )
  _arguments -C '--data[the data directory]:directory:_directories' '--help[show the help page]' \\
    '--version[print the version]' '1: :->command' '*:: :->arguments'
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
  const lines = commands.flatMap(({ name, summary, flags, words }) => {
    const seen = `complete -c ipatlas -n '__fish_seen_subcommand_from ${name}'`;
    return [
      `complete -c ipatlas -n __fish_use_subcommand -f -a ${name} -d '${plain(summary)}'`,
      ...(words.length > 0 ? [`${seen} -f -a '${words.join(' ')}'`] : []),
      ...flags.map((flag) => {
        const short = flag.short === undefined ? '' : ` -s ${flag.short}`;
        const value =
          flag.value === undefined
            ? ''
            : typeof flag.value !== 'string'
              ? ` -x -a '${flag.value.join(' ')}'`
              : { file: ' -r -F', directory: ` -x -a '(__fish_complete_directories)'`, text: ' -x' }[flag.value];
        return `${seen} -l ${flag.name}${short}${value} -d '${plain(flag.description)}'`;
      }),
    ];
  });
  return `# fish completion for ipatlas, ${HEADER}\n${lines.join('\n')}\n`;
}

const SHELLS: Record<string, (commands: Completed[]) => string> = { bash, zsh, fish };

/**
 * Returns the command `completion`.
 *
 * @param loadCommands loads the table of commands, which this command is in itself
 */
export function completionCommand(loadCommands: () => Promise<NamedCommand[]>): Command {
  return {
    help: `Usage: ipatlas completion bash|zsh|fish

Prints a script that completes commands, flags and their values.

  bash  add to ~/.bashrc: source <(ipatlas completion bash)
  zsh   add to ~/.zshrc, after compinit: source <(ipatlas completion zsh)
  fish  ipatlas completion fish > ~/.config/fish/completions/ipatlas.fish
`,
    options: {},
    arguments: [1, 1],
    choices: { '': Object.keys(SHELLS) },
    withoutData: true,
    async run({ positionals: [shell] }) {
      const script = Object.hasOwn(SHELLS, shell!) ? SHELLS[shell!] : undefined;
      if (script === undefined) {
        throw usageError(await unknownName('shell', shell!, Object.keys(SHELLS)), 'completion');
      }
      await print(script((await loadCommands()).map(describeCommand)));
      return EXIT.ok;
    },
  };
}
