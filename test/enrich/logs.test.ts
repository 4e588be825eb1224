/** The names of logs: each entry of docs/logs.md is run, and its input is recognized, cut, damaged and mixed. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { Ajv2020 } from 'ajv/dist/2020.js';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { releaseDir } from '../../src/database/release.js';
import { openReleaseRanges } from '../../src/database/release-files.js';
import { knownLogs } from '../../src/enrich/known-logs.js';
import type { Logs } from '../../src/enrich/logs.js';
import { parseEnrichOptions } from '../../src/enrich/options.js';
import { recognizeLog } from '../../src/enrich/recognize-log.js';
import { openArchive } from '../../src/history/archive.js';
import { answersOf, importEntry } from '../../src/history/write.js';
import { packageFile } from '../../src/package-root.js';
import { Batch } from '../../src/page/batch.js';
import { parseAdd } from '../support/add.js';
import { chunkedSource } from '../support/chunks.js';
import { withOutputs } from '../support/console.js';
import { ipatlas } from '../support/in-process.js';
import { logSamples } from '../support/log-samples.js';
import { releaseForTests } from '../support/open-release.js';
import { smallRelease } from '../support/release.js';
import { runEngine } from '../support/run-engine.js';
import { SHARE } from '../support/seed.js';

const RUNS = Math.ceil(Number(process.env.FUZZ_RUNS ?? 24));
const release = releaseForTests();
const logs = knownLogs();
const guide = readFileSync(packageFile('docs/logs.md'), 'utf8');

const dataDir = await smallRelease();

const run = (args: string[], input: string | Buffer = '') =>
  ipatlas([...args, '--jobs', '1', '--data', dataDir], { input });

const steps = logSamples();

describe('docs/logs.md', () => {
  it('has every name, with the page and version that it follows', () => {
    expect(steps.map(({ name }) => name)).toEqual(Object.keys(logs));
    for (const [name, { page, version, client }] of Object.entries(logs)) {
      const entry = guide.split(`\n### ${name}\n`)[1]!.split('\n### ')[0]!;
      for (const text of [page, version, client]) expect(entry, name).toContain(text);
    }
  });

  it('shows what each command prints', async () => {
    const outputs: string[] = [];
    for (const { name, input, output } of steps) {
      const result = await run(['enrich', '--log', name, '--add', 'country_code'], input);
      expect(result.code, result.stderr).toBe(0);
      if (process.env.UPDATE_DOCS !== '1') expect(result.stdout, name).toBe(output);
      outputs.push(result.stdout);
    }
    if (process.env.UPDATE_DOCS === '1') writeFileSync(packageFile('docs/logs.md'), withOutputs(guide, outputs));
  });

  it('data/logs.json matches its schema', () => {
    const ajv = new Ajv2020({ strictRequired: false, formats: { regex: true } });
    const validate = ajv.compile(JSON.parse(readFileSync(packageFile('schemas/logs.schema.json'), 'utf8')));
    validate(JSON.parse(readFileSync(packageFile('data/logs.json'), 'utf8')));
    expect(validate.errors).toBeNull();
  });
});

/** The logs that are recognized without a name: all but those in JSON. */
const recognizable: Logs = Object.fromEntries(
  Object.entries(logs).filter(([, { format, line, head }]) => !/^json/.test(format) && (line ?? head) !== undefined),
);
const samples = steps.filter(({ name }) => name in recognizable);

/** Returns the names that a text is recognized as; none if it is ambiguous. */
function namesOf(text: string): string[] {
  try {
    return recognizeLog('log', text, true, recognizable)?.names ?? [];
  } catch (error) {
    expect(error).toMatchObject({ code: 'E_USAGE' });
    return [];
  }
}

