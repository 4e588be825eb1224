// Helpers of the benchmarks: each row of the output is a figure, the goal it is held against, and whether it is met.

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

const rows = [];

/**
 * Prints a row.
 *
 * @param name what was measured
 * @param value the figure as text
 * @param goal the goal as text, or '' where there is none
 * @param met whether it is met
 */
export function row(name, value, goal = '', met = true) {
  rows.push({ name, met });
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
