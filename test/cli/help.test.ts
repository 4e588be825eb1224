import { describe, expect, it } from 'vitest';
import { allOptions } from '../../src/cli/command-line.js';
import { COMMANDS, fullHelp, loadCommands } from '../../src/cli/commands.js';
import { formatHelp, HELP_WIDTH, parseHelp, wrap } from '../../src/cli/help.js';
import { ipatlas } from '../support/cli.js';

const commands = await loadCommands();

describe('help pages', () => {
  it('the overview lists every command and fits the width of a terminal', async () => {
    const { code, stdout, stderr } = await ipatlas(['--help']);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    for (const name of Object.keys(COMMANDS)) expect(stdout).toContain(`\n  ${name} `);
    for (const line of stdout.split('\n')) expect(line.length, line).toBeLessThanOrEqual(80);
    expect(await ipatlas(['help'])).toMatchObject({ code: 0, stdout });
  });

  it.each(commands)('$name: has every flag, in at most 80 columns, broken between words', async ({ name, command }) => {
    const { code, stdout, stderr } = await ipatlas([name, '--help']);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toContain(`Usage: ipatlas ${name}`);
    for (const line of stdout.split('\n')) {
      expect([...line].length, line).toBeLessThanOrEqual(HELP_WIDTH);
      expect(line).toBe(line.trimEnd());
    }
    for (const [flag, { short }] of Object.entries(allOptions(command))) {
      expect(stdout).toMatch(new RegExp(`--${flag}\\b`));
      if (short !== undefined) expect(stdout).toContain(`-${short}, --${flag}`);
    }
    // The same words in the same order: wrapping removes and splits nothing.
    const words = (text: string) => text.split(/\s+/).filter((word) => word !== '');
    const { usage, blocks } = await fullHelp(command);
    const source = blocks.map((block) =>
      typeof block === 'string' ? block : block.map(({ term, lines }) => [term, ...lines].join(' ')).join(' '),
    );
    expect(words(stdout)).toEqual(words(['Usage:', ...usage, ...source].join(' ')));
    expect(await ipatlas(['help', name])).toMatchObject({ code: 0, stdout });
  });

  it('every documented flag exists', () => {
    for (const { name, command } of commands) {
      const terms = parseHelp(command.help).blocks.flatMap((block) => (typeof block === 'string' ? [] : block));
      for (const { term } of terms)
        for (const [, flag] of term.matchAll(/--([a-z0-9-]+)/g))
          expect(Object.keys(allOptions(command)), `${name} ${term}`).toContain(flag);
    }
  });

  it('wraps terms, choices and long usage lines', () => {
    const help = `Usage: ipatlas test --first VALUE --second VALUE --third VALUE --fourth VALUE --fifth VALUE
       ipatlas test list

A paragraph
in two lines.

  --format F  a   the first choice, which is long enough for a second line of its own text
              bb  the second
                  one
  --a-flag-with-a-very-long-name VALUE
              text
`;
    expect(
      formatHelp(parseHelp(help)),
    ).toBe(`Usage: ipatlas test --first VALUE --second VALUE --third VALUE --fourth VALUE
               --fifth VALUE
       ipatlas test list

A paragraph in two lines.

  --format F  a   the first choice, which is long enough for a second line of
                  its own text
              bb  the second one
  --a-flag-with-a-very-long-name VALUE
              text
`);
    expect(wrap('a bb ccc dddddddd', 5)).toEqual(['a bb', 'ccc', 'dddddddd']);
  });
});