describe('recognition', () => {
  it.each(samples)('of $name', ({ name, input }) => {
    expect(namesOf(input)).toContain(name);
  });

  it.each([
    ['iis', '#Software: Microsoft Internet Information Server 4.0\n#Version: 1.0\n#Fields: time c-ip cs-method\n'],
    ['w3c', '#Software: IIS Advanced Logging Module\r\n\r\n#Version: 1.0\r\n\r\n#Fields:  date c-ip cs-method\r\n'],
    ['haproxy', 'Feb 25 16:19:38 h haproxy[1]: Proxy http_in started.\n'],
  ])('of %s in %j', (name, head) => {
    expect(namesOf(head)).toEqual([name]);
  });

  it('never gives a wrong name to a head that is cut or damaged', () => {
    let right = 0;
    const damage = fc.record({
      sample: fc.constantFrom(...samples),
      cut: SHARE,
      edits: fc.array(fc.tuple(fc.nat(), fc.constantFrom('', ' ', '"', '[', '\n', '8', 'x', '\t', '\0', '-', ':')), {
        maxLength: 6,
      }),
    });
    fc.assert(
      fc.property(damage, ({ sample, cut, edits }) => {
        let text = sample.input.repeat(3);
        for (const [at, piece] of edits)
          text = text.slice(0, at % text.length) + piece + text.slice((at % text.length) + 1);
        text = text.slice(0, Math.ceil(cut * text.length));
        const names = namesOf(text);
        if (names.includes(sample.name)) right++;
        // Without the line that says what wrote it, a log of IIS or CloudFront is W3C.
        const isW3c = names[0] === 'w3c' && ['iis', 'cloudfront'].includes(sample.name);
        // One line of the sample of iptables is UFW's.
        const isUfw = names[0] === 'ufw' && sample.name === 'iptables';
        const isRight = names.length === 0 || names.includes(sample.name) || isW3c || isUfw;
        expect(isRight, `${sample.name} as ${names}: ${text}`).toBe(true);
      }),
      { numRuns: 6 * RUNS },
    );
    // Otherwise nothing would be recognized at all.
    expect(right).toBeGreaterThan(RUNS);
  });

  it.each([
    ['JSON lines', '{"ip":"8.8.8.8"}\n'],
    ['prose', 'The quick brown fox\njumps over the lazy dog\n'],
    ['a list', '8.8.8.8\n193.0.6.139\n'],
    ['CSV', 'name,ip\nx,8.8.8.8\n'],
    ['comments', '# one\n# two\nx\n'],
    ['blank lines', '\n\n'],
  ])('of nothing in %s', (_, text) => {
    expect(namesOf(text)).toEqual([]);
  });

  it('reads a log with all rules of its name', async () => {
    const { input, output } = steps.find(({ name }) => name === 'sshd')!;
    const { stdout } = await run(['enrich', '--add', 'country_code'], input);
    expect(stdout).toBe(output);
  });

  it('says what it has found, for each file by itself', async () => {
    const sample = (name: string): string => steps.find((step) => step.name === name)!.input;
    const files: [string, string | Buffer][] = [
      ['a.jsonl', '{"ip":"8.8.8.8"}'],
      ['access.log', sample('nginx').split('\n')[0]!],
      ['empty', ''],
      ['iis.log.gz', gzipSync(sample('iis'))],
      ['b.jsonl', '{"ip":"193.0.6.139"}\n'],
      ['fw.log', sample('iptables')],
    ];
    const paths = files.map(([name]) => join(dataDir, name));
    for (const [name, text] of files) writeFileSync(join(dataDir, name), text);
    const { code, stdout, stderr } = await run(['enrich', '--add', 'country_code', ...paths]);
    expect(code).toBe(0);
    const expected = ['nginx', 'iis', 'iptables'].map((name) => steps.find((step) => step.name === name)!.output);
    expect(stdout).toBe(
      `{"ip":"8.8.8.8","geo":{"country_code":"US"}}\n${expected[0]!.split('\n')[0]}\n${expected[1]}` +
        `{"ip":"193.0.6.139","geo":{"country_code":"NL"}}\n${expected[2]}`,
    );
    expect(stderr).toContain(`${paths[1]}: nginx/apache combined; address in column 1; the same with: --log nginx\n`);
    expect(stderr).toContain(
      `${paths[3]}: iis W3C Extended Log Format; address in c-ip; server in s-ip; the same with: --log iis\n`,
    );
    expect(stderr).not.toContain(paths[0]);
    const manyJobs = await run(['enrich', '--add', 'country_code', '--jobs', '256', ...paths]);
    expect(manyJobs).toMatchObject({ code: 0, stdout });
    const bytes = files.reduce((sum, [, text]) => sum + text.length, 0);
    const stats = await run(['enrich', '-o', join(dataDir, 'out'), '--stats', '-', ...paths]);
    expect(JSON.parse(stats.stdout)).toMatchObject({ bytes, lines: 9, invalid_line: 0 });
    const summary = await run(['summarize', '--json', ...paths]);
    expect(JSON.parse(summary.stdout).countries).toMatchObject([
      { country_code: 'NL', count: 4 },
      { country_code: 'US', count: 3 },
    ]);
    const filtered = await run(['filter', '--country', 'NL', ...paths]);
    expect(filtered.stdout).toContain(files[1]![1]);
    expect(filtered.stdout).not.toContain('"8.8.8.8"');
  });

  it('ends with exit code 4 if no line could be used, and 2 if there are two answers', async () => {
    expect(await run(['enrich'], 'no log\n\nof ours\n')).toMatchObject({ code: 4, stdout: 'no log\n\nof ours\n' });
    expect(await run(['enrich', '--format', 'jsonl'], 'no log\n')).toMatchObject({ code: 4 });
    expect(await run(['enrich'], '\n')).toMatchObject({ code: 0 });
    expect(await run(['enrich'], 'x\n{"ip":"8.8.8.8"}\n')).toMatchObject({ code: 0 });
    const path = join(dataDir, 'logs.json');
    const mine = { ...logs.postfix!, line: 'postfix' };
    writeFileSync(path, JSON.stringify({ logs: { mine } }));
    const line = steps.find(({ name }) => name === 'postfix')!.input.split('\n')[0]!;
    const pairs = { ...mine, format: 'logfmt', fields: ['x'] };
    expect(await run(['enrich', '--logs', path], `${line}\n`)).toMatchObject({ code: 0 });
    writeFileSync(path, JSON.stringify({ logs: { mine: pairs } }));
    const { code, stdout, stderr } = await run(['enrich', '--logs', path], `${line}\n`);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toContain('standard input looks like postfix and like mine, which are read in different ways');
    const own = await run(['enrich', '--logs', path, '--log', 'mine', '--add', 'country_code'], 'x=8.8.8.8\n');
    expect(own.stdout).toBe('x=8.8.8.8 x_country_code=US\n');
    writeFileSync(path, JSON.stringify({ logs: { mine: { ...mine, line: '(', colour: 1 } } }));
    const wrong = await run(['enrich', '--logs', path], '');
    expect(wrong).toMatchObject({ code: 2 });
    expect(wrong.stderr).toContain('logs.mine.colour is not a known key');
    expect(wrong.stderr).toContain('logs.mine.line');
  });
});

