/**
 * The answers of all days as one table: a partition of the addresses within whose ranges the answers of every day are the same, and
 * for each range the answers that it had, and since when. So a look-up for a day takes one search on any day.
 */
import type { Family } from '../address/parse.js';
import { GROUPS, isMember } from '../country/country.js';
import { membershipDays, readMemberships } from '../country/memberships.js';
import { DAY_MS, dayOf, shiftedDay, startOfDay } from '../day.js';
import { AtlasError, misuse } from '../errors.js';
import { combine } from '../range/cut.js';
import { type RangeRecord, recordIdentity } from '../rangefile/layout.js';
import { columns4, columns6 } from '../rangefile/memory.js';
import type { SearchColumns } from '../rangefile/search.js';
import type { Archive, Entry, Span } from './archive.js';
import { joinLayers, type Values } from './changes.js';
import type { Answers } from './entry.js';

/** Days after today that have the answers of today: a hundred years. */
const DAYS_TO_COME = 36_525;

/** The value of a day that is not kept. */
export const NO_STATE = 0xffff;
/** The value of a day whose answers are damaged or lost. */
export const DAMAGED_STATE = 0xfffe;

/** Days whose answers are damaged or lost, and a sentence that says why and names the file. */
export interface Damage {
  from: string;
  to: string;
  problem: string;
}

/** The answers of all days. A state is a time during which no answer changes, except at its beginning. */
export interface AnswersOverTime extends SearchColumns {
  count4: number;
  start4: Uint32Array;
  count6: number;
  /** For each range, the number of its timeline. */
  record4: Uint32Array;
  record6: Uint32Array;
  /** For each timeline, the number of its first step; after the last one, the number of steps. */
  timelines: Uint32Array;
  /** The steps of the timelines: the state from which on it holds in the upper half, the record in the lower one. Ascending. */
  steps: Uint32Array;
  /** A country is two records if it joined or left the Union. */
  records: readonly RangeRecord[];
  /**
   * The first day, in days since 1970. For each day from it to today, its state, NO_STATE or DAMAGED_STATE. If there is a current
   * release, later days are those of today: a process may run on for long.
   */
  firstDay: number;
  states: Uint16Array;
  /** For each state, its first day, and the day of the publication or import whose answers hold. */
  days: readonly string[];
  dates: readonly string[];
  /** In the order of days. */
  damage: readonly Damage[];
}

/** Numbers timelines, each a list of steps: number 0 is the empty one, each other one is an earlier one with a step after it. */
class Timelines {
  readonly #before: number[] = [0];
  readonly #lastStep: number[] = [0];
  /** For each timeline, the numbers of those with one more step, by the step. */
  readonly #longer: (Map<number, number> | undefined)[] = [undefined];

  get count(): number {
    return this.#lastStep.length;
  }

