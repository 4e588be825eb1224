/** The manual page, made from the table of commands. */
import { fullHelp, loadCommands, overview, version } from './commands.js';
import { type HelpText, parseHelp } from './help.js';

/** Escapes a text for roff: backslashes, and a dot or quote at the start of a line, would be requests. */
function escapeRoff(text: string): string {
  return text
    .replaceAll('\\', '\\e')
    .replaceAll('-', '\\-')
    .replaceAll('…', '...')
    .replaceAll('"', '\\(dq')
    .replace(/^([.'])/, '\\&$1');
}

function blocksOf({ blocks }: HelpText): string[] {
  return blocks.flatMap((block) =>
    typeof block === 'string'
      ? ['.PP', escapeRoff(block)]
      : block.flatMap(({ term, lines }) => [
          '.TP',
          `\\fB${escapeRoff(term)}\\fR`,
          ...lines.flatMap((line, index) => [...(index === 0 ? [] : ['.br']), escapeRoff(line)]),
        ]),
  );
}

function usageOf({ usage }: HelpText): string[] {
  return usage.flatMap((form) => ['.br', escapeRoff(form)]);
}

/**
 * Returns the manual page `ipatlas(1)` in the format of man(7).
 *
 * @param date for its footer, `YYYY-MM-DD`
 */
export async function manualPage(date: string): Promise<string> {
  const main = parseHelp(overview());
  const [description, , ...lists] = main.blocks;
  const sections: string[] = [];
  for (const { name, command } of await loadCommands()) {
    const help = await fullHelp(command);
    sections.push(`.SS ipatlas ${escapeRoff(name)}`, '.PP', ...usageOf(help), ...blocksOf(help));
  }
  return [
    `.TH IPATLAS 1 "${date}" "ipatlas ${version()}" "User Commands"`,
    '.SH NAME',
    'ipatlas \\- country and EU membership of IP addresses',
    '.SH SYNOPSIS',
    ...usageOf(main).slice(1),
    '.SH DESCRIPTION',
    escapeRoff(description as string),
    '.SH OPTIONS AND EXIT CODES',
    ...blocksOf({ usage: [], blocks: lists }),
    '.SH COMMANDS',
    ...sections,
    '',
  ].join('\n');
}
