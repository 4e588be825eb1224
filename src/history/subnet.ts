/** The history of a block of addresses: what changed inside it, and when. */
import type { Family } from '../address/parse.js';
import { addressWords, compareAddresses, isNextAddress } from '../address/words.js';
import { recordLabel } from '../database/diff.js';
import { copyBounds } from '../range/columns.js';
import type { RangeRecord } from '../rangefile/layout.js';
import { rangeColumns } from '../rangefile/reader.js';
import type { AnswersOverTime } from './over-time.js';

/** Addresses whose answer changed on a day. */
export interface SubnetChange {
  /** The first day with the new answer, `YYYY-MM-DD`. */
  day: string;
  first: Uint32Array;
  last: Uint32Array;
  /** Country codes; in lower case, the reason for no country, or the scheme of an embedded IPv4 address. */
  from: string;
  to: string;
  /** Whether they were in the European Union before, and are then. */
  fromEu: boolean;
  toEu: boolean;
}

/** A block of addresses. */
export interface Subnet {
  family: Family;
  first: Uint32Array;
  last: Uint32Array;
}

/** Yields the ranges of a block, cut to it, with their timelines. */
function* rangesIn(all: AnswersOverTime, { family, first, last }: Subnet) {
  const words = addressWords(family);
  const ranges = rangeColumns(all, family);
  const [from, to] = [new Uint32Array(words), new Uint32Array(words)];
  for (let range = 0; range < ranges.count; range++) {
    copyBounds(ranges, range, from, to);
    if (compareAddresses(from, 0, last, 0, words) > 0) return;
    if (compareAddresses(to, 0, first, 0, words) < 0) continue;
    yield {
      timeline: ranges.value[range]!,
      from: compareAddresses(from, 0, first, 0, words) < 0 ? first : from.slice(),
      to: compareAddresses(to, 0, last, 0, words) > 0 ? last : to.slice(),
    };
  }
}

const isEu = (record: RangeRecord): boolean => record.kind === 'country' && record.isEu;

/** Returns what changed inside a block of addresses, the earliest first, and by address on each day. */
export function changesIn(all: AnswersOverTime, subnet: Subnet): SubnetChange[] {
  /** The last change of each kind on each day, which the next range may continue. */
  const open = new Map<string, SubnetChange>();
  const changes: SubnetChange[] = [];
  for (const { timeline, from, to } of rangesIn(all, subnet)) {
    const steps = all.steps.subarray(all.timelines[timeline], all.timelines[timeline + 1]);
    for (let step = 1; step < steps.length; step++) {
      const [before, after] = [steps[step - 1]!, steps[step]!].map((each) => all.records[each & 0xffff]!) as [
        RangeRecord,
        RangeRecord,
      ];
      const key = `${steps[step]! >>> 16} ${recordLabel(before)} ${recordLabel(after)} ${isEu(before)} ${isEu(after)}`;
      const last = open.get(key);
      if (last !== undefined && isNextAddress(last.last, from)) {
        last.last = to;
        continue;
      }
      const change = {
        ...{ day: all.days[steps[step]! >>> 16]!, first: from, last: to },
        ...{ from: recordLabel(before), to: recordLabel(after), fromEu: isEu(before), toEu: isEu(after) },
      };
      open.set(key, change);
      changes.push(change);
    }
  }
  return changes.sort((a, b) => (a.day < b.day ? -1 : a.day > b.day ? 1 : 0));
}
