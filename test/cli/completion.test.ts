import { execFileSync, spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { allFlags } from '../../src/cli/command-line.js';
import { loadCommands } from '../../src/cli/commands.js';
import { manualPage } from '../../src/cli/manual.js';
import { packageFile } from '../../src/package-root.js';
import { ipatlas } from '../support/in-process.js';
import { temporaryDir } from '../support/temporary.js';

const commands = await loadCommands();
const scripts = new Map<string, Promise<string>>();
/** Returns what `ipatlas completion` prints; the command runs once a shell. */
function script(shell: string): Promise<string> {
  const printed = scripts.get(shell) ?? ipatlas(['completion', shell]).then(({ stdout }) => stdout);
  scripts.set(shell, printed);
  return printed;
}
const isInstalled = (program: string) => spawnSync(program, ['--version']).error === undefined;

/** Returns what bash offers for the last word of each of these command lines. */
async function bashOffers(lines: readonly string[][]): Promise<string[][]> {
  const releases = '* 2026-02-02-0123456789ab 2026-02-02\n  2026-01-01-0123456789ab 2026-01-01';
  const source = `${await script('bash')}
ipatlas() { [[ $1 == releases ]] && echo '${releases}'; }
while read -r -a words; do
  # A dot marks the last word, which may be empty.
  COMP_WORDS=(ipatlas "\${words[@]}"); COMP_CWORD=$((\${#words[@]})); COMP_WORDS[COMP_CWORD]=\${words[-1]%.}
  COMPREPLY=(); _ipatlas; echo "\${COMPREPLY[@]}"
done`;
  const output = execFileSync('bash', ['-c', source], {
    encoding: 'utf8',
    cwd: packageFile('schemas'),
    input: lines.map((words) => `${words.join(' ')}.\n`).join(''),
  });
  const offers = output.split('\n').slice(0, -1);
  return offers.map((words) => words.split(' ').filter((word) => word !== ''));
}

describe('ipatlas completion', () => {
  it('offers commands, flags, values, files and directories in bash', async () => {
    const expected: [words: string[], offers: string[]][] = [
      [[''], commands.map(({ name }) => name)],
      [['exp'], ['export', 'explain']],
      [['--d'], ['--data']],
      [['lookup', '--rea'], ['--reason']],
      [
        ['lookup', '--engine', ''],
        ['binary', 'sqlite'],
      ],
      [['export', 'ng'], ['nginx']],
      [['enrich', '-o', 'mani'], ['manifest.schema.json']],
      [['enrich', 'mani'], ['manifest.schema.json']],
      [['--data', '..', 'enrich', '--form'], ['--format']],
      [['info', '--max-age', ''], []],
      [
        ['enrich', '-z', ''],
        ['gzip', 'zstd'],
      ],
      [
        ['stream', '--on-oversize', ''],
        ['split', 'reject'],
      ],
      [
        ['keys', ''],
        ['create', 'list', 'revoke', 'export', 'import'],
      ],
      [['help', 'lo'], ['lookup']],
      [['enrich', '--log', 'suri'], ['suricata']],
      [['lookup', '--add', 'country_code,as_'], ['country_code,as_name']],
      [['filter', '--country', 'EEA,D'], ['DE', 'DJ', 'DK', 'DM', 'DO', 'DZ'].map((code) => `EEA,${code}`)],
      [
        ['export', '--with', ''],
        ['confidence', 'networks', 'kinds'],
      ],
      [['export', 'csv', ''], []],
      [['rollback', '2026-01-01'], ['2026-01-01-0123456789ab']],
      [
        ['diff', 'x', ''],
        ['2026-02-02-0123456789ab', '2026-01-01-0123456789ab'],
      ],
      ...commands.map(({ name, command }): [string[], string[]] => [
        [name, '--'],
        Object.keys(allFlags(command)).map((flag) => `--${flag}`),
      ]),
    ];
    const offers = await bashOffers(expected.map(([words]) => words));
    expect(expected.map(([words], i) => [words, offers[i]])).toEqual(expected);
  });

  it.each(['zsh', 'fish'])('has every command with every flag for %s', async (shell) => {
    const text = await script(shell);
    for (const { name, command } of commands) {
      const part = text
        .split('\n')
        .filter((line) => shell === 'zsh' || line.includes(`__fish_seen_subcommand_from ${name}'`));
      expect(text).toContain(name);
      for (const flag of Object.keys(allFlags(command))) {
        expect(
          part.some((line) => line.includes(shell === 'zsh' ? `*--${flag}[` : ` -l ${flag} `)),
          flag,
        ).toBe(true);
      }
      expect((text.match(/'/g) ?? []).length % 2).toBe(0);
    }
  });

  it.for(['zsh', 'fish'])('is accepted by the shell itself: %s', async (shell, { skip }) => {
    if (!isInstalled(shell)) skip(`SKIPPED: ${shell} is not installed (scripts/ci-packages.sh installs it)`);
    const file = join(temporaryDir(), 'completion');
    writeFileSync(file, await script(shell));
    const { status, stderr } = spawnSync(shell, ['-n', file], { encoding: 'utf8' });
    expect([status, stderr]).toEqual([0, '']);
  });
});

describe('the manual page', () => {
  it('has every command with every flag, and every exit code', async () => {
    const page = await manualPage('2026-01-01');
    for (const { name, command } of commands) {
      const section = page.split(`\n.SS ipatlas ${name}\n`)[1]?.split('\n.SS ')[0];
      expect(section, name).toBeDefined();
      for (const flag of Object.keys(allFlags(command)))
        expect(section).toContain(`\\-\\-${flag.replaceAll('-', '\\-')}`);
    }
    for (const code of [0, 1, 2, 3, 4, 5, 6, 130]) expect(page).toContain(`\n\\fB${code}\\fR\n`);
    // A line that begins with a dot or a quote is a request: only those that are used here.
    for (const line of page.split('\n')) if (/^[.']/.test(line)) expect(line).toMatch(/^\.(TH|SH|SS|PP|TP|RS|RE|br)\b/);
  });

  it('is part of the build, and groff accepts it', ({ skip }) => {
    const { man } = JSON.parse(readFileSync(packageFile('package.json'), 'utf8')) as { man: unknown };
    // npm 11 links the pages of a list only when a package is installed globally.
    expect(man).toEqual(['dist/ipatlas.1']);
    const path = packageFile('dist/ipatlas.1');
    expect(readFileSync(path, 'utf8')).toMatch(/^\.TH IPATLAS 1 "\d{4}-\d\d-\d\d" "ipatlas \d/);
    if (!isInstalled('groff')) skip('SKIPPED: groff is not installed, so the manual page is not formatted');
    const { status, stderr } = spawnSync('groff', ['-man', '-Tutf8', '-ww', path], { encoding: 'utf8' });
    expect([status, stderr]).toEqual([0, '']);
  });
});
