/** Stage `normalize`: merges the rows of all sources (see merging/) into one sorted, gap-free list of ranges per family. */
import { type MergeInput, type MergeResult, mergeSources } from '../merging/range-merger.js';
import type { Stage } from '../stage.js';

export const normalizeStage: Stage<MergeInput, MergeResult> = {
  name: 'normalize',
  run: async (input, { note }) => {
    const output = mergeSources(input);
    const { v4, v6, candidates, withoutSpace, outsideSpace, unknownCodes } = output;
    for (const id of withoutSpace) {
      note(`${id}: no source says which space belongs to its owner, so its rows are not used`);
    }
    for (const [id, rows] of outsideSpace) {
      note(`${id}: ${rows} rows outside the space of its owner are not used`);
    }
    for (const [code, rows] of unknownCodes) {
      note(`the code ${JSON.stringify(code)} (${rows} rows) is not a known country; treated as no country`);
    }
    return {
      output,
      counts: {
        candidates,
        ipv4_ranges: v4.count,
        ipv6_ranges: v6.count,
        duplicates: v4.duplicates + v6.duplicates,
        conflicts: v4.conflicts + v6.conflicts,
        unknown_codes: unknownCodes.size,
      },
    };
  },
};
