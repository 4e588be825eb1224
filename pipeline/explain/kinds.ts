/** Explains what kind of network an address is of: the prefixes of the lists that cover it. */
import { formatAddress } from '../../src/address/format.js';
import type { Database } from '../../src/database/database.js';
import { fieldLookup } from '../../src/database/fields.js';
import { COUNTRIES, KINDS } from '../../src/rangefile/partitions.js';
import { NETWORK_KINDS } from '../merging/kind-merger.js';
import {
  type CoveringRow,
  type CoveringRows,
  type ShownRow,
  shownRow,
  sortRows,
  type Target,
} from './covering-rows.js';

/** A prefix of a list that covers the address. A name here is a key of `ipatlas explain --json`. */
export interface ExplainedKindRow extends ShownRow {
  /** `anycast`, or the kind and the operator of the list, as in `cloud aws`. */
  label: string;
  /** The members that have their value from this row. */
  decides: string[];
}

/** A name here is a key of `ipatlas explain --json`. */
export interface ExplainedKinds {
  /** The address, or the IPv4 address inside it if that one decides. */
  address: string;
  anycast: boolean | null;
  kind: string | null;
  operator: string | null;
  /** Ids of the lists that the build did without. */
  missing: string[];
  /** Those that decide first. */
  rows: ExplainedKindRow[];
}

/** Returns the place of a row among those that cover an address: anycast, then the kinds, the strongest first. */
function rank({ label }: CoveringRow): number {
  return NETWORK_KINDS.length - NETWORK_KINDS.findIndex((kind) => label.startsWith(`${kind} `));
}

/**
 * Explains the kind of network of an address.
 *
 * @param target the address, or the IPv4 address inside it if that one decides
 * @param note reports that the rows give another result than the release
 * @returns null if the release does not say the kinds of networks
 */
export function explainKinds(
  database: Database,
  target: Target,
  { rows, missing: unread }: CoveringRows,
  note: (text: string) => void,
): ExplainedKinds | null {
  if (database.partition(KINDS) === undefined) return null;
  const address = formatAddress(target.family, target.words);
  const { anycast, kind, operator } = fieldLookup(KINDS.members, { ...database.sources(), labels: [] })(address)!;
  const covering = sortRows(rows.get(KINDS)!.get(target)!, rank);
  const isSpecial = rows
    .get(COUNTRIES)!
    .get(target)!
    .some(({ origin }) => origin.kind === 'special' && origin.range.layer === 'over');
  const ofAnycast = isSpecial ? undefined : covering.find(({ label }) => label === 'anycast');
  const ofKind = isSpecial ? undefined : covering.find(({ label }) => label !== 'anycast');
  const isListed = kind !== null && kind !== 'none';
  const agrees =
    (anycast === true) === (ofAnycast !== undefined) &&
    ofKind?.label === (isListed ? `${kind} ${operator}` : undefined);
  if (!agrees && unread.length === 0) {
    note(`the lists give another kind of network than the release for ${address}: it was made with other rules`);
  }
  return {
    address,
    ...({ anycast, kind, operator } as Pick<ExplainedKinds, 'anycast' | 'kind' | 'operator'>),
    missing: (database.manifest.kinds?.missing ?? []).map(({ id }) => id),
    rows: covering.map((row) => ({
      ...shownRow(row),
      label: row.label,
      decides: !agrees ? [] : row === ofAnycast ? ['anycast'] : row === ofKind ? ['kind', 'operator'] : [],
    })),
  };
}
