import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { parsePattern, runOnSchedule, type ScheduleOptions } from '../../pipeline/operations/schedule.js';
import { finished, jsonLines, start } from '../support/cli.js';
import { ipatlas } from '../support/in-process.js';
import { temporaryDir } from '../support/release.js';
import { writeSources } from '../support/sources.js';

/** Runs a schedule of every second until `run` was called the given number of times; returns its notes. */
async function play(
  times: number,
  run: (call: number) => Promise<boolean>,
  options: Partial<ScheduleOptions> = {},
): Promise<string[]> {
  const controller = new AbortController();
  const notes: string[] = [];
  let calls = 0;
  await runOnSchedule({
    what: 'build',
    pattern: '* * * * * *',
    jitterMs: 0,
    atOnce: true,
    retryMs: 1,
    maxRetryMs: 4,
    run: async () => {
      if (++calls === times) controller.abort();
      return run(calls);
    },
    note: (line) => notes.push(line),
    signal: controller.signal,
    ...options,
  });
  expect(calls).toBe(times);
  return notes;
}

const good = async (): Promise<boolean> => false;
const failing = async (): Promise<boolean> => true;

// Together, since they wait for the next second.
describe('a schedule', { concurrent: true }, () => {
  it('runs at its times, and prints the next one', async () => {
    const notes = await play(2, good);
    expect(notes).toEqual([expect.stringMatching(/^next build at \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[+-]\d\d:\d\d$/)]);
  });

  it('retries temporary failures with growing waits, and continues', async () => {
    // A yearly schedule: every run except the first is a retry.
    const notes = await play(4, failing, { pattern: '0 0 1 1 *' });
    expect(notes).toEqual(Array(3).fill(expect.stringMatching(/^trying again at /)));
  });

  it('stops retrying when the next time is due', async () => {
    const notes = await play(2, failing, { retryMs: 5000, maxRetryMs: 5000 });
    expect(notes).toEqual([expect.stringMatching(/^next build at /)]);
  });

  it('never runs two builds at the same time', async () => {
    let running = 0;
    await play(3, async () => {
      running++;
      expect(running).toBe(1);
      await new Promise((resolve) => setTimeout(resolve, 1200)); // longer than the interval of the schedule
      running--;
      return false;
    });
  });

  it('waits for its first time unless it must run immediately', async () => {
    const notes = await play(1, good, { atOnce: false });
    expect(notes).toEqual([expect.stringMatching(/^next build at /)]);
  });

  it('delays a run by chance, but not beyond its next time', async () => {
    await play(2, good, { jitterMs: 3_600_000 });
  });

  it('ends immediately while it waits', async () => {
    const controller = new AbortController();
    let calls = 0;
    const run = async (): Promise<boolean> => ++calls === 0;
    const note = (): void => controller.abort();
    await runOnSchedule({
      pattern: '0 0 1 1 *',
      jitterMs: 0,
      atOnce: false,
      what: 'build',
      run,
      note,
      signal: controller.signal,
    });
    expect(calls).toBe(0);
  });
});

describe('patterns', () => {
  it.each(['17 4 * * *', '*/5 * * * *', '0 17 4 * * *', '0 0 29 2 *', '@daily'])('%s is accepted', (pattern) => {
    expect(parsePattern(pattern).nextRun()).toBeInstanceOf(Date);
  });

  it.each(['', 'soon', '61 * * * *', '* * * *', '0 0 30 2 *', '2031-01-01T00:00:00', '0 0 0 1 1 * 2031'])(
    '%j is refused',
    (pattern) => {
      expect(() => parsePattern(pattern)).toThrow(/--schedule .*write five fields, as in "17 4 \* \* \*"/);
    },
  );
});

