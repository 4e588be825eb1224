/** UTC days as `YYYY-MM-DD`. */

export const DAY_MS = 86_400_000;

/** Returns the UTC day of a time in milliseconds since 1970. */
export function dayOf(time: number): string {
  return new Date(time).toISOString().slice(0, 10);
}

/** Returns the present UTC day. */
export function today(): string {
  return dayOf(Date.now());
}

/** Returns the time of the start of a day, in milliseconds since 1970. */
export function startOfDay(day: string): number {
  return Date.parse(`${day}T00:00:00Z`);
}

/** Returns the day that is a number of days after a day, or before it. */
export function shiftedDay(day: string, days: number): string {
  return dayOf(startOfDay(day) + days * DAY_MS);
}
