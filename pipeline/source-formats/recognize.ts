/** Recognizes the format of a table by its first lines. */

/** A version line or a record of a RIR's delegation file. */
const RIR_LINE = /^(?:[\d.]+\|)?(?:ripencc|arin|apnic|lacnic|afrinic|iana|nro)\|/;
const ADDRESS = String.raw`(?:[\d.]+|[\da-fA-F:.]*:[\da-fA-F:.]*)`;

/** The formats that the first line with data tells, in this order. Any other table is one of ip-location-db. */
const BY_LINE: readonly [RegExp, format: string][] = [
  [RIR_LINE, 'rir-delegated-extended'],
  [/^network,geoname_id,/, 'geolite2-country'],
  [/^(?:.*,)?network,(?:.*,)?country_code(?:,|$)/, 'iplocate'],
  [/^prefix,country(?:,|$)/, 'geofeed'],
  [new RegExp(`^${ADDRESS}/\\d+,`), 'geofeed'],
  [/^"\d+","\d+","/, 'ip2location-lite'],
  [new RegExp(`^"${ADDRESS}","${ADDRESS}","`), 'dbip-lite'],
  [/^\d+,\d+,/, 'ip-location-db-num'],
];

/** A file as far as its format is recognized by it. */
export interface FileHead {
  name: string;
  /** Its first bytes, as text. */
  head: string;
}

function formatOf({ name, head }: FileHead): string | undefined {
  if (/\.mmdb$/i.test(name)) return 'mmdb';
  if (/^geoip6?(?![a-z])/i.test(name) && head.startsWith('#')) return 'tor-geoip';
  const line = head.split(/\r?\n/).find((each) => each.trim() !== '' && !each.startsWith('#')) ?? '';
  return BY_LINE.find(([pattern]) => pattern.test(line))?.[1];
}

/** Returns the name of the built-in format of the files of a table: what the first of them tells that tells anything. */
export function recognizeFormat(files: readonly FileHead[]): string {
  return files.map(formatOf).find((format) => format !== undefined) ?? 'ip-location-db';
}
