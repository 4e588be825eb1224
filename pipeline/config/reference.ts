/** Reads the tables of `data/reference/`. */
import type { EmbeddedScheme } from '../../src/address/embedded.js';
import type { Family } from '../../src/address/parse.js';
import { addressWords } from '../../src/address/words.js';
import { type Assignment, isReason, type Reason } from '../../src/country/assignment.js';
import type { CountryGroup, CountryReference, Membership } from '../../src/country/country.js';
import { packageFile } from '../../src/package-root.js';
import { parseCidr } from '../../src/range/cidr.js';
import { readConfigTable, refuseProblems } from './csv-table.js';

/** A range of addresses whose meaning is set by a standard. */
export interface SpecialRange {
  family: Family;
  /** First address, `addressWords(family)` words, most significant first. */
  first: Uint32Array;
  /** Last address, inclusive. */
  last: Uint32Array;
  /** The reason for no country, or the scheme by which addresses carry an IPv4 address. */
  result: Exclude<Assignment, { kind: 'country' }>;
  /**
   * `over`: the range takes precedence over all sources. `under`: a source that names a country for a range inside the
   * block takes precedence.
   */
  layer: 'over' | 'under';
  /** The block as the registry writes it, its name there, and the RFC that defines it. */
  block: string;
  name: string;
  rfc: string;
}

/** An address whose result must be the same in every build. */
export interface Sentinel {
  ip: string;
  expected: Exclude<Assignment, { kind: 'embedded' }>;
  /** Whose address it is, or which rule it checks. */
  why: string;
}

/** An address whose AS number is known. */
export interface NetworkSentinel {
  ip: string;
  asn: number;
  /** Who holds both. */
  why: string;
}

/** A block of addresses that its operator serves from many places. */
export interface AnycastBlock {
  family: Family;
  first: Uint32Array;
  last: Uint32Array;
  /** The block as text, whose service it is, and where its operator says so. */
  block: string;
  service: string;
  origin: string;
}

/** All reference data. */
export interface Reference extends CountryReference {
  /** Of nested blocks, the narrowest applies. */
  special: readonly SpecialRange[];
  sentinels: readonly Sentinel[];
  networkSentinels: readonly NetworkSentinel[];
  anycast: readonly AnycastBlock[];
}

/** Prefix that marks a reason: `reason:private`. */
const REASON_PREFIX = 'reason:';

/** Returns the reason in a cell such as `reason:private`; undefined for any other text. */
export function reasonIn(cell: string): Reason | undefined {
  const word = cell.startsWith(REASON_PREFIX) ? cell.slice(REASON_PREFIX.length) : '';
  return isReason(word) ? word : undefined;
}

/** Returns the addresses of a block. An IPv4-mapped one stays IPv6. */
function blockOf(text: string): Pick<SpecialRange, 'family' | 'first' | 'last'> {
  const [first, last] = [new Uint32Array(4), new Uint32Array(4)];
  const { family } = parseCidr(text, first, last)!;
  const words = addressWords(family);
  return { family, first: first.slice(0, words), last: last.slice(0, words) };
}

/** Returns the rows of a table. Tests check that their cells are valid: nobody but a developer changes them. */
function rowsOf<Column extends string>(name: string, columns: readonly Column[]): Record<Column, string>[] {
  const table = readConfigTable(packageFile(`data/reference/${name}.csv`), columns);
  refuseProblems([table]);
  return table.rows.map(({ cells }) => cells);
}

function membershipsOf(name: string, group: CountryGroup): Membership[] {
  return rowsOf(name, ['code', 'from', 'until', 'basis']).map(({ until, ...row }) => {
    return { ...row, group, until: until === '' ? undefined : until };
  });
}

const SPECIAL_COLUMNS = ['prefix', 'reason', 'embedded', 'layer', 'name', 'rfc', 'registry'] as const;

let packaged: Reference | undefined;

/**
 * Returns the reference tables of the package, which do not change: they are read once.
 *
 * @throws AtlasError E_CONFIG if one cannot be read, with file and line
 */
export function loadReference(): Reference {
  packaged ??= readReference();
  return packaged;
}

function readReference(): Reference {
  const countries = rowsOf('countries', ['code', 'name']).map(({ code, name }) => [code, name] as const);
  return {
    countries: new Map(countries.sort(([a], [b]) => (a < b ? -1 : 1))),
    memberships: [...membershipsOf('eu-membership', 'EU'), ...membershipsOf('eea-membership', 'EEA')],
    aliases: new Map(rowsOf('country-aliases', ['alias', 'code', 'note']).map(({ alias, code }) => [alias, code])),
    special: rowsOf('special-purpose', SPECIAL_COLUMNS).map(
      ({ prefix: block, reason, embedded, layer, name, rfc }) => ({
        ...blockOf(block),
        result:
          embedded === ''
            ? { kind: 'none', reason: reason as Reason }
            : { kind: 'embedded', scheme: embedded as EmbeddedScheme },
        layer: layer as SpecialRange['layer'],
        ...{ block, name, rfc },
      }),
    ),
    sentinels: rowsOf('sentinels', ['ip', 'expected', 'why']).map(({ ip, expected, why }) => {
      const reason = reasonIn(expected);
      return {
        ip,
        expected: reason === undefined ? { kind: 'country', code: expected } : { kind: 'none', reason },
        why,
      };
    }),
    networkSentinels: rowsOf('network-sentinels', ['ip', 'asn', 'why']).map((row) => ({
      ...row,
      asn: Number(row.asn),
    })),
    anycast: rowsOf('anycast', ['prefix', 'service', 'origin', 'date']).map(({ prefix: block, service, origin }) => {
      return { ...blockOf(block), block, service, origin };
    }),
  };
}