  /** Returns the number of a timeline with a step after it. */
  append(timeline: number, step: number): number {
    if (timeline !== 0) {
      const last = this.#lastStep[timeline]!;
      // Of several publications of a day, the last one counts.
      if (stateOf(last) === stateOf(step)) return this.append(this.#before[timeline]!, step);
      if (recordOf(last) === recordOf(step)) return timeline;
    }
    this.#longer[timeline] ??= new Map();
    const known = this.#longer[timeline].get(step);
    if (known !== undefined) return known;
    this.#before.push(timeline);
    this.#longer.push(undefined);
    const number = this.#lastStep.push(step) - 1;
    this.#longer[timeline].set(step, number);
    return number;
  }

  /** Returns the number of the timeline that is one after another. */
  join(earlier: number, later: number): number {
    if (later === 0) return earlier;
    return earlier === 0 ? later : this.append(this.join(earlier, this.#before[later]!), this.#lastStep[later]!);
  }

  /** Returns the steps of a timeline. */
  steps(timeline: number): number[] {
    return timeline === 0 ? [] : [...this.steps(this.#before[timeline]!), this.#lastStep[timeline]!];
  }
}

const stepOf = (state: number, record: number): number => ((state << 16) | record) >>> 0;
const stateOf = (step: number): number => step >>> 16;
const recordOf = (step: number): number => step & 0xffff;

/** Gives records the same numbers in all entries; the membership of the Union, which may differ, does not count. */
class RecordTable {
  readonly records: RangeRecord[] = [];
  readonly #numbers = new Map<string, number>();

  numberOf(record: RangeRecord): number {
    const key = recordIdentity(record);
    const known = this.#numbers.get(key);
    if (known !== undefined) return known;
    this.#numbers.set(key, this.records.length);
    return this.records.push(record) - 1;
  }
}

/** Layers of a family, the earliest first; their values are numbers of timelines. */
type Layers = Record<Family, Values[]>;

class Builder {
  readonly timelines = new Timelines();
  readonly table = new RecordTable();
  /** For each base, what it joined with its changes is. */
  readonly #joined: Layers = { 4: [], 6: [] };
  /** The last base, and its changes. */
  readonly #layers: Layers = { 4: [], 6: [] };
  /** The records of the entries since the last base. */
  #numbers: number[] = [];

  /**
   * Adds what the entries of an archive changed.
   *
   * @returns for each entry, why its answers are not known; undefined if they are, or if it has none
   */
  addEntries(archive: Archive, stateOf: (entry: Entry) => number): Map<Entry, string | undefined> {
    const steps = archive.walk((file, { length }, added) => {
      const isBase = file.name.kind === 'base';
      const [v4, v6] = [file.layer(4, length), file.layer(6, length)];
      if (isBase) this.#numbers = [];
      this.#numbers.push(...added.map((record) => this.table.numberOf(record)));
      if (isBase) this.#joinLayers();
      return [v4, v6] as const;
    });
    const problems = new Map<Entry, string | undefined>();
    for (const step of steps) {
      if (step.unknown === undefined) this.#addLayers(...step.result, this.#numbers, stateOf(step.entry));
      problems.set(step.entry, step.unknown === undefined || step.unknown === 'gap' ? undefined : step.problem);
    }
    return problems;
  }

  /** Adds the answers of a release, whose values it replaces. */
  addAnswers({ records, v4, v6 }: Answers, state: number): void {
    this.#joinLayers();
    const numbers = records.map((record) => this.table.numberOf(record));
    this.#addLayers(v4, v6, numbers, state);
  }

  #addLayers(v4: Values, v6: Values, numbers: readonly number[], state: number): void {
    // Changes have few of the records.
    const timelineOf = [0];
    for (const layer of [v4, v6]) {
      const { value } = layer;
      for (let range = 0; range < value.length; range++) {
        const each = value[range]!;
        value[range] = timelineOf[each] ??= this.timelines.append(0, stepOf(state, numbers[each - 1]!));
      }
      this.#layers[layer.family].push(layer);
    }
  }

  /** Joins the last base with its changes: these first, because they have few ranges without it. */
  #joinLayers(): void {
    for (const family of [4, 6] as const) {
      const [base, ...changes] = this.#layers[family].splice(0);
      if (base === undefined) continue;
      this.#joined[family].push(changes.length === 0 ? base : this.#join([base, this.#join(changes)]));
    }
  }

  #join(layers: readonly Values[]): Values {
    const join = (earlier: number, later: number): number => this.timelines.join(earlier, later);
    return joinLayers(layers, (earlier, later) => combine(earlier, later, join));
  }

  /** Returns the partition of a family within whose ranges nothing ever differed. */
  joined(family: Family): Values {
    this.#joinLayers();
    return this.#join(this.#joined[family].splice(0));
  }
}

/** A country whose membership changes is one record for each of the two. Returns the steps by these records. */
class ByMembership {
  readonly records: RangeRecord[] = [];
  /** For each state, its first day. */
  readonly #starts: readonly string[];
  /** For each record of the table, the record in each state; the same array if it is always the same. */
  readonly #byState: (number | number[])[];

  constructor(table: readonly RangeRecord[], starts: readonly string[]) {
    this.#starts = starts;
    this.#byState = table.map((record) => this.#variants(record));
  }

  #variants(record: RangeRecord): number | number[] {
    if (record.kind !== 'country') return this.records.push(record) - 1;
    const memberships = readMemberships().filter(({ code }) => code === record.code);
    const groupsOf = (day: string): string =>
      `${GROUPS.map((group) => isMember(memberships, record.code, day, group))}`;
    const numbers = new Map<string, number>();
    const all = this.#starts.map((day) => {
      const groups = groupsOf(day);
      const variant = { ...record, isEu: isMember(memberships, record.code, day), day };
      const number = numbers.get(groups) ?? this.records.push(variant) - 1;
      numbers.set(groups, number);
      return number;
    });
    return numbers.size === 1 ? all[0]! : all;
  }

  steps(timeline: readonly number[]): number[] {
    const result: number[] = [];
    timeline.forEach((step, index) => {
      const byState = this.#byState[recordOf(step)]!;
      if (typeof byState === 'number') {
        result.push(stepOf(stateOf(step), byState));
        return;
      }
      const end = index + 1 < timeline.length ? stateOf(timeline[index + 1]!) : this.#starts.length;
      for (let state = stateOf(step); state < end; state++) {
        const isFirst = state === stateOf(step);
        if (isFirst || byState[state] !== byState[state - 1]) result.push(stepOf(state, byState[state]!));
      }
    });
    return result;
  }
}

