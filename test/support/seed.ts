/**
 * The seed of a run, and random numbers that depend on it only. `make test` has the same one each time, so that its input does not
 * change from run to run; `make soak` draws one, and tries more.
 */
import fc from 'fast-check';

/** SEED sets another one; vitest.soak.config.ts draws and prints it. */
export const SEED = Number(process.env.SEED ?? 1);

fc.configureGlobal({ seed: SEED });

/** A number from 0 to 1. Of those of `fc.double`, which gives each double as often, nearly all are tiny. */
export const SHARE = fc.nat(10_000).map((part) => part / 10_000);

/** Returns a number of rounds: this many in a whole run, fewer in a short one. */
export function rounds(whole: number): number {
  return Math.max(1, Math.ceil(whole * Number(process.env.SOAK_SCALE ?? 1)));
}

/**
 * Returns a function that yields numbers from 0 up to 1, the same for the same seed (mulberry32).
 *
 * @param seed any number; tests that need several sequences add their own to {@link SEED}
 */
export function randomFrom(seed = SEED): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
