/** Commands that answer from the seed, the database in the package. */
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { manifestOfDatabase } from '../../src/database/origin.js';
import { seedPath } from '../../src/database/seed.js';
import { ipatlas } from '../support/in-process.js';
import { country, publishBlocks, temporaryDir } from '../support/release.js';

/** An empty working directory, and another home directory. */
let cwd: string;
let home: string;
beforeEach(() => {
  cwd = temporaryDir();
  home = join(cwd, 'home');
  mkdirSync(home);
});

const run = (args: string[], input?: string) =>
  ipatlas(args, {
    cwd,
    env: { HOME: home, IPATLAS_DATA: undefined, XDG_DATA_HOME: undefined },
    ...(input !== undefined && { input }),
  });

const NOTE =
  /^ipatlas: answering from the database that comes with ipatlas, [\d,]+ days? old: about [\d.]+ % of IPv4 addresses have changed country since; "ipatlas build" gets today's\n/;
const LINE = '{"ip":"193.0.6.139"}\n';
const ENRICHED = '{"ip":"193.0.6.139","geo":{"country":"Netherlands","country_code":"NL","is_eu":true}}\n';
const RESULT = '{"ip":"193.0.6.139","country":"Netherlands","country_code":"NL","is_eu":true}\n';

describe('without a release and a named data directory', () => {
  it.each<[string[], string, string]>([
    [['lookup', '193.0.6.139'], '', RESULT],
    [['193.0.6.139'], '', RESULT],
    [['enrich'], LINE, ENRICHED],
    [['filter', '--eu'], LINE, LINE],
    [
      ['explain', '193.0.6.139'],
      '',
      '193.0.6.139: Netherlands (NL), in the European Union\nit comes without the rows of its sources, which "ipatlas build" fetches\n',
    ],
  ])('%j answers from the seed, and says so once', async (args, input, stdout) => {
    const result = await run(args, input);
    expect(result, result.stderr).toMatchObject({ code: 0, stdout });
    expect(result.stderr).toMatch(NOTE);
    expect(result.stderr.match(/comes with ipatlas/g)).toHaveLength(1);
    expect(existsSync(join(home, '.local'))).toBe(false);
  });

  it('JSON says that it is the seed, with its date', async () => {
    const { data_date, id } = manifestOfDatabase(seedPath());
    const facts = { seed: true, data_date };
    const lookup = await run(['lookup', '--json', '193.0.6.139']);
    expect(JSON.parse(lookup.stdout)).toEqual({ ...JSON.parse(RESULT), ...facts });
    expect(JSON.parse((await run(['info', '--json'])).stdout)).toMatchObject({ id, ...facts });
    expect((await run(['info'])).stdout).toMatch(/^seed +the database that comes with ipatlas/m);
    expect(JSON.parse((await run(['summarize', '--json'], LINE)).stdout)).toMatchObject(facts);
    await run(['enrich', '--stats', 'stats.json'], LINE);
    expect(JSON.parse(readFileSync(join(cwd, 'stats.json'), 'utf8'))).toMatchObject({ lines: 1, ...facts });
  });

  it.each([[['export', 'compact']], [['verify']], [['report']]])('%j needs a release: exit code 5', async (args) => {
    expect(await run(args)).toMatchObject({ code: 5, stdout: '' });
  });
});

describe('with a named data directory', () => {
  it.each([[['lookup', '8.8.8.8']], [['enrich']], [['filter', '--eu']], [['summarize']], [['info']]])(
    '%j without a release: exit code 5, and from the seed with --seed',
    async (args) => {
      const named = [...args, '--data', join(cwd, 'volume')];
      const refused = await run(named, LINE);
      expect(refused).toMatchObject({ code: 5, stdout: '' });
      expect(refused.stderr).toMatch(/^ipatlas: no release in .*volume; /);
      const seed = await run([...named, '--seed'], LINE);
      expect(seed.code, seed.stderr).toBe(0);
      expect(seed.stderr).toMatch(NOTE);
    },
  );

  it('a release answers, and nothing speaks of a seed', async () => {
    await publishBlocks(join(cwd, 'data'), [['193.0.0.0/8', country('AA', 'A')]]);
    for (const args of [
      ['lookup', '--json', '193.0.6.139'],
      ['info', '--json'],
      ['summarize', '--json'],
    ]) {
      const { stdout, stderr } = await run(args, LINE);
      expect(stdout).not.toMatch(/"seed":true/);
      expect(stderr).not.toMatch(/comes with/);
    }
    expect((await run(['lookup', '193.0.6.139', '--seed'])).stdout).toBe(RESULT);
  });
});
