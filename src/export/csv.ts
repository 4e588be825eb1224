/** The formats `csv` (ranges) and `cidr` (blocks), for tables: RFC 4180, a header row, IPv4 before IPv6. */
import { formatAddress } from '../address/format.js';
import { blockLines, rangeLines } from './lines.js';
import { type CountryRecord, chosenCountries, chosenNetworks, exportedRanges, type Selection } from './ranges.js';

/** Formats a field of RFC 4180, quoted if necessary. */
function field(text: string): string {
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** Returns the fields after the addresses, with the line end, by record number. */
function rowEnds(selection: Selection): string[] {
  const rowEnd = ({ code, name, isEu }: CountryRecord): string => `,${code},${field(name)},${isEu}\n`;
  return chosenCountries(selection).map((country) => (country === undefined ? '' : rowEnd(country)));
}

export function* csv(selection: Selection): Generator<string> {
  const ends = rowEnds(selection);
  yield 'start,end,country_code,country,is_eu\n';
  for (const family of selection.families) {
    yield* rangeLines(
      exportedRanges(selection, family),
      ({ first, last, record }) => `${formatAddress(family, first)},${formatAddress(family, last)}${ends[record]}`,
    );
  }
}

/** Writes blocks with their countries or, of a file of networks, with who announces them. */
export function* cidr(selection: Selection): Generator<string> {
  const networks = chosenNetworks(selection);
  const hasNetworks = networks.some((network) => network !== undefined);
  const ends = hasNetworks
    ? networks.map((network) => (network === undefined ? '' : `,${network.asn},${field(network.name)}\n`))
    : rowEnds(selection);
  yield hasNetworks ? 'network,asn,as_name\n' : 'network,country_code,country,is_eu\n';
  for (const family of selection.families) yield* blockLines(family, exportedRanges(selection, family), ends);
}
