/** The formats of `ipatlas export`, in one table. */
import { cidr, csv } from './csv.js';
import { haproxy, nginx } from './maps.js';
import { type MmdbLabels, mmdb } from './mmdb/mmdb.js';
import { nft } from './nft.js';
import type { Selection } from './ranges.js';

/** A selection, and what the file says of itself. The title, a line for people, stands in comments and metadata. */
export interface ExportRequest extends Selection, MmdbLabels {
  /** Name of the sets in `nft`. */
  setName: string;
}

export interface Format {
  /** One line for the help page. */
  summary: string;
  /** Whether the content is no text. */
  isBinary: boolean;
  /**
   * Whether IPv6 addresses that carry an IPv4 address are exported unless asked otherwise: yes where an engine looks
   * addresses up in the file, no where the file lists what the data says, and for nftables, to which twice the blocks are
   * three times the time to load.
   */
  embedded: boolean;
  /** The file's content, in pieces; the same bytes for the same release and selection. */
  write(request: ExportRequest): Iterable<string | Uint8Array>;
}

export const FORMATS = {
  mmdb: {
    summary: 'MaxMind DB 2.0, records of the GeoIP2 Country shape',
    isBinary: true,
    embedded: true,
    write: (request) => mmdb(request, request),
  },
  csv: {
    summary: 'a table of ranges: start,end,country_code,country,is_eu',
    isBinary: false,
    embedded: false,
    write: csv,
  },
  cidr: {
    summary: 'a table of CIDR blocks: network,country_code,country,is_eu',
    isBinary: false,
    embedded: false,
    write: cidr,
  },
  nginx: {
    summary: 'lines for a geo block of nginx',
    isBinary: false,
    embedded: true,
    write: (request) => nginx(request, request.title),
  },
  haproxy: {
    summary: 'a map for map_ip of HAProxy',
    isBinary: false,
    embedded: true,
    write: (request) => haproxy(request, request.title),
  },
  nft: {
    summary: 'two sets, IPv4 and IPv6, of all chosen countries together, for nftables',
    isBinary: false,
    embedded: false,
    write: (request) => nft(request, request.title, request.setName),
  },
} satisfies Record<string, Format>;
export type FormatName = keyof typeof FORMATS;
