/** The lists of addresses that cloud operators publish, each in its own JSON format. */
import { readFileSync, statSync } from 'node:fs';
import { AtlasError, messageOf } from '../../src/errors.js';
import { jsonErrorPosition } from '../../src/json-file.js';
import { packageFile } from '../../src/package-root.js';
import { readConfigTable } from '../config/csv-table.js';

/** Largest list of addresses of a cloud operator in bytes (64 MiB), which is parsed in memory; the largest has 4 MB. */
const MAX_OPERATOR_LIST_BYTES = 67_108_864;

export type Operator = 'aws' | 'azure' | 'google' | 'oracle';

/** Country by operator and region, as `aws eu-west-1`. */
export type OperatorRegions = ReadonlyMap<string, string>;

/** Reads `data/reference/operator-regions.csv`. */
export function loadOperatorRegions(): OperatorRegions {
  const { rows } = readConfigTable(packageFile('data/reference/operator-regions.csv'), [
    'operator',
    'region',
    'country',
  ]);
  return new Map(rows.map(({ cells }) => [`${cells.operator} ${cells.region}`, cells.country]));
}

/** A prefix in an operator's list. */
export interface OperatorPrefix {
  /** CIDR block as text, not checked. */
  prefix: string;
  /** Empty if the list has none. */
  region: string;
  /** A part of the region that may be in another country; empty if the list has none. */
  zone: string;
  /** Whether it need not be in its region. */
  isElsewhere?: boolean;
}

/** A JSON value from outside: nothing about its form is certain. */
type Json = unknown;

function member(value: Json, key: string): Json {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, key)
    ? (value as Record<string, Json>)[key]
    : undefined;
}

function textOf(value: Json, key: string): string {
  const text = member(value, key);
  return typeof text === 'string' ? text : '';
}

function listOf(value: Json, key: string): Json[] {
  const list = member(value, key);
  return Array.isArray(list) ? list : [];
}

/** Returns the prefixes of each format; what has another form than documented is left out or empty. */
const READERS: Record<Operator, (list: Json) => OperatorPrefix[]> = {
  // https://docs.aws.amazon.com/vpc/latest/userguide/aws-ip-ranges.html. Prefixes of other services than EC2, such as the edge
  // locations of CloudFront, need not be in their region.
  aws: (list) =>
    [...listOf(list, 'prefixes'), ...listOf(list, 'ipv6_prefixes')].map((entry) => ({
      prefix: textOf(entry, 'ip_prefix') || textOf(entry, 'ipv6_prefix'),
      region: textOf(entry, 'region'),
      zone: textOf(entry, 'network_border_group'),
      isElsewhere: textOf(entry, 'service') !== 'EC2',
    })),
  // https://learn.microsoft.com/azure/virtual-network/service-tags-overview. The tags of regions have all prefixes of the
  // region; those of services repeat them.
  azure: (list) =>
    listOf(list, 'values')
      .filter((tag) => textOf(tag, 'name').startsWith('AzureCloud.'))
      .map((tag) => member(tag, 'properties'))
      .flatMap((properties) =>
        listOf(properties, 'addressPrefixes').map((prefix) => ({
          prefix: typeof prefix === 'string' ? prefix : '',
          region: textOf(properties, 'region'),
          zone: '',
        })),
      ),
  // https://cloud.google.com/vpc/docs/configure-private-google-access#ip-addr-defaults, cloud.json.
  google: (list) =>
    listOf(list, 'prefixes').map((entry) => ({
      prefix: textOf(entry, 'ipv4Prefix') || textOf(entry, 'ipv6Prefix'),
      region: textOf(entry, 'scope'),
      zone: '',
    })),
  // https://docs.oracle.com/iaas/Content/General/Concepts/addressranges.htm, public_ip_ranges.json.
  oracle: (list) =>
    listOf(list, 'regions').flatMap((entry) =>
      listOf(entry, 'cidrs').map((each) => ({
        prefix: textOf(each, 'cidr'),
        region: textOf(entry, 'region'),
        zone: '',
      })),
    ),
};

/**
 * Reads the list of a cloud operator.
 *
 * @param path the file; it is read into memory
 * @param name the file's name for messages
 * @throws AtlasError E_FETCH if the file cannot be read; E_BAD_INPUT if it is too large, not JSON, or has no prefixes
 */
export async function readOperatorPrefixes(path: string, name: string, operator: Operator): Promise<OperatorPrefix[]> {
  let text: string;
  try {
    if (statSync(path).size > MAX_OPERATOR_LIST_BYTES) {
      throw new AtlasError('E_BAD_INPUT', `${name} has more than ${MAX_OPERATOR_LIST_BYTES} bytes`);
    }
    text = readFileSync(path, 'utf8').replace(/^\ufeff/, '');
  } catch (error) {
    if (error instanceof AtlasError) throw error;
    throw new AtlasError('E_FETCH', `cannot read ${name}: ${messageOf(error)}`, { cause: error });
  }
  let list: Json;
  try {
    list = JSON.parse(text);
  } catch (error) {
    // The message of JSON.parse quotes the file, which may have control characters for the terminal.
    const position = await jsonErrorPosition(text);
    throw new AtlasError('E_BAD_INPUT', `${name}${position} is not JSON`, { cause: error });
  }
  const prefixes = READERS[operator](list);
  if (prefixes.length > 0) return prefixes;
  throw new AtlasError('E_BAD_INPUT', `${name} has no prefixes in the form of ${operator}'s list of addresses`);
}
