/** Membership in the European Union: data with dates, never a constant. */

/** One unbroken time of membership of one country or territory. */
export interface Membership {
  /** ISO 3166-1 alpha-2 code. */
  code: string;
  /** First day of membership, `YYYY-MM-DD`. */
  from: string;
  /** First day no longer a member, `YYYY-MM-DD`; undefined where membership lasts. */
  until: string | undefined;
  /** The treaty or decision that says so. */
  basis: string;
}

/**
 * Whether a country or territory is part of the European Union on a day.
 *
 * @param memberships the table of `data/reference/eu-membership.csv`
 * @param code ISO 3166-1 alpha-2 code, upper case
 * @param asOf the day, `YYYY-MM-DD`
 * @returns false for a code that the table does not name
 */
export function isEuMember(memberships: readonly Membership[], code: string, asOf: string): boolean {
  return memberships.some(
    (row) => row.code === code && row.from <= asOf && (row.until === undefined || asOf < row.until),
  );
}
