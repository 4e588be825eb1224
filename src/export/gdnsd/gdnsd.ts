/**
 * Writes the configuration and the zone of gdnsd 3, an authoritative DNS server that answers by the client's country.
 *
 * gdnsd finds the country in our MMDB file, by the client's network (EDNS Client Subnet, RFC 7871) if the resolver sends
 * it, else by the resolver's address. Each country has its own order of the regions, the closest first, and gdnsd answers
 * with the first region that passes its health checks. If none does, it answers with the first region.
 *
 * gdnsd chooses a region for all addresses of a name, so a client with IPv6 only would get none from a region that has only
 * IPv4. For such a region there are more choices before it: its own addresses with the IPv6 addresses of another region. If
 * these fail, the choice is out like any other. The same holds the other way round.
 *
 * The map of the EU name has no region outside the European Union. So no failure and no client leads there.
 */
import type { Family } from '../../address/parse.js';
import { continentTable } from '../../country/continents.js';
import { AtlasError } from '../../errors.js';
import { byDistance, type Position } from './distance.js';
import type { Countries, HealthCheck, Node, NodeAddress, Nodes } from './nodes.js';

/** Path of the MMDB file in the directory of the configuration. */
export const GDNSD_DATABASE = 'geoip/ipatlas.mmdb';

/** Folder of the zones, all of which gdnsd serves, and the second line of those that are ours. */
export const ZONES_DIR = 'zones';
export const ZONE_MARK =
  '; Written by "ipatlas export gdnsd"; changes are lost. It takes effect by "gdnsdctl reload-zones".';

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

/** How many other regions lend their addresses of a family to one that has none. */
const LENDERS = 2;

/** Datacenters of a map in gdnsd 3 (gdnsd-plugin-geoip(8)). */
const MAX_DATACENTERS = 254;

const hasFamily = (family: Family) => (region: Region) => region.addresses.some((address) => address.family === family);

/** Returns the family that a region has no address of, if others in the list have one. */
function missingFamily(region: Region, regions: readonly Region[]): Family | undefined {
  return ([4, 6] as const).find((family) => !hasFamily(family)(region) && regions.some(hasFamily(family)));
}

/**
 * Returns the choices in the order of regions.
 *
 * @param order regions, the best first
 */
function choices(order: readonly Region[]): Region[] {
  return order.flatMap((region) => {
    const missing = missingFamily(region, order);
    if (missing === undefined) return [region];
    const lenders = order.filter(hasFamily(missing)).slice(0, LENDERS);
    const lent = lenders.map(({ name, addresses }) => ({
      ...region,
      // Names of regions have no underscore.
      name: `${region.name}_v${missing}_${name}`,
      addresses: [...region.addresses, ...addresses.filter(({ family }) => family === missing)],
    }));
    return [...lent, region];
  });
}

/** Returns what clients with one family only should know. */
export function familyWarnings(nodes: Nodes): string[] {
  return servicesOf(nodes).flatMap(({ name, regions }) =>
    regions.flatMap((region) =>
      ([4, 6] as const)
        .filter((family) => !hasFamily(family)(region))
        .map((family) => {
          const rest = regions.some(hasFamily(family)) ? 'are led to the next one that has' : 'get no address';
          return `${name}: region ${region.name} has no IPv${family} address; its clients with IPv${family} only ${rest}`;
        }),
    ),
  );
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
 * @throws AtlasError E_FAULT if a country of a node has no center; E_CONFIG if there are too many regions for gdnsd
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
  const maps = services.map((service) => mapOf(service, countries, centroids, position));
  return [
    { path: `${ZONES_DIR}/${nodes.zone}`, text: zoneText(nodes, services, title) },
    { path: 'config', text: configText(nodes, services, maps, title) },
  ];
}

const list = (names: readonly string[]): string => `[${names.join(', ')}]`;

/** The map of a service, and all its choices. */
interface ServiceMap {
  text: string;
  datacenters: Region[];
}

/** Returns the map of a service: continent, country, order of the choices. */
function mapOf(
  { id, regions }: Service,
  { byCode }: Countries,
  centroids: ReadonlyMap<string, Position>,
  position: (region: Region) => Position,
): ServiceMap {
  // In the order for clients without a country, and then what only other orders have.
  const all = new Map(choices(regions).map((choice) => [choice.name, choice]));
  const continents = new Map<string, string[]>();
  const continentOf = continentTable();
  for (const code of [...byCode.keys()].sort()) {
    const center = centroids.get(code);
    const continent = continentOf.get(code)?.code;
    if (center === undefined || continent === undefined) continue;
    const order = choices(byDistance(center, regions, position));
    for (const choice of order) all.set(choice.name, choice);
    const lines = continents.get(continent) ?? [];
    lines.push(`          ${code} => ${list(order.map(({ name }) => name))}`);
    continents.set(continent, lines);
  }
  const blocks = [...continents].sort().map(([code, lines]) => `        ${code} => {\n${lines.join('\n')}\n        }`);
  if (all.size > MAX_DATACENTERS) {
    const advice = 'give the nodes addresses of both families, or put several into one region';
    throw new AtlasError(
      'E_CONFIG',
      `gdnsd takes at most ${MAX_DATACENTERS} choices of a name, not ${all.size}; ${advice}`,
    );
  }
  const text = `    ${id} => {
      geoip2_db => ${GDNSD_DATABASE.replace('geoip/', '')}
      datacenters => ${list([...all.keys()])}
      map => {
${blocks.join('\n')}
      }
    }`;
  return { text, datacenters: [...all.values()] };
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

function resourceText({ id }: Service, { datacenters }: ServiceMap): string {
  return `    ${id} => {
      map => ${id}
      service_types => ${id}
      dcmap => {
${datacenters.map(regionText).join('\n')}
      }
    }`;
}

function configText({ options, check }: Nodes, services: Service[], maps: ServiceMap[], title: string): string {
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
${maps.map(({ text }) => text).join('\n')}
  }
  resources => {
${services.map((service, index) => resourceText(service, maps[index]!)).join('\n')}
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
    ZONE_MARK,
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