describe('--log', () => {
  it('chooses among the forms of a log', async () => {
    for (const [name, form] of [
      ['apache', 'apache-vhost'],
      ['caddy', 'caddy-2.0'],
      ['traefik', 'traefik-json'],
      ['zeek', 'zeek-json'],
      ['cloudflare', 'cloudflare-array'],
      ['cloudtrail', 'cloudtrail-lines'],
      ['syslog-json', 'syslog-json-msg'],
    ]) {
      const { input, output } = steps.find((step) => step.name === form)!;
      const result = await run(['enrich', '--log', name!, '--add', 'country_code'], input);
      expect(result, form).toMatchObject({ code: 0, stdout: output });
    }
  });

  it('goes with --field, --pick and --at-field time, and not with what the name says', async () => {
    const { input } = steps.find(({ name }) => name === 'suricata')!;
    const result = await run(['enrich', '--log', 'suricata', '--field', 'dest_ip', '--add', 'country_code'], input);
    expect(result.stdout.split('\n')[0]).toMatch(/"geo":\{"country_code":null\}\}$/);
    expect(await run(['enrich', '--log', 'nginx', '--format', 'text'])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('--format cannot be used with --log'),
    });
    expect(await run(['enrich', '--log', 'ngnix'])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('there is no log "ngnix"; the names are nginx, '),
    });
    const options = (log: string) => parseEnrichOptions({ log, atField: 'time' }, (name) => name);
    expect(options('alb').atField?.path).toEqual(['time']);
    expect(options('suricata').atField?.path).toEqual(['timestamp']);
    expect(options('vpc-flow').atField?.path).toEqual(['start']);
  });

  it('knows where the time is', async () => {
    const { file } = openReleaseRanges(releaseDir(dataDir));
    for (const day of ['2025-12-31', '2026-01-01', '2026-01-02'])
      importEntry(openArchive(dataDir), { day, name: 'table', answers: answersOf(file) });
    for (const { name, input } of steps.filter((step) => logs[step.name]!.time !== undefined)) {
      const path = join(dataDir, 'with-dates');
      const args = ['--log', name, '--at-field', 'time', '--add', 'release_date', '-o', path, '--stats', '-'];
      const { stdout } = await run(['enrich', ...args], input);
      expect(JSON.parse(stdout), name).toMatchObject({ missing_date: 0 });
      const daysIn = (text: string): number => text.split('2026-01-01').length;
      expect(daysIn(readFileSync(path, 'utf8')), name).toBeGreaterThan(daysIn(input));
    }
  });

  it('list prints the names', async () => {
    const { code, stdout } = await run(['enrich', '--log', 'list']);
    expect(code).toBe(0);
    expect(
      stdout
        .trimEnd()
        .split('\n')
        .map((line) => line.split(' ')[0]),
    ).toEqual(['name', ...Object.keys(logs)]);
  });
});

