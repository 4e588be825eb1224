import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { allOptions } from '../src/cli/command-line.js';
import { loadCommands } from '../src/cli/commands.js';
import { REASONS } from '../src/country/assignment.js';
import { ERROR_TABLE, EXIT } from '../src/errors.js';
import { packageFile } from '../src/package-root.js';

const readme = readFileSync(packageFile('README.md'), 'utf8');

describe('the README', () => {
  it('documents every command and every flag', async () => {
    for (const { name, command } of await loadCommands()) {
      expect(readme, `the command ${name}`).toMatch(new RegExp(`ipatlas ${name}|\`${name}\``));
      for (const flag of Object.keys(allOptions(command)))
        expect(readme, `--${flag} of ${name}`).toContain(`--${flag}`);
    }
  });

  it('documents every error code, exit code and reason', () => {
    for (const [code, { meaning }] of Object.entries(ERROR_TABLE))
      expect(readme).toContain(`| \`${code}\` | ${meaning} |`);
    for (const exit of Object.values(EXIT)) expect(readme).toMatch(new RegExp(`^\\| ${exit} \\|`, 'm'));
    for (const reason of Object.keys(REASONS)) expect(readme).toContain(`\`${reason}\``);
  });

  it('documents every target of the Makefile', () => {
    const makefile = readFileSync(packageFile('Makefile'), 'utf8');
    for (const target of ['run', 'test', 'db', 'bench', 'clean', 'distclean']) {
      expect(makefile).toMatch(new RegExp(`^${target}:`, 'm'));
      expect(readme).toContain(`make ${target}`);
    }
  });

  it('names no file that is not there', () => {
    for (const [, link] of readme.matchAll(/\]\((?!http)([^)#]+)\)/g))
      expect(() => readFileSync(packageFile(link!))).not.toThrow();
  });
});
