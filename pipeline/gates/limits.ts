/** Compares what the gates measured with their limits. */
import type { Refusal } from '../../src/database/release.js';
import { type GateLimit, SOURCE_CHANGE_GATES } from '../../src/limits.js';
import { type GateFigure, gateText } from '../../src/report/stored-report.js';
import { counted } from '../../src/text-table.js';
import type { GateLimits } from '../config/sources.js';
import type { Measure } from './measures.js';

/** Limit beyond which the days do not raise a limit, so that no pause makes a total loss pass. */
const GATE_GROWTH_END = 0.9;

/**
 * Returns a limit for a number of days. It never falls with more days, and the days never raise it to a total loss.
 *
 * @param days that the data had to change, not below 0
 */
export function limitAt(limit: GateLimit, days: number): number {
  if (typeof limit === 'number') return limit;
  return Math.max(limit.base, Math.min(limit.base + limit.perDay * days, GATE_GROWTH_END));
}

/**
 * Compares measures with their limits.
 *
 * @param days that the data had to change; undefined if the sources are others, which has constant limits: those of
 *   SOURCE_CHANGE_GATES, or of a night from one day to the same if that is more
 * @returns what each gate compared, and a refusal for each value above its limit
 */
export function judge(
  measures: readonly Measure[],
  limits: GateLimits,
  days: number | undefined,
): { gates: GateFigure[]; refusals: Refusal[] } {
  const gates: GateFigure[] = [];
  const refusals: Refusal[] = [];
  for (const { gate, value, text, subject, details = '' } of measures) {
    const ofChange = SOURCE_CHANGE_GATES[gate];
    if (days === undefined && ofChange === undefined) continue;
    const limit = days === undefined ? Math.max(ofChange!, limitAt(limits[gate], 0)) : limitAt(limits[gate], days);
    gates.push({ gate, value, limit, days: days ?? null, ...(subject !== undefined && { subject }) });
    if (value <= limit) continue;
    const time = days === undefined || typeof limits[gate] === 'number' ? '' : ` after ${counted(days, 'day')}`;
    refusals.push({ gate, message: `${text}${time}; the limit is ${gateText(gate, limit)}${details}` });
  }
  return { gates, refusals };
}