describe('ipatlas build --schedule', () => {
  let dir: string;
  beforeEach(() => {
    dir = temporaryDir();
  });

  const GOOD = '20.0.0.0,20.255.255.255,US\n30.0.0.0,30.255.255.255,DE\n';
  const args = (file: string, ...more: string[]): string[] => {
    return [
      'build',
      '--sources',
      file,
      '--data',
      join(dir, 'data'),
      '--schedule',
      '* * * * * *',
      '--jitter',
      '0',
      ...more,
    ];
  };

  it.each<[string[], RegExp]>([
    [['--force'], /--force does not go with --schedule/],
    [['--as-of', '2026-01-01'], /--as-of does not go with --schedule/],
    [['--jitter', 'much'], /--jitter is "much"; write a whole number/],
    [['--schedule', 'soon'], /--schedule "soon" is not a cron pattern/],
  ])('refuses %j with exit code 2', async (flags, message) => {
    const result = await ipatlas(args(writeSources(dir, { one: GOOD }), ...flags));
    expect(result).toMatchObject({ code: 2, stdout: '', stderr: expect.stringMatching(message) });
  });

  it('takes --jitter with --schedule only', async () => {
    expect(await ipatlas(['build', '--jitter', '1'])).toMatchObject({ code: 2 });
  });

  it('builds immediately and repeatedly, survives failures, and exits with 0 on SIGTERM', async () => {
    const file = writeSources(dir, { one: GOOD });
    const child = start(args(file, '--json'));
    const end = finished(child);
    let seen = '';
    const said = (text: string): Promise<void> =>
      new Promise((resolve) => {
        const look = (): void => {
          if (!seen.includes(text)) return;
          child.stderr!.off('data', look);
          seen = '';
          resolve();
        };
        child.stderr!.on('data', look);
      });
    child.stderr!.on('data', (chunk: string) => {
      seen += chunk;
    });
    await said('publish ');
    await said('nothing has changed; release ');
    writeFileSync(file, 'rubbish');
    await said(' is not JSON');
    writeSources(dir, { one: `${GOOD}31.0.0.0,31.0.0.255,FR\n` });
    await said('publish ');
    writeSources(dir, { one: GOOD.replace('20.255', '20.0') });
    await said(' is refused; ');
    child.kill('SIGTERM');
    const { code, signal, stdout, stderr } = await end;
    expect({ code, signal }).toEqual({ code: 0, signal: null });
    expect(stderr).toMatch(/the schedule has ended\n$/);
    expect(stderr).toMatch(/^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[+-]\d\d:\d\d .*\n)+$/);
    const outcomes = jsonLines(stdout).map((each) => each.outcome);
    expect(outcomes.filter((outcome) => outcome === 'published')).toHaveLength(2);
    expect(outcomes).toContain('unchanged');
    expect(outcomes).toContain('refused');
  });

  it('survives a build that is killed', async () => {
    // As if all memory had been used.
    const [bomb, marker] = [join(dir, 'bomb.cjs'), join(dir, 'marker')];
    const isArmed = `!process.argv.includes('--schedule') && require('fs').existsSync(${JSON.stringify(marker)})`;
    writeFileSync(bomb, `if (${isArmed}) process.kill(process.pid, 'SIGKILL')`);
    writeFileSync(marker, '');
    const child = start(args(writeSources(dir, { one: GOOD })), { env: { NODE_OPTIONS: `--require=${bomb}` } });
    const end = finished(child);
    let seen = '';
    child.stderr!.on('data', (chunk: string) => {
      seen += chunk;
      if (seen.includes('the build was ended by SIGKILL')) rmSync(marker, { force: true });
      if (seen.includes('published release') && !child.killed) child.kill('SIGTERM');
    });
    expect(await end).toMatchObject({ code: 0, signal: null });
  });

  it('exits with 0 on SIGTERM in the middle of a build, and the next build starts clean', async () => {
    const real = ['build', '--offline', '--only', 'rir-delegations', '--data', join(dir, 'data')];
    const child = start([...real, '--schedule', '0 0 1 1 *']);
    const end = finished(child);
    let seen = '';
    child.stderr!.on('data', (chunk: string) => {
      seen += chunk;
      // Once: a second signal would end the process immediately.
      if (/ fetch {2}/.test(seen) && !child.killed) child.kill('SIGTERM');
    });
    expect(await end).toMatchObject({ code: 0, signal: null, stderr: expect.not.stringMatching(/ publish {2}/) });
    expect((await ipatlas(['info', '--data', join(dir, 'data')])).code).toBe(5);
    const small = ['build', '--sources', writeSources(dir, { one: GOOD }), '--data', join(dir, 'data')];
    expect((await ipatlas(small)).code).toBe(0);
  });
});
