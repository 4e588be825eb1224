/**
 * The members that a result can have, and the field names of other systems for them.
 *
 * Sources of the names: Elastic Common Schema 9 (`geo`, `as` and the objects that reuse them), and the attribute registry of OpenTelemetry's
 * semantic conventions, in which AS numbers have no name.
 */
import { type AtlasError, misuse } from '../errors.js';
import { LABELS, otherPartitions, type Partition } from '../rangefile/partitions.js';

/** The members that a result can have, in the order of messages. The others are labels, whose names only the release knows. */
const MEMBERS = [
  'country',
  'country_code',
  'is_eu',
  'is_eea',
  'continent',
  'asn',
  'as_name',
  'anycast',
  'kind',
  'operator',
  'network',
  'reason',
  'confidence',
  'address',
  'release_date',
] as const;
export type Addable = (typeof MEMBERS)[number];

/** Returns the members that a result can have, besides labels. */
export function addable(): Addable[] {
  const more = otherPartitions().flatMap(({ members }) => members as Addable[]);
  return [...new Set([...MEMBERS, ...more])];
}

/** Returns whether a member is a label. */
export function isLabel(name: Addable): boolean {
  return !addable().includes(name);
}

/**
 * Returns the partition besides the countries that answers a member; undefined if none does.
 *
 * @param labels those of the release, which come before members of the same names
 */
export function otherPartitionOf(name: Addable, labels: readonly string[] = []): Partition | undefined {
  if (labels.includes(name) || isLabel(name)) return LABELS;
  return otherPartitions().find(({ members }) => members.includes(name));
}

/** Returns the partitions besides the countries that answer some of the members, in the order of the table. */
export function otherPartitionsOf(names: readonly Addable[], labels: readonly string[] = []): Partition[] {
  const asked = names.map((name) => otherPartitionOf(name, labels));
  return otherPartitions().filter((partition) => asked.includes(partition));
}

/** Returns the error for members that results cannot have. @param labels those of the release */
export function addError(add: readonly string[], labels: readonly string[]): AtlasError {
  const given = JSON.stringify(add.join(','));
  return misuse(`cannot add ${given}; choose from ${[...new Set([...addable(), ...labels])].join(', ')}, each once`);
}

export const SCHEMA_NAMES = ['ecs', 'otel'] as const;
export type SchemaName = (typeof SCHEMA_NAMES)[number];

/** The object of a result whose field does not name one. */
export const DEFAULT_ROOT = 'source';

/** The names, as paths below the object that describes a host, such as `source`. */
const SCHEMAS: Record<SchemaName, { readonly [Name in Addable]?: string }> = {
  ecs: {
    country: 'geo.country_name',
    country_code: 'geo.country_iso_code',
    continent: 'geo.continent_code',
    asn: 'as.number',
    as_name: 'as.organization.name',
    address: 'ip',
  },
  otel: {
    country_code: 'geo.country.iso_code',
    continent: 'geo.continent.code',
    address: 'address',
  },
};

/** Returns the members that a schema has a name for. */
export function membersOf(schema: SchemaName): Addable[] {
  return Object.keys(SCHEMAS[schema]) as Addable[];
}

/** Returns the keys that lead to a member. */
export function schemaPath(schema: SchemaName, member: Addable): string[] {
  return SCHEMAS[schema][member]!.split('.');
}

/**
 * Returns the members to add under a schema.
 *
 * @param add those asked for
 * @param isDefault whether nothing was asked for; then members without a name are left out
 * @throws AtlasError E_USAGE for a member that the schema has no name for
 */
export function checkSchema(schema: SchemaName, add: readonly Addable[], isDefault: boolean): Addable[] {
  const known = membersOf(schema);
  const unknown = add.find((name) => !known.includes(name));
  if (unknown !== undefined && !isDefault) {
    throw misuse(`${schema} has no field for ${unknown}; it has fields for ${known.join(', ')}`);
  }
  return add.filter((name) => known.includes(name));
}
