/** The formats `csv` (ranges) and `cidr` (blocks), for tables: RFC 4180, a header row, IPv4 before IPv6. */
import { formatAddress } from '../address/format.js';
import { blockLines, rangeLines } from './lines.js';
import {
  type CountryRecord,
  chosenCountries,
  chosenNetworks,
  exportedRanges,
  type OperatorRecord,
  type Selection,
} from './ranges.js';

/** Formats a field of RFC 4180, quoted if necessary. */
function field(text: string): string {
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

const COUNTRY_COLUMNS = ',country_code,country,is_eu';
const NETWORK_COLUMNS = ',asn,as_name';

/** Returns the fields of a country; without one, `is_eu` is false, as in a lookup. */
function countryFields(country: CountryRecord | undefined): string {
  return country === undefined ? ',,,false' : `,${country.code},${field(country.name)},${country.isEu}`;
}

function networkFields(network: OperatorRecord | undefined): string {
  return network === undefined ? ',,' : `,${network.asn},${field(network.name)}`;
}

/** The columns after the addresses, and the fields in them, with the line end, by record number. */
interface Columns {
  header: string;
  ends: string[];
}

function columnsOf(selection: Selection): Columns {
  const { header, ends } = placeColumns(selection);
  const { names = [], values = [] } = selection.rows ?? {};
  return {
    header: `${[header, ...names].join()}\n`,
    ends: ends.map((end, record) => {
      return `${[end, ...(values[record] ?? []).map((value) => field(String(value ?? '')))].join()}\n`;
    }),
  };
}

/** Returns the columns of the country and of the network, without the line end. */
function placeColumns(selection: Selection): Columns {
  const countries = chosenCountries(selection);
  const networks = chosenNetworks(selection);
  if (selection.hasBoth === true) {
    const ends = countries.map((country, record) => `${countryFields(country)}${networkFields(networks[record])}`);
    return { header: COUNTRY_COLUMNS + NETWORK_COLUMNS, ends };
  }
  if (networks.some((network) => network !== undefined)) {
    return { header: NETWORK_COLUMNS, ends: networks.map(networkFields) };
  }
  return { header: COUNTRY_COLUMNS, ends: countries.map(countryFields) };
}

export function* csv(selection: Selection): Generator<string> {
  const { header, ends } = columnsOf(selection);
  yield `start,end${header}`;
  for (const family of selection.families) {
    yield* rangeLines(
      exportedRanges(selection, family),
      ({ first, last, record }) => `${formatAddress(family, first)},${formatAddress(family, last)}${ends[record]}`,
    );
  }
}

/** Writes blocks with their countries, with who announces them, or with both, as the file has them. */
export function* cidr(selection: Selection): Generator<string> {
  const { header, ends } = columnsOf(selection);
  yield `network${header}`;
  for (const family of selection.families) yield* blockLines(family, exportedRanges(selection, family), ends);
}
