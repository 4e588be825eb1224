/**
 * The format `nft`: the chosen countries as two named sets, one per family, in the table `inet ipatlas`.
 *
 * The file is one transaction: it creates the table and the sets if they are missing, empties the sets, and fills them. So
 * loading a newer file replaces the addresses while rules use the sets.
 */
import type { Family } from '../address/parse.js';
import { blockLines } from './lines.js';
import { exportedRanges, mergeNeighbors, type Selection } from './ranges.js';

const NFT_TABLE = 'inet ipatlas';

/** An identifier of nft, one character shorter than its limit: the digit of the family follows. */
export const NFT_SET_NAME = /^[A-Za-z][A-Za-z0-9_]{0,29}$/;

function* setOf(selection: Selection, family: Family, set: string): Generator<string> {
  yield `add set ${NFT_TABLE} ${set} { type ipv${family}_addr; flags interval; }\nflush set ${NFT_TABLE} ${set}\n`;
  // The set does not distinguish countries, so adjacent ranges of two countries are joined.
  const ranges = mergeNeighbors(exportedRanges(selection, family), () => true);
  const ends = selection.file.records.map(() => ',\n');
  let isEmpty = true;
  for (const lines of blockLines(family, ranges, ends)) {
    if (isEmpty) yield `add element ${NFT_TABLE} ${set} {\n`;
    isEmpty = false;
    yield lines;
  }
  if (!isEmpty) yield '}\n';
}

/**
 * Writes the nft file.
 *
 * @param title for a comment
 * @param setName name of the sets without the digit of the family, `4` or `6`
 */
export function* nft(selection: Selection, title: string, setName: string): Generator<string> {
  yield `# ${title}\nadd table ${NFT_TABLE}\n`;
  for (const family of selection.families) yield* setOf(selection, family, `${setName}${family}`);
}