describe('the page', () => {
  // locate.test.ts compares what its reader finds with what `enrich` looks up, for all logs.
  it.each([
    ['w3c', '#Fields: date c-ip\n2026-01-01 8.8.8.8\n#Fields: c-ip x\n"193.0.6.139" y\n', ['8.8.8.8', '193.0.6.139']],
    ['iptables', 'msg="SRC=1.1.1.1 \\" DST=2.2.2.2" SRC=8.8.8.8 SRC=9.9.9.9 x=DST=193.0.6.139', ['8.8.8.8']],
    ['zeek', '#separator \\x2c\n#fields,ts,id.orig_h\n1,8.8.8.8\n', ['8.8.8.8']],
    ['suricata', '{"src_ip":"8.8.8.8","dest_ip":5}\nnot JSON 9.9.9.9\n{"src_ip":["9.9.9.9"]}\n', ['8.8.8.8']],
    ['cloudtrail', '{"Records":\n[{"sourceIPAddress":"8.8.8.8"},\n{"sourceIPAddress":"x"}]}', ['8.8.8.8']],
    ['vpc-flow', 'srcaddr dstaddr\n8.8.8.8 193.0.6.139\n', ['8.8.8.8', '193.0.6.139']],
    ['sshd', 'h sshd[1]: Invalid user 8.8.8.8 from 193.0.6.139 port 1\n', ['193.0.6.139']],
    [
      'all',
      '193.0.6.139 - - [01/Jan/2026:00:00:00 +0000] "GET /?x=8.8.8.8 HTTP/1.1" 200 5',
      ['193.0.6.139', '8.8.8.8'],
    ],
    ['', '193.0.6.139 - - [01/Jan/2026:00:00:00 +0000] "GET /?x=8.8.8.8 HTTP/1.1" 200 5', ['193.0.6.139']],
    ['', '{"ip":"8.8.8.8","via":"193.0.6.139"}', ['8.8.8.8']],
    ['', '# x\nn;via;ip\n"b\n";193.0.6.139;8.8.8.8\n"";193.0.6.139;8.8.4.4\n', ['8.8.8.8', '8.8.4.4']],
    ['', '1\t8.8.8.8\n2\t"8.8.4.4"\n', ['8.8.8.8', '8.8.4.4']],
    ['', '8.8.8.8\n8.8.4.4 # 193.0.6.139\n', ['8.8.8.8', '8.8.4.4', '193.0.6.139']],
  ])('as %j reads %j', async (name, text, expected) => {
    const batch = new Batch(new Blob([text]), 100, name);
    await batch.read(new AbortController().signal, () => {});
    expect(Array.from({ length: batch.entries.length }, (_, at) => batch.entries.text(at))).toEqual(expected);
  });
});

it.each(Object.keys(logs).filter((name) => logs[name]!.format !== 'json'))(
  '%s: each line of the input is in the output, with one piece more at the most',
  async (name) => {
    const { input } = steps.find((step) => step.name === name)!;
    const options = { ...parseEnrichOptions({ log: name }, (one) => one), add: parseAdd('country_code,address') };
    const piece = fc.constantFrom(
      ...input.split(/(?<=\n)/),
      '\n',
      '\r\n',
      'garbage "x\n',
      '#x\n',
      '\xef\xbb\xbf',
      ' ',
      '{}\n',
    );
    const request = fc.record({
      cuts: fc.array(fc.nat(), { maxLength: 3 }),
      chunkBytes: fc.integer({ min: 8, max: 300 }),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(piece, { maxLength: 8 }), request, async (pieces, { cuts, chunkBytes }) => {
        const text = Buffer.from(input + pieces.join('')).toString('latin1');
        const inputs = [chunkedSource('log', Buffer.from(text, 'latin1'), cuts)];
        const { output, error } = await runEngine({ inputs, options, openFile: () => release.file, chunkBytes });
        expect(error).toBeUndefined();
        const lines = text.split('\n');
        const written = output.split('\n');
        expect(written).toHaveLength(lines.length);
        for (const [index, line] of lines.entries()) {
          const longer = written[index]!;
          let at = 0;
          while (at < line.length && line[at] === longer[at]) at++;
          expect(longer).toBe(line.slice(0, at) + longer.slice(at, longer.length - line.length + at) + line.slice(at));
        }
      }),
      { numRuns: Math.ceil(RUNS / 12) },
    );
  },
);
