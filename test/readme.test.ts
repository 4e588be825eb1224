import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { REASONS } from '../src/country/assignment.js';
import { ERROR_TABLE, EXIT } from '../src/errors.js';
import { packageFile } from '../src/package-root.js';
import { ipatlas } from './support/cli.js';

const readme = readFileSync(packageFile('README.md'), 'utf8');

describe('the README', () => {
  it('documents every command and every flag', async () => {
    const { stdout } = await ipatlas(['--help']);
    for (const [, name] of stdout.matchAll(/^ {2}([a-z]+) {2,}/gm)) {
      expect(readme, `the command ${name}`).toMatch(new RegExp(`ipatlas ${name}|\`${name}\``));
      const { command } = await import(`../src/cli/${name}.ts`);
      for (const flag of Object.keys(command.options)) expect(readme, `--${flag} of ${name}`).toContain(`--${flag}`);
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
    for (const target of ['run', 'test', 'db', 'bench', 'clean']) {
      expect(makefile).toMatch(new RegExp(`^${target}:`, 'm'));
      expect(readme).toContain(`make ${target}`);
    }
  });

  it('names no file that is not there', () => {
    for (const [, link] of readme.matchAll(/\]\((?!http)([^)#]+)\)/g))
      expect(() => readFileSync(packageFile(link!))).not.toThrow();
  });
});
