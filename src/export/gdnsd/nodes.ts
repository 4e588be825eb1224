/** Reads `nodes.json`: the servers that DNS routes to. */
import { formatAddress } from '../../address/format.js';
import { type Family, parseAddress } from '../../address/parse.js';
import { configError } from '../../errors.js';
import { readJsonFile } from '../../json-file.js';
import { compileSchema, describeSchemaErrors } from '../../schema-errors.js';
import type { CountryRecord } from '../ranges.js';

export interface Node {
  name: string;
  /** Nodes of one region share its clients, and are in one country. */
  region: string;
  /** ISO 3166-1 alpha-2. */
  country: string;
  /** Whether it is a server of the EU base address. */
  eu: boolean;
  addresses: NodeAddress[];
}

export interface NodeAddress {
  family: Family;
  /** Dotted decimal, or RFC 5952. */
  text: string;
}

export interface NameServer {
  /** Absolute, without the final dot. */
  name: string;
  /** Its addresses if its name is in the zone; else empty. */
  addresses: NodeAddress[];
}

export interface HealthCheck {
  port: number;
  /** Seconds. */
  interval: number;
  /** Seconds. */
  timeout: number;
  /** Failed checks in a row after which a node is out, and passed checks after which it is in again. */
  failures: number;
  successes: number;
}

export interface Nodes {
  zone: string;
  hostmaster: string;
  nameservers: NameServer[];
  /** Relative to the zone, or `@`. */
  names: { default: string; eu?: string };
  /** Seconds. */
  ttl: number;
  check: HealthCheck;
  options: Record<string, string | number | boolean | string[]>;
  nodes: Node[];
}

/** What the file has, checked by its schema, which also has the defaults. */
type NodesFile = Omit<Nodes, 'nameservers' | 'nodes'> & {
  nameservers: { name: string; addresses?: string[] }[];
  nodes: (Omit<Node, 'region' | 'addresses'> & { region?: string; addresses: string[] })[];
};

/** Options of gdnsd that the generator sets itself. */
const OWN_OPTIONS = ['edns_client_subnet'];

/** The countries of a release: whether each is in the European Union on the release's date. */
export interface Countries {
  /** `YYYY-MM-DD`. */
  asOf: string;
  byCode: ReadonlyMap<string, CountryRecord>;
}

/**
 * Reads and checks a file of nodes.
 *
 * @param path of the file
 * @param countries of the release that routes
 * @throws AtlasError E_CONFIG with all problems, one a line
 */
export async function readNodes(path: string, countries: Countries): Promise<Nodes> {
  const value = await readJsonFile(path, 'the file of nodes');
  const invalid = (problems: readonly string[]) => configError(problems.map((problem) => `${path}: ${problem}`));
  const isValid = compileSchema<NodesFile>(['nodes'], { useDefaults: true });
  if (!isValid(value)) throw invalid(describeSchemaErrors(isValid.errors!));
  const problems: string[] = [];
  const nodes = complete(value, problems);
  checkNames(nodes, problems);
  checkCountries(nodes, countries, problems);
  if (problems.length > 0) throw invalid(problems);
  return nodes;
}

/** Parses the addresses. */
function complete(file: NodesFile, problems: string[]): Nodes {
  const seen = new Map<string, string>();
  const addresses = (texts: readonly string[], owner: string): NodeAddress[] =>
    texts.flatMap((text) => {
      const address = parseNodeAddress(text);
      if (address === undefined) problems.push(`${owner}: ${JSON.stringify(text)} is not the address of a server`);
      else if (seen.has(address.text)) problems.push(`${owner}: ${seen.get(address.text)} also has ${address.text}`);
      else seen.set(address.text, owner);
      return address === undefined ? [] : [address];
    });
  const nodes = file.nodes.map((node) => {
    return { ...node, region: node.region ?? node.name, addresses: addresses(node.addresses, `node ${node.name}`) };
  });
  seen.clear();
  const nameservers = file.nameservers.map(({ name, addresses: texts = [] }) => {
    return { name, addresses: addresses(texts, `name server ${name}`) };
  });
  return { ...file, nameservers, nodes };
}

const words = new Uint32Array(4);

/** Parses the address of one host: not `0.0.0.0`, `::`, or a multicast or broadcast address. */
function parseNodeAddress(text: string): NodeAddress | undefined {
  const family = parseAddress(text, words);
  if (family === 0) return undefined;
  const first = words[0]!;
  const isGroup = family === 4 ? first >>> 28 >= 14 : first >>> 24 === 0xff;
  const isUnspecified = family === 4 ? first === 0 : words.every((word) => word === 0);
  return isGroup || isUnspecified ? undefined : { family, text: formatAddress(family, words) };
}

function isInZone(name: string, zone: string): boolean {
  return name === zone || name.endsWith(`.${zone}`);
}

function checkNames({ zone, nameservers, names, nodes, check, options }: Nodes, problems: string[]): void {
  const twice = (texts: string[]): string[] => texts.filter((text, index) => texts.indexOf(text) < index);
  for (const name of twice(nodes.map((node) => node.name))) problems.push(`two nodes have the name ${name}`);
  for (const name of twice(nameservers.map((server) => server.name)))
    problems.push(`name server ${name} is listed twice`);
  if (names.default === names.eu) problems.push('names.default and names.eu must differ');
  for (const { name, addresses } of nameservers) {
    if (isInZone(name, zone) !== addresses.length > 0) {
      problems.push(
        isInZone(name, zone)
          ? `name server ${name} is in the zone, so it needs addresses`
          : `name server ${name} is not in the zone, so its addresses cannot be in it`,
      );
    }
    for (const own of [names.default, names.eu]) {
      if (own !== undefined && name === (own === '@' ? zone : `${own}.${zone}`)) {
        problems.push(`name server ${name} has the name that clients use`);
      }
    }
  }
  if (names.eu !== undefined && !nodes.some(({ eu }) => eu)) {
    problems.push('names.eu is given, but no node has "eu": true');
  }
  if (names.eu === undefined && nodes.some(({ eu }) => eu))
    problems.push('there are nodes with "eu": true, but no names.eu');
  if (check.timeout >= check.interval) problems.push('check.timeout must be less than check.interval');
  for (const option of OWN_OPTIONS) {
    if (Object.hasOwn(options, option)) problems.push(`options.${option} is set by ipatlas; remove it`);
  }
}

function checkCountries({ nodes }: Nodes, { asOf, byCode }: Countries, problems: string[]): void {
  const regions = new Map<string, Node>();
  for (const node of nodes) {
    const { name, region, country, eu } = node;
    const record = byCode.get(country);
    if (record === undefined) problems.push(`node ${name}: the release has no country ${country}`);
    else if (eu && !record.isEu) {
      problems.push(
        `node ${name}: "eu" is true, but ${record.name} (${country}) is not in the European Union as of ${asOf}`,
      );
    }
    const first = regions.get(region);
    if (first === undefined) regions.set(region, node);
    else if (first.country !== country) {
      problems.push(`region ${region}: node ${first.name} is in ${first.country}, node ${name} in ${country}`);
    }
  }
}
