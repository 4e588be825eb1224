/** The publishers of the default sources on one local server, without TLS: files of the form that they really have. */
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { packageFile } from '../../src/package-root.js';
import type { Row } from './sources.js';

/** A response to a GET request. */
export interface Published {
  status?: number;
  body: string | Buffer;
  /** Day of `Last-Modified`, `YYYY-MM-DD`. */
  day?: string;
  headers?: Record<string, string>;
}

/** A local server that serves files by host and path, such as `ftp.ripe.net/pub/stats`. */
export class Publishers {
  /** By host and path. What is not listed is answered with 404. */
  readonly files = new Map<string, Published>();
  readonly #server: Server;

  constructor() {
    this.#server = createServer((request, response) => {
      const file = this.files.get(request.url!.slice(1));
      if (file === undefined) {
        response.writeHead(404).end();
        return;
      }
      const { status = 200, body, day, headers } = file;
      const modified = day === undefined ? {} : { 'last-modified': new Date(`${day}T03:00:00Z`).toUTCString() };
      const etag = `"${createHash('sha256').update(body).digest('hex').slice(0, 16)}"`;
      if (status === 200 && request.headers['if-none-match'] === etag) {
        response.writeHead(304, { etag, ...modified }).end();
        return;
      }
      response.writeHead(status, { etag, ...modified, ...headers }).end(body);
    });
  }

  async listen(): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  /** Returns the address of a file. */
  url(path: string): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/${path}`;
  }

  /** Publishes a file. */
  put(path: string, body: string | Buffer, more: Omit<Published, 'body'> = {}): void {
    this.files.set(path, { body, ...more });
  }

  /** Publishes a file with its checksum in a file beside it. */
  putWithChecksum(path: string, body: string, day: string, checksumPath: string, algorithm: 'sha256' | 'md5'): void {
    this.put(path, body, { day });
    const hash = createHash(algorithm).update(body).digest('hex');
    const name = path.slice(path.lastIndexOf('/') + 1);
    this.put(checksumPath, algorithm === 'md5' ? `MD5 (${name}) = ${hash}\n` : `${hash}  ${name}\n`);
  }

  /**
   * Writes the default sources.json with every https address on this server. Seeds are left out, because they are real
   * data and the world of these tests is made up.
   *
   * @param change what to change in it before it is written
   */
  writeSources(dir: string, change: (file: SourcesFile) => void = () => {}): string {
    const text = readFileSync(packageFile('data/sources.json'), 'utf8');
    const file = JSON.parse(text.replaceAll('https://', this.url(''))) as SourcesFile;
    for (const source of file.sources) {
      delete source.homepage;
      const places = [source.fetch].flat().filter((place) => !('npm' in place));
      source.fetch = places.length === 1 ? places[0]! : places;
    }
    change(file);
    const path = join(dir, 'sources.json');
    writeFileSync(path, JSON.stringify({ ...file, $schema: undefined }, null, 2));
    return path;
  }
}

type Entry = Record<string, unknown> & { id: string; homepage?: string; fetch: object | object[] };

/** A sources.json as written. */
export interface SourcesFile {
  sources: Entry[];
  [key: string]: unknown;
}

/** Host and path of the file of each registry, as in data/sources.json. */
export const RIR_FILES = {
  ripencc: 'ftp.ripe.net/pub/stats/ripencc/delegated-ripencc-extended-latest',
  apnic: 'ftp.apnic.net/stats/apnic/delegated-apnic-extended-latest',
  arin: 'ftp.arin.net/pub/stats/arin/delegated-arin-extended-latest',
  lacnic: 'ftp.lacnic.net/pub/stats/lacnic/delegated-lacnic-extended-latest',
  afrinic: 'ftp.afrinic.net/pub/stats/afrinic/delegated-afrinic-extended-latest',
} as const;
export type Registry = keyof typeof RIR_FILES;

/** A row of a registry's file. */
export interface Delegation {
  registry: Registry;
  country: string;
  type: 'asn' | 'ipv4' | 'ipv6';
  /** First address, or the AS number. */
  start: string;
  /** Number of IPv4 addresses or AS numbers; prefix length of IPv6. */
  value: number;
  /** Opaque id of the holder. */
  holder: string;
}

const compact = (day: string): string => day.replaceAll('-', '');

/** Returns a registry's file in the extended statistics format of the RIRs, as of a day. */
export function rirFile(registry: Registry, rows: readonly Delegation[], day: string): string {
  const own = rows.filter((row) => row.registry === registry);
  const types = ['asn', 'ipv4', 'ipv6'].map((type) => {
    return `${registry}|*|${type}|*|${own.filter((row) => row.type === type).length}|summary`;
  });
  const lines = own.map(({ country, type, start, value, holder }) => {
    return `${registry}|${country}|${type}|${start}|${value}|20100101|allocated|${holder}`;
  });
  const free = `${registry}||ipv4|${registry === 'arin' ? '223.255.255.0' : '223.255.254.0'}|256||available|`;
  return `${[`2|${registry}|${compact(day)}|${own.length + 1}|19830705|${compact(day)}|+0000`, ...types, ...lines, free].join('\n')}\n`;
}

/** Returns the rows of one family as ip-location-db writes them. */
export function countryCsv(rows: readonly Row[], family: 4 | 6): string {
  const own = rows.filter(({ first }) => first.includes(':') === (family === 6));
  return own.map(({ first, last, code }) => `${first},${last},${code}\n`).join('');
}

/** Returns DB-IP Lite's file, which has both families. */
export function dbipCsv(rows: readonly Row[]): Buffer {
  return gzipSync(countryCsv(rows, 4) + countryCsv(rows, 6));
}

/** Returns Amazon's ip-ranges.json. */
export function awsJson(prefixes: readonly [prefix: string, region: string][], day: string): string {
  const entry = (region: string) => ({ region, service: 'EC2', network_border_group: region });
  const v4 = prefixes.filter(([prefix]) => !prefix.includes(':'));
  const v6 = prefixes.filter(([prefix]) => prefix.includes(':'));
  return JSON.stringify({
    syncToken: '1',
    createDate: `${day}-01-02-03`,
    prefixes: v4.map(([prefix, region]) => ({ ip_prefix: prefix, ...entry(region) })),
    ipv6_prefixes: v6.map(([prefix, region]) => ({ ipv6_prefix: prefix, ...entry(region) })),
  });
}

/** Returns Azure's list of service tags. */
export function azureJson(prefixes: readonly [prefix: string, region: string][]): string {
  const values = prefixes.map(([prefix, region]) => {
    return { name: `AzureCloud.${region}`, properties: { region, addressPrefixes: [prefix] } };
  });
  return JSON.stringify({ changeNumber: 1, cloud: 'Public', values });
}

/** Returns Google's cloud.json. */
export function googleJson(prefixes: readonly [prefix: string, region: string][], day: string): string {
  const list = prefixes.map(([ipv4Prefix, scope]) => ({ ipv4Prefix, service: 'Google Cloud', scope }));
  return JSON.stringify({ syncToken: '1', creationTime: `${day}T01:02:03.456`, prefixes: list });
}

/** Returns Oracle's public_ip_ranges.json. */
export function oracleJson(prefixes: readonly [prefix: string, region: string][], day: string): string {
  const regions = prefixes.map(([cidr, region]) => ({ region, cidrs: [{ cidr, tags: ['OCI'] }] }));
  return JSON.stringify({ last_updated_timestamp: `${day}T01:02:03.456789`, regions });
}