/** Returns the tables of the timelines that ranges have, and gives the ranges their numbers there. */
function tables(timelines: Timelines, byMembership: ByMembership, values: readonly Uint32Array[]) {
  const numbers = new Uint32Array(timelines.count);
  const starts = [0];
  const steps: number[] = [];
  for (const value of values) {
    for (let range = 0; range < value.length; range++) {
      const timeline = value[range]!;
      if (numbers[timeline] === 0) {
        numbers[timeline] = starts.length;
        steps.push(...byMembership.steps(timelines.steps(timeline)));
        starts.push(steps.length);
      }
      value[range] = numbers[timeline]! - 1;
    }
  }
  return { timelines: Uint32Array.from(starts), steps: Uint32Array.from(steps) };
}

/**
 * Joins the answers of all days. Days whose entries are damaged or lost are not known.
 *
 * @param current returns the answers of the current release, for today, if the archive does not have them
 * @throws AtlasError E_USAGE if there is no history, E_DAMAGED if no day of it is known, and what `current` throws
 */
export function answersOverTime(archive: Archive, current?: () => Answers): AnswersOverTime {
  const { span, dataDir } = archive;
  if (span === undefined)
    throw misuse(`there is no history in ${dataDir}: "ipatlas build" and "ipatlas pull" add to it`);
  const spans = archive.spans();
  const { to: today } = span;
  const changes = membershipDays().filter((day) => day > span.from && day <= today);
  const starts = [...spans.map(({ from }) => from), ...changes, today];
  const days = [...new Set(starts)].sort();
  const stateOfDay = new Map(days.map((day, state) => [day, state]));

  const builder = new Builder();
  const problems = builder.addEntries(archive, ({ time }) => stateOfDay.get(dayOf(time))!);
  const problemOf = (span: Span): string | undefined =>
    'entry' in span ? problems.get(span.entry) : span.isGap ? undefined : `${dataDir}: ${span.missing}`;
  const isKnown = (span: Span): boolean => 'entry' in span && problemOf(span) === undefined;
  // Today's answers are those of the current release, though it was published without history.
  const hasCurrent = current !== undefined && !isKnown(spans.at(-1)!);
  if (hasCurrent) builder.addAnswers(current(), stateOfDay.get(today)!);
  const damage = spans.flatMap((span): Damage[] => {
    const problem = problemOf(span);
    const to = hasCurrent && span.to === today ? shiftedDay(today, -1) : span.to;
    return problem === undefined || span.from > to ? [] : [{ from: span.from, to, problem }];
  });
  if (!hasCurrent && !spans.some(isKnown)) {
    throw new AtlasError('E_DAMAGED', `${dataDir}: no day of its history is known; "ipatlas verify" says why`);
  }

  const [v4, v6] = [builder.joined(4), builder.joined(6)];
  const byMembership = new ByMembership(builder.table.records, days);
  const { timelines, steps } = tables(builder.timelines, byMembership, [v4.value, v6.value]);
  const dayNumber = (day: string): number => startOfDay(day) / DAY_MS;
  const firstDay = dayNumber(span.from);
  const later = current === undefined ? 0 : DAYS_TO_COME;
  const states = new Uint16Array(dayNumber(today) - firstDay + 1 + later);
  let at = 0;
  const dates = days.map((day, state) => {
    while (spans[at]!.to < day) at++;
    const span = spans[at]!;
    const isCurrent = hasCurrent && day === today;
    const unknown = problemOf(span) === undefined ? NO_STATE : DAMAGED_STATE;
    states.fill(isCurrent || isKnown(span) ? state : unknown, dayNumber(day) - firstDay);
    return isCurrent ? today : span.from;
  });
  return {
    ...columns4(v4),
    ...columns6(v6),
    divisions6: undefined,
    timelines,
    steps,
    records: byMembership.records,
    firstDay,
    states,
    days,
    dates,
    damage,
  };
}
