import { describe, expect, it } from 'vitest';
import { allFlags, parseCommandLine } from '../../src/cli/command-line.js';
import { COMMANDS, loadCommand, loadCommands } from '../../src/cli/commands.js';
import { commandHelp, formatHelp, HELP_WIDTH, type HelpItem, type HelpText, wrap } from '../../src/cli/help.js';
import { ipatlas } from '../support/in-process.js';

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
    for (const [flag, { short }] of Object.entries(allFlags(command))) {
      expect(stdout).toMatch(new RegExp(`--${flag}\\b`));
      if (short !== undefined) expect(stdout).toContain(`-${short}, --${flag}`);
    }
    // The same words in the same order: wrapping removes and splits nothing.
    const words = (text: string) => text.split(/\s+/).filter((word) => word !== '');
    const { usage, blocks, examples } = commandHelp(name, command);
    const itemText = ({ term, text, choices = {} }: HelpItem) =>
      [term, text, ...Object.entries(choices).flat()].join(' ');
    const source = blocks.map((block) => (typeof block === 'string' ? block : block.map(itemText).join(' ')));
    expect(words(stdout)).toEqual(
      words(['Usage:', ...usage, ...source, 'Examples:', ...Object.entries(examples).flat()].join(' ')),
    );
    expect(await ipatlas(['help', name])).toMatchObject({ code: 0, stdout });
  });

  it.each(commands)('$name: has examples, which are valid command lines', async ({ name, command }) => {
    const { examples } = command;
    expect(Object.keys(examples).length).toBeGreaterThan(0);
    for (const line of Object.keys(examples)) {
      const [, ...words] = line
        .slice(line.indexOf('ipatlas '))
        .replace(/[>)].*$/, '')
        .match(/"[^"]*"|\S+/g)!;
      const [called, ...args] = words.map((word) => word.replaceAll('"', ''));
      await parseCommandLine(called!, (await loadCommand(called!)).command, args);
    }
    // The completions and the manual page need each flag's text.
    for (const { help } of Object.values(allFlags(command))) expect(help).toMatch(/^\S.*\S$/);
    expect(Object.keys(examples).join('\n')).toContain(name === 'diff' ? 'ipatlas diff' : `ipatlas ${name}`);
  });

  it('of one action have its flags only', async () => {
    const { stdout } = await ipatlas(['help', 'keys', 'create']);
    expect(stdout).toMatch(/^Usage: ipatlas keys create \[--label TEXT\]/);
    expect(stdout).toContain('--label TEXT');
    expect(stdout).toContain('--data DIR');
    expect(stdout).not.toContain('--every');
    expect(stdout).toMatch(/\n {2}ipatlas keys create /);
    expect(await ipatlas(['keys', 'create', '--help'])).toMatchObject({ code: 0, stdout });
    expect(await ipatlas(['help', 'keys', 'crate'])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('did you mean "create"?'),
    });
    expect(await ipatlas(['help', 'lookup', '8.8.8.8'])).toMatchObject({ code: 2, stdout: '' });
  });

  it('wraps terms, values and long usage lines', () => {
    const help: HelpText = {
      usage: [
        'ipatlas test --first VALUE --second VALUE --third VALUE --fourth VALUE --fifth VALUE',
        'ipatlas test list',
      ],
      blocks: [
        'A paragraph',
        [
          {
            term: '--format F',
            text: 'the format:',
            choices: {
              a: 'the first choice, which is long enough for a second line of its own text',
              bb: 'the second one',
            },
          },
          { term: '--a-flag-with-a-very-long-name VALUE', text: 'text' },
        ],
      ],
      examples: { 'ipatlas test': 'does it' },
    };
    expect(formatHelp(help)).toBe(`Usage: ipatlas test --first VALUE --second VALUE --third VALUE --fourth VALUE
               --fifth VALUE
       ipatlas test list

A paragraph

  --format F  the format:
              a   the first choice, which is long enough for a second line of
                  its own text
              bb  the second one
  --a-flag-with-a-very-long-name VALUE
              text

Examples:
  ipatlas test
      does it
`);
    expect(wrap('a bb ccc dddddddd', 5)).toEqual(['a bb', 'ccc', 'dddddddd']);
  });
});
