/** Days of the calendar as text, the only form in which dates are compared and stored here. */

/**
 * Whether the text is a day of the calendar, `YYYY-MM-DD` (ISO 8601, extended format). Two such texts compare as their days
 * do, so `<` orders dates.
 *
 * @returns false for anything else, `2023-02-29` and `2023-2-9` included
 */
export function isDate(text: string): boolean {
  if (!/^\d{4}-\d{2}-\d{2}$/.test(text)) return false;
  const day = new Date(`${text}T00:00:00Z`);
  // `Date` may carry a day that the month lacks over into the next month, or be invalid.
  return !Number.isNaN(day.getTime()) && day.toISOString().startsWith(text);
}
