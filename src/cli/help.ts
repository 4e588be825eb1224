/**
 * Help texts. Each command declares its help as plain text in a fixed layout; the help page, the shell completions and the
 * manual page are all made from it.
 *
 * The layout: lines that begin with `Usage:`; paragraphs; and items, which are indented by two spaces and separated from
 * their description by at least two. A line that is indented further continues the item above it. Inside a description,
 * a word followed by two spaces begins a line of its own, such as one choice of several.
 */

/** Widest line of help, in characters: the width of a terminal. */
export const HELP_WIDTH = 80;

/** Widest column of terms, in characters; the description of a longer term begins on the next line. */
const MAX_TERM_WIDTH = 21;

/** A flag, a format or another term, with its description. */
export interface HelpItem {
  term: string;
  /** The lines of the description, not yet wrapped. */
  lines: string[];
}

export interface HelpText {
  /** What follows `Usage: `, one element for each form of the command. */
  usage: string[];
  /** Paragraphs and lists, in their order. */
  blocks: (string | HelpItem[])[];
}

const ITEM = /^ {2}(\S.*?)(?: {2,}(.*))?$/;
const CHOICE = /^[\w.-]+ {2,}\S/;

function parseItems(lines: string[]): HelpItem[] {
  const items: HelpItem[] = [];
  for (const line of lines) {
    const start = line.startsWith('   ') ? null : ITEM.exec(line);
    if (start !== null) {
      items.push({ term: start[1]!, lines: start[2] === undefined ? [] : [start[2]] });
      continue;
    }
    const item = items.at(-1)!;
    const text = line.trim();
    if (CHOICE.test(text) || item.lines.length === 0) item.lines.push(text);
    else item.lines.push(`${item.lines.pop()} ${text}`);
  }
  return items;
}

/** Parses a help text in the layout that this file describes. */
export function parseHelp(help: string): HelpText {
  const usage: string[] = [];
  const blocks: HelpText['blocks'] = [];
  for (const block of help.trimEnd().split(/\n{2,}/)) {
    const lines = block.split('\n');
    if (lines[0]!.startsWith('Usage: ')) usage.push(...lines.map((line) => line.replace(/^Usage:|^ +/, '').trim()));
    else if (lines[0]!.startsWith('  ')) blocks.push(parseItems(lines));
    else blocks.push(lines.join(' '));
  }
  return { usage, blocks };
}

/** Breaks a text between words into lines of at most `width` characters; a longer word gets a line of its own. */
export function wrap(text: string, width: number): string[] {
  const lines: string[] = [];
  for (const word of text.split(/ (?! )(?<! {2})/)) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + 1 + word.length <= width) lines[lines.length - 1] = `${last} ${word}`;
    else lines.push(word);
  }
  return lines;
}

function formatItems(items: HelpItem[]): string[] {
  const widths = items.map(({ term }) => term.length).filter((width) => width <= MAX_TERM_WIDTH);
  const width = Math.max(0, ...widths);
  const indent = ' '.repeat(width + 4);
  return items.flatMap(({ term, lines }) => {
    const text = lines.flatMap((line) => {
      // The rest of a choice is indented below its text.
      const choice = CHOICE.exec(line)?.[0].slice(0, -1) ?? '';
      const rest = wrap(line.slice(choice.length), HELP_WIDTH - indent.length - choice.length);
      return rest.map((part, index) => (index === 0 ? choice : ' '.repeat(choice.length)) + part);
    });
    const head = `  ${term}`;
    if (text.length === 0) return [head];
    if (term.length > width) return [...wrapTerm(head), ...text.map((line) => indent + line)];
    return [`${head.padEnd(indent.length)}${text[0]}`, ...text.slice(1).map((line) => indent + line)];
  });
}

function wrapTerm(head: string): string[] {
  return wrap(head.trim(), HELP_WIDTH - 2).map((line) => `  ${line}`);
}

function formatUsage(usage: string[]): string[] {
  return usage.flatMap((form, index) => {
    const [first, ...rest] = wrap(form, HELP_WIDTH - 'Usage: '.length);
    const indent = ' '.repeat('Usage: '.length + 'ipatlas '.length);
    const more = rest.length === 0 ? [] : wrap(rest.join(' '), HELP_WIDTH - indent.length);
    return [`${index === 0 ? 'Usage: ' : '       '}${first}`, ...more.map((line) => indent + line)];
  });
}

/** Returns a help page of at most {@link HELP_WIDTH} columns, which ends with a newline. */
export function formatHelp({ usage, blocks }: HelpText): string {
  const parts = blocks.map((block) => (typeof block === 'string' ? wrap(block, HELP_WIDTH) : formatItems(block)));
  return `${[formatUsage(usage), ...parts].map((lines) => lines.join('\n')).join('\n\n')}\n`;
}
