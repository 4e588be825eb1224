/** Help texts: what the help pages, the manual page and docs/commands.md say of a command, made from its tables. */
import type { Command, Flag, FlagTable } from './command.js';
import { allFlags } from './command-line.js';

/** Widest line of help, in characters: the width of a terminal. */
export const HELP_WIDTH = 80;

/** Widest column of terms, in characters; the description of a longer term begins on the next line. */
const MAX_TERM_WIDTH = 21;

/** A flag, a format or another term, with its description. */
export interface HelpItem {
  term: string;
  text: string;
  /** A list inside the description: the values of a flag. */
  choices?: Readonly<Record<string, string>> | undefined;
}

export interface HelpText {
  /** What follows `Usage: `, one element for each form of the command. */
  usage: string[];
  /** Paragraphs and lists, in their order. */
  blocks: (string | HelpItem[])[];
  /** Command lines, and what they do. */
  examples: Readonly<Record<string, string>>;
}

/** Returns the paragraphs of a text, each on one line. */
function paragraphs(text: string): string[] {
  return text.split(/\n{2,}/).map((paragraph) => paragraph.replaceAll(/\s*\n\s*/g, ' ').trim());
}

/** Returns a list of words and what they mean. */
export function wordItems(words: Readonly<Record<string, string>>): HelpItem[] {
  return Object.entries(words).map(([term, text]) => ({ term, text }));
}

function flagItem(name: string, { help, value, short, choices }: Flag): HelpItem {
  const term = `${short === undefined ? '' : `-${short}, `}--${name}${value === undefined ? '' : ` ${value}`}`;
  return { term, text: help, choices: Array.isArray(choices) ? undefined : (choices as Record<string, string>) };
}

/** Returns a list of flags. */
export function flagItems(flags: FlagTable): HelpItem[] {
  return Object.entries(flags).map(([name, flag]) => flagItem(name, flag));
}

/**
 * Returns the help of a command.
 *
 * @param action one of the command's actions, for the help of that alone
 */
export function commandHelp(name: string, command: Command, action?: string): HelpText {
  const { actions = {}, words } = command;
  const form = (word: string): string =>
    ['ipatlas', name, word, actions[word]!.usage].filter((part) => part !== '').join(' ');
  if (action !== undefined) {
    const { help, flags = [] } = actions[action]!;
    const own = Object.entries(allFlags(command)).filter(
      ([flag]) => !Object.hasOwn(command.options, flag) || flags.includes(flag),
    );
    const examples = Object.entries(command.examples).filter(([line]) => line.includes(`ipatlas ${name} ${action}`));
    return {
      usage: [form(action)],
      blocks: [help, flagItems(Object.fromEntries(own))],
      examples: Object.fromEntries(examples),
    };
  }
  const items = Object.entries(allFlags(command)).map(([flag, { help, ...rest }]) => {
    const users = Object.keys(actions).filter((word) => actions[word]!.flags?.includes(flag));
    const isGeneral = users.length === 0 || users.includes('') || users.length === Object.keys(actions).length;
    return flagItem(flag, { help: isGeneral ? help : `${users.join(', ')}: ${help}`, ...rest });
  });
  const named = Object.entries(actions).filter(([word]) => word !== '');
  const list = words ?? Object.fromEntries(named.map(([word, { help }]) => [word, help]));
  return {
    usage: [...command.usage.map((usage) => `ipatlas ${usage}`), ...Object.keys(actions).map(form)],
    blocks: [...paragraphs(command.description), wordItems(list), items].filter((block) => block.length > 0),
    examples: command.examples,
  };
}

/** Breaks a text between words into lines of at most `width` characters; a longer word gets a line of its own. */
export function wrap(text: string, width: number): string[] {
  const lines: string[] = [];
  for (const word of text.split(' ')) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + 1 + word.length <= width) lines[lines.length - 1] = `${last} ${word}`;
    else lines.push(word);
  }
  return lines;
}

const indented = (lines: string[], columns: number): string[] => lines.map((line) => ' '.repeat(columns) + line);

/** Formats a list: terms in a column, and their descriptions to the right of it, below a term that is wider. */
function formatItems(items: readonly HelpItem[], indent: number): string[] {
  const widths = items.map(({ term }) => term.length).filter((width) => width <= MAX_TERM_WIDTH);
  const column = indent + Math.max(0, ...widths) + 2;
  return items.flatMap(({ term, text, choices }) => {
    const lines = [
      ...indented(wrap(text, HELP_WIDTH - column), column),
      ...(choices === undefined ? [] : formatItems(wordItems(choices), column)),
    ];
    const head = ' '.repeat(indent) + term;
    if (head.length + 2 > column) return [head, ...lines];
    return [head.padEnd(column) + lines[0]!.slice(column), ...lines.slice(1)];
  });
}

function formatUsage(usage: string[]): string[] {
  return usage.flatMap((form, index) => {
    const [first, ...rest] = wrap(form, HELP_WIDTH - 'Usage: '.length);
    const indent = 'Usage: '.length + 'ipatlas '.length;
    const more = rest.length === 0 ? [] : wrap(rest.join(' '), HELP_WIDTH - indent);
    return [`${index === 0 ? 'Usage: ' : '       '}${first}`, ...indented(more, indent)];
  });
}

function formatExamples(examples: HelpText['examples']): string[] {
  const lines = Object.entries(examples).flatMap(([line, text]) => [
    `  ${line}`,
    ...indented(wrap(text, HELP_WIDTH - 6), 6),
  ]);
  return lines.length === 0 ? [] : ['Examples:', ...lines];
}

/** Returns a help page of at most {@link HELP_WIDTH} columns, which ends with a newline. */
export function formatHelp({ usage, blocks, examples }: HelpText): string {
  const parts = blocks.map((block) => (typeof block === 'string' ? wrap(block, HELP_WIDTH) : formatItems(block, 2)));
  const all = [formatUsage(usage), ...parts, formatExamples(examples)].filter((lines) => lines.length > 0);
  return `${all.map((lines) => lines.join('\n')).join('\n\n')}\n`;
}
