// Helpers of the benchmarks: each row of the output is a figure, the goal it is held against, and whether it is met.

import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';

/** Seconds that `run` takes. */
export async function seconds(run) {
  const start = performance.now();
  await run();
  return (performance.now() - start) / 1000;
}

/**
 * The least seconds of several runs of each of some functions, after one that does not count. They take turns, so that a
 * machine that is busy for a while is so for all of them; the least is the run that was disturbed least.
 */
export async function leastSeconds(runs, ...functions) {
  const least = functions.map(() => Number.POSITIVE_INFINITY);
  for (const run of functions) await run();
  for (let i = 0; i < runs; i++) {
    for (const [index, run] of functions.entries()) least[index] = Math.min(least[index], await seconds(run));
  }
  return least;
}

/**
 * The median milliseconds of programs from cold. They take turns, so that all see the same machine.
 *
 * @param runs number of runs of each
 * @param programs arguments of `node`, each a list
 */
export function medianStarts(runs, ...programs) {
  const times = programs.map(() => []);
  for (let i = 0; i < runs; i++) {
    for (const [index, args] of programs.entries()) {
      const start = performance.now();
      const { status } = spawnSync(process.execPath, args, { stdio: 'ignore' });
      times[index].push(performance.now() - start);
      if (status !== 0) throw new Error(`node ${args.join(' ')} ended with ${status}`);
    }
  }
  return times.map((list) => list.sort((a, b) => a - b)[list.length >> 1]);
}

const rows = [];

/** The rows so far, for bench/results.json. */
export const allRows = () => rows.map(({ name, value, goal, met }) => ({ name, value, goal, met }));

/**
 * Prints a row.
 *
 * @param name what was measured
 * @param value the figure as text
 * @param goal the goal as text, or '' where there is none
 * @param met whether it is met
 */
export function row(name, value, goal = '', met = true) {
  rows.push({ name, value, goal, met });
  console.log(`${met ? '  ' : '✗ '}${name.padEnd(62)} ${value.padStart(22)}  ${goal}`);
}

export function section(title) {
  console.log(`\n${title}`);
}

/** How many goals were missed so far. */
export function missed() {
  return rows.filter(({ met }) => !met).length;
}

/** Numbers that look random and are the same in every run (xorshift32). */
export function randomWords(seed) {
  let state = seed;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return state >>> 0;
  };
}

/**
 * Peak of this process's resident memory in MB; NaN on systems other than Linux. Not `process.resourceUsage().maxRSS`: in a
 * new process, it starts with the peak of the process that started it.
 */
export function peakMegabytes() {
  try {
    return Number(/^VmHWM:\s+(\d+) kB/m.exec(readFileSync('/proc/self/status', 'utf8'))[1]) / 1024;
  } catch {
    return Number.NaN;
  }
}

/** The arguments of Node that make a program print its peak; {@link printedPeak} reads it. */
export const PRINT_PEAK = ['--import', new URL('print-peak.js', import.meta.url).href];

/** Returns the peak in MB that a program printed on stderr. */
export function printedPeak(stderr) {
  return Number(/^peak (\S+)$/m.exec(stderr)[1]);
}

/**
 * Processor time of a process so far, of all its threads that still run; NaN on systems other than Linux. From schedstat,
 * which counts nanoseconds: /proc/PID/stat counts in steps of 10 ms, a tenth of what a server may use in a short round.
 */
export function cpuSecondsOf(pid) {
  try {
    const threads = readdirSync(`/proc/${pid}/task`);
    const times = threads.map((thread) => readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').split(' ')[0]);
    return times.reduce((sum, nanoseconds) => sum + Number(nanoseconds), 0) / 1e9;
  } catch {
    return Number.NaN;
  }
}
