/**
 * Breaks important checks, one at a time, in a copy of the sources, and runs the tests of "make test" that must then fail:
 * that a fast suite still notices. Prints a line for each; the exit code is 1 if a broken check is not noticed.
 *
 *   make compile && node scripts/break-checks.js [NUMBER ...]
 */
import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('..', import.meta.url));

/** What is broken: the file, its text, the text instead, and the tests that must notice. */
const BREAKS = [
  {
    what: 'the gates let everything pass',
    file: 'pipeline/gates/limits.ts',
    from: 'if (value <= limit) continue;',
    to: 'if (value <= limit || limit >= 0) continue;',
    tests: ['test/build/gate.test.ts'],
  },
  {
    what: 'the parser takes 256 as a number of an IPv4 address',
    file: 'src/address/parse.ts',
    from: 'if (octet > 255) return -1;',
    to: 'if (octet > 256) return -1;',
    tests: ['test/address'],
  },
  {
    what: 'the range file may name a section that ends after the file',
    file: 'src/rangefile/reader.ts',
    from: ' || offset + length > bytes.length) {',
    to: ') {',
    tests: ['test/rangefile'],
  },
  {
    what: 'a key works for every origin',
    file: 'src/api/keys/auth.ts',
    from: 'origin !== undefined && origins.includes(origin)',
    to: 'origins.length > 0',
    tests: ['test/api/origins.test.ts', 'test/api/auth.test.ts'],
  },
  {
    what: 'the United Kingdom leaves the Union a day early',
    file: 'data/reference/eu-membership.csv',
    from: 'GB,1973-01-01,2020-02-01,',
    to: 'GB,1973-01-01,2020-01-31,',
    tests: ['test/country'],
  },
  {
    what: 'the link "current" is switched before the release has its name',
    file: 'pipeline/stages/publish.ts',
    from: '  moveIntoPlace(release, releases, workDir);\n',
    to: '  switchCurrent(dataDir, release.id);\n  moveIntoPlace(release, releases, workDir);\n',
    tests: ['test/build/build.test.ts'],
  },
  {
    what: 'a message is published again although its subject has one',
    file: 'src/stream/jetstream/nats.ts',
    from: '    else messageHeaders.set(EXPECTED.lastOfSubject, String(expected.lastOfSubject));\n',
    to: '',
    tests: ['test/stream/worker.test.ts', 'test/stream/ordered.test.ts'],
  },
  {
    what: 'a file of keys may come over plain HTTP from elsewhere',
    file: 'src/api/keys/key-file.ts',
    from: "if (url.protocol === 'http:' && ",
    to: "if (url.protocol === 'ftp:' && ",
    tests: ['test/api/key-file.test.ts'],
  },
  {
    what: 'an invalid line is passed on although it was to be dropped',
    file: 'src/enrich/chunk-runner.ts',
    from: "output: this.#onInvalid === 'keep' ? bytes : NO_BYTES",
    to: 'output: bytes',
    tests: ['test/enrich/limits.test.ts', 'test/enrich/enrich-lines.test.ts'],
  },
  {
    what: 'Réunion is not in the European Union',
    file: 'data/reference/eu-membership.csv',
    from: '\nRE,1958-01-01,,',
    to: '\nRE,1958-01-01,1959-01-01,',
    tests: ['test/country'],
  },
];

/** Copies the sources as they are now; what is installed and compiled is shared. */
function copySources() {
  const copy = mkdtempSync(join(tmpdir(), 'ipatlas-broken-'));
  const { stdout } = spawnSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], { cwd: ROOT });
  for (const name of String(stdout).split('\0').filter(Boolean)) cpSync(join(ROOT, name), join(copy, name));
  for (const name of ['node_modules', 'dist']) symlinkSync(join(ROOT, name), join(copy, name));
  return copy;
}

/** Runs tests in the copy; returns whether they pass, and what they print. */
function runTests(copy, tests) {
  const args = ['vitest', 'run', '--bail=1', '--reporter=dot', ...tests];
  const { status, stdout, stderr } = spawnSync('npx', args, { cwd: copy, encoding: 'utf8' });
  return { passes: status === 0, output: `${stdout}${stderr}` };
}

const copy = copySources();
let unnoticed = 0;
try {
  const numbers = process.argv.slice(2).map(Number);
  const chosen = BREAKS.map((each, index) => ({ number: index + 1, ...each })).filter(
    ({ number }) => numbers.length === 0 || numbers.includes(number),
  );
  const whole = runTests(copy, [...new Set(chosen.flatMap(({ tests }) => tests))]);
  if (!whole.passes) throw new Error(`the tests fail although nothing is broken:\n${whole.output}`);
  for (const { number, what, file, from, to, tests } of chosen) {
    const path = join(copy, file);
    const original = readFileSync(path, 'utf8');
    if (original.split(from).length !== 2) throw new Error(`${file} does not have this text once: ${from}`);
    writeFileSync(path, original.replace(from, to));
    const { passes, output } = runTests(copy, tests);
    writeFileSync(path, original);
    const failed = /FAIL +(.*)/.exec(output)?.[1];
    // A file that cannot even be loaded would show nothing about the check.
    const isNoticed = !passes && failed?.includes(' > ');
    if (!isNoticed) unnoticed++;
    console.log(`${isNoticed ? 'noticed' : 'NOT NOTICED'}: ${number}. ${what}${isNoticed ? `\n    ${failed}` : ''}`);
    if (!isNoticed && !passes) console.log(output);
  }
} finally {
  rmSync(copy, { recursive: true });
}
process.exitCode = unnoticed === 0 ? 0 : 1;
