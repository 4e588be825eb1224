/** The formats of `ipatlas export`, in one table. */
import { EMBEDDED_SCHEMES, type EmbeddedScheme } from '../address/embedded.js';
import { cidr, csv } from './csv.js';
import { codeLines } from './maps.js';
import { type MmdbLabels, mmdb } from './mmdb/mmdb.js';
import type { Selection } from './ranges.js';
import { type SetFormat, setFile } from './sets.js';

/** A selection and the labels of the file. The title is one line, for comments and metadata. */
export interface ExportRequest extends Selection, MmdbLabels {
  /** Name of the sets of firewalls, without the digit of the family. */
  setName: string;
}

export interface Format {
  /** One line for the help page. */
  summary: string;
  /** Whether the content is binary. */
  isBinary: boolean;
  /** The schemes of embedded IPv4 addresses that the format can hold. */
  schemes: readonly EmbeddedScheme[];
  /**
   * The schemes exported by default. Formats for lookups have 6to4 and NAT64. Tables have none, and neither have firewalls,
   * because twice the blocks take nftables three times as long to load.
   */
  embedded: readonly EmbeddedScheme[];
  /** Returns the content of the file in pieces; the same bytes for the same release and selection. */
  write(request: ExportRequest): Iterable<string | Uint8Array>;
}

/** The schemes that are a block for each IPv4 block: Teredo would be 2^64 blocks each, which only a tree can share. */
const LISTABLE: readonly EmbeddedScheme[] = ['6to4', 'nat64'];

function trees(summary: string): Format {
  const write = (request: ExportRequest) => mmdb(request, request);
  return { summary, isBinary: true, schemes: EMBEDDED_SCHEMES, embedded: LISTABLE, write };
}

function lines(summary: string, write: Format['write'], embedded: Format['embedded'] = []): Format {
  return { summary, isBinary: false, schemes: LISTABLE, embedded, write };
}

/** Returns the format of a firewall. */
function sets(name: SetFormat, summary: string): Format {
  return lines(summary, (request) => setFile(name, request, request.title, request.setName));
}

export const FORMATS = {
  mmdb: trees('MaxMind DB 2.0, records of the GeoIP2 Country shape'),
  'asn-mmdb': trees('MaxMind DB 2.0, records of the GeoLite2 ASN shape'),
  csv: lines('a table of ranges: start,end,country_code,country,is_eu', csv),
  cidr: lines('a table of CIDR blocks: network,country_code,country,is_eu', cidr),
  nginx: lines('lines for a geo block of nginx', (request) => codeLines(request, ';\n'), LISTABLE),
  haproxy: lines('a map for map_ip of HAProxy', (request) => codeLines(request, '\n'), LISTABLE),
  nft: sets('nft', 'two sets, IPv4 and IPv6, of all chosen countries together, for nftables'),
  ipset: sets('ipset', 'the same for "ipset restore -exist", which replaces the sets in one step'),
  firewalld: sets('firewalld', 'the same as an ipset of firewalld, of one --family'),
  pf: sets('pf', 'the same for a table of pf: a block a line'),
  mikrotik: sets('mikrotik', 'the same as a script of RouterOS that replaces address lists'),
} satisfies Record<string, Format>;
export type FormatName = keyof typeof FORMATS;
