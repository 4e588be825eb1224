/**
 * Writes the configuration and the zone of gdnsd 3, an authoritative DNS server that answers by the client's country.
 *
 * gdnsd finds the country in our MMDB file, by the client's network (EDNS Client Subnet, RFC 7871) if the resolver sends
 * it, else by the resolver's address. Each country has its own order of the regions, the closest first, and gdnsd answers
 * with the first region that passes its health checks. If none does, it answers with the first region.
 *
 * The map of the EU name has no region outside the European Union. So no failure and no client leads there.
 */
import { AtlasError } from '../../errors.js';
import { continentTable } from '../mmdb/continents.js';
import { byDistance, type Position } from './distance.js';
import type { Countries, HealthCheck, Node, NodeAddress, Nodes } from './nodes.js';

/** Path of the MMDB file in the directory of the configuration. */
export const GDNSD_DATABASE = 'geoip/ipatlas.mmdb';

export interface GdnsdFile {
  /** Relative to the directory of the configuration. */
  path: string;
  text: string;
}

/** Nodes that clients are sent to together. */
interface Region {
  name: string;
  country: string;
  addresses: NodeAddress[];
}

/** A name that clients use. */
interface Service {
  /** Of its map, its health check and its resource. */
  id: string;
  /** Relative to the zone. */
  name: string;
  /** What the health check asks for. */
  path: string;
  regions: Region[];
}

function regionsOf(nodes: readonly Node[]): Region[] {
  const regions = new Map<string, Region>();
  for (const { region, country, addresses } of nodes) {
    const known = regions.get(region);
    if (known === undefined) regions.set(region, { name: region, country, addresses: [...addresses] });
    else known.addresses.push(...addresses);
  }
  return [...regions.values()];
}

function servicesOf({ names, nodes }: Nodes): Service[] {
  const world: Service = { id: 'world', name: names.default, path: '/readyz', regions: regionsOf(nodes) };
  if (names.eu === undefined) return [world];
  const regions = regionsOf(nodes.filter(({ eu }) => eu));
  return [world, { id: 'union', name: names.eu, path: '/readyz?eu', regions }];
}

/**
 * Returns the files, except the database.
 *
 * @param centroids center of each country, by code
 * @param title a line that says where the files come from
 * @throws AtlasError E_FAULT if a country of a node has no center
 */
export function gdnsdFiles(
  nodes: Nodes,
  countries: Countries,
  centroids: ReadonlyMap<string, Position>,
  title: string,
): GdnsdFile[] {
  const services = servicesOf(nodes);
  const position = ({ country }: Region): Position => {
    const center = centroids.get(country);
    if (center === undefined) throw new AtlasError('E_FAULT', `the country ${country} has no center`);
    return center;
  };
  const maps = services.map((service) => mapText(service, countries, centroids, position));
  return [
    { path: `zones/${nodes.zone}`, text: zoneText(nodes, services, title) },
    { path: 'config', text: configText(nodes, services, maps, title) },
  ];
}

const list = (names: readonly string[]): string => `[${names.join(', ')}]`;

/** Returns the map of a service: continent, country, order of the regions. */
function mapText(
  { id, regions }: Service,
  { byCode }: Countries,
  centroids: ReadonlyMap<string, Position>,
  position: (region: Region) => Position,
): string {
  const continents = new Map<string, string[]>();
  const continentOf = continentTable();
  for (const code of [...byCode.keys()].sort()) {
    const center = centroids.get(code);
    const continent = continentOf.get(code)?.code;
    if (center === undefined || continent === undefined) continue;
    const order = byDistance(center, regions, position).map(({ name }) => name);
    const lines = continents.get(continent) ?? [];
    lines.push(`          ${code} => ${list(order)}`);
    continents.set(continent, lines);
  }
  const blocks = [...continents].sort().map(([code, lines]) => `        ${code} => {\n${lines.join('\n')}\n        }`);
  return `    ${id} => {
      geoip2_db => ${GDNSD_DATABASE.replace('geoip/', '')}
      datacenters => ${list(regions.map(({ name }) => name))}
      map => {
${blocks.join('\n')}
      }
    }`;
}

function optionText(value: string | number | boolean | string[]): string {
  if (Array.isArray(value)) return list(value.map(optionText));
  return typeof value === 'string' ? `"${value}"` : String(value);
}

function checkText({ id, path }: Service, { port, interval, timeout, failures, successes }: HealthCheck): string {
  return `  ${id} => {
    plugin => http_status
    port => ${port}
    url_path => "${path}"
    interval => ${interval}
    timeout => ${timeout}
    up_thresh => ${successes}
    ok_thresh => 1
    down_thresh => ${failures}
  }`;
}

/** Returns the addresses of a region. One that passes its check is enough for the region to be used. */
function regionText({ name, addresses }: Region): string {
  const families = ([4, 6] as const).map((family) => {
    const texts = addresses.filter((address) => address.family === family).map(({ text }) => text);
    if (texts.length === 0) return '';
    const pairs = texts.map((text, index) => `${index + 1} => ${text}`).join(', ');
    return `\n            addrs_v${family} => { ${pairs} }`;
  });
  return `          ${name} => {
            up_thresh => 0.01${families.join('')}
          }`;
}

function resourceText({ id, regions }: Service): string {
  return `    ${id} => {
      map => ${id}
      service_types => ${id}
      dcmap => {
${regions.map(regionText).join('\n')}
      }
    }`;
}

function configText({ options, check }: Nodes, services: Service[], maps: string[], title: string): string {
  const more = Object.entries(options).map(([name, value]) => `  ${name} => ${optionText(value)}\n`);
  return `# ${title}
# Written by "ipatlas export gdnsd"; changes are lost. It takes effect by "gdnsdctl replace".
options => {
  edns_client_subnet => true
${more.join('')}}

service_types => {
${services.map((service) => checkText(service, check)).join('\n')}
}

plugins => { geoip => {
  maps => {
${maps.join('\n')}
  }
  resources => {
${services.map(resourceText).join('\n')}
  }
} }
`;
}

/** Returns an e-mail address as a domain name (RFC 1035 §8): the `@` is a dot, and dots before it are escaped. */
function mailbox(address: string): string {
  const at = address.lastIndexOf('@');
  return `${address.slice(0, at).replaceAll('.', '\\.')}.${address.slice(at + 1)}.`;
}

function zoneText({ hostmaster, nameservers, ttl }: Nodes, services: Service[], title: string): string {
  const lines = [
    `; ${title}`,
    '; Written by "ipatlas export gdnsd"; changes are lost. It takes effect by "gdnsdctl reload-zones".',
    '$TTL 3600',
    // Primary, administrator, serial, refresh, retry, expire, time to keep "no such record". gdnsd transfers no zones, so the
    // serial need not grow.
    `@ ${ttl} SOA ${nameservers[0]!.name}. ${mailbox(hostmaster)} 1 7200 900 1209600 ${ttl}`,
    ...nameservers.map(({ name }) => `@ NS ${name}.`),
    ...nameservers.flatMap(({ name, addresses }) =>
      addresses.map(({ family, text }) => `${name}. ${family === 4 ? 'A' : 'AAAA'} ${text}`),
    ),
    ...services.map(({ id, name }) => `${name} ${ttl}/${ttl} DYNA geoip!${id}`),
  ];
  return `${lines.join('\n')}\n`;
}
