/** The chosen addresses in at most so many blocks, for programs that take only so many: `--max-entries`. */
import type { Family } from '../address/parse.js';
import { addressWords, hostMask } from '../address/words.js';
import { rangeToCidrs } from '../range/cidr.js';
import { type Blocks, coverBlocks } from '../range/cover.js';
import type { FileRecord } from '../rangefile/layout.js';
import {
  type ExportedRange,
  exportedRanges,
  isChosenRecord,
  type JointRecord,
  mergeNeighbors,
  type Selection,
} from './ranges.js';

/** The ranges of a family, each a block, and what was added to those that were chosen. */
export interface Limited {
  ranges: readonly ExportedRange[];
  /** The number of addresses that were not chosen, of IPv6 in /64 blocks, by country code, AS number, or `none`. */
  added: ReadonlyMap<string, number>;
}

/** Returns the chosen ranges as the fewest blocks; adjacent ranges of different records are joined. */
function chosenBlocks(selection: Selection, family: Family): Blocks {
  const first: number[] = [];
  const prefixes: number[] = [];
  for (const range of mergeNeighbors(exportedRanges(selection, family), () => true))
    rangeToCidrs(family, range.first, range.last, (block, prefix) => {
      for (let k = 0; k < addressWords(family); k++) first.push(block[k]!);
      prefixes.push(prefix);
    });
  return { first: Uint32Array.from(first), prefix: Uint8Array.from(prefixes) };
}

/** Returns an address as one number. */
function numberOf(words: Uint32Array): bigint {
  return words.reduce((number, word) => (number << 32n) | BigInt(word), 0n);
}

function nameOf(record: FileRecord | JointRecord): string {
  if (record.kind === 'country') return record.code;
  return record.kind === 'network' ? `AS${record.asn}` : 'none';
}

/**
 * Covers the chosen addresses of a family with at most `max` blocks.
 *
 * @returns blocks; the record of each is that of most chosen addresses in it
 */
export function limitEntries(selection: Selection, family: Family, max: number): Limited {
  const { file } = selection;
  const isChosen = isChosenRecord(selection);
  const cover = coverBlocks(family, chosenBlocks(selection, family), max);
  const words = addressWords(family);
  const blocks = Array.from(cover.prefix, (prefix, index) => {
    const first = cover.first.slice(index * words, (index + 1) * words);
    const last = first.map((word, k) => word | hostMask(prefix, k));
    return { first, last, record: 0, start: numberOf(first), end: numberOf(last), most: 0 };
  });
  const added = new Map<string, number>();
  const unit = family === 4 ? 1 : 2 ** 64;
  let at = 0;
  for (const { first, last, record } of exportedRanges(
    selection,
    family,
    isChosen.map(() => true),
  )) {
    const [start, end] = [numberOf(first), numberOf(last)];
    while (at < blocks.length && blocks[at]!.end < start) at++;
    for (let index = at; index < blocks.length && blocks[index]!.start <= end; index++) {
      const block = blocks[index]!;
      const from = start > block.start ? start : block.start;
      const size = Number((end < block.end ? end : block.end) - from + 1n) / unit;
      if (!isChosen[record]) {
        const name = nameOf(file.records[record]!);
        added.set(name, (added.get(name) ?? 0) + size);
      } else if (size > block.most) {
        block.most = size;
        block.record = record;
      }
    }
  }
  return { ranges: blocks, added };
}
