/** The names of fields, columns and labels that say whose an address is: data/address-names.json. */

/** Roles of names. An address without one is better than an untrusted one, and worse than the client's. */
export const ROLES = ['client', 'untrusted', 'server', 'machine', 'never'] as const;
export type Role = (typeof ROLES)[number];

/** Texts of the lines of a log that say which of their addresses is meant; see schemas/logs.schema.json. */
export interface Grammar {
  /** A line in a file of several logs has this grammar if the program in its header of syslog begins with one of these. */
  programs?: readonly string[];
  untrusted?: readonly string[];
  rest?: readonly string[];
  texts?: { [R in Role | 'own']?: readonly string[] };
}

/** Names in lower case, without separators. Those of the client are in their order, the best first. */
export interface AddressNames extends Record<Role | 'message' | 'remark' | 'shipper', readonly string[]> {
  /** Names that have a role in text only. */
  labels: { [R in Role]?: readonly string[] };
  /** Texts that have a role in any line. */
  grammar: Grammar;
}

/** The place of the worst name of a client in the order of names; of a name without a role, and of the other roles. */
export const RANKS = { unnamed: 10_000, untrusted: 20_000, server: 30_000, machine: 40_000, never: 50_000 };

/** What separates the parts of a path, and the words of a name. */
const KEYS = /[.:/]/;
const WRAPPER = /^_source\./;
const WORDS = /[^\p{L}\p{N}]+/u;
/** Names that say that there is an address, and not whose. */
const BARE = /^(?:ip(?:v[46])?)?(?:addr|address|addresses|s)?\d*$/;
/** The end of a name that says that there is an address; names are listed with a short one. */
const ENDING = /(?:ip(?:v?[46])?)?(?:addr|address|addresses)$|ip(?:v?[46])?s?$/;
/** Most characters of a name that are looked at. */
const MAX_NAME = 1000;

function wordsOf(name: string): string[] {
  return name
    .replace(WRAPPER, '')
    .replace(/([a-z])(?=[A-Z])/g, '$1 ')
    .toLowerCase()
    .split(WORDS)
    .flatMap((word) => (/\d/.test(word) ? [word, word.replace(/\d+/g, '')] : [word]));
}

/** Returns a name as it is in the lists. */
export function plainName(name: string): string {
  return name.toLowerCase().replace(/[^\p{L}\p{N}]/gu, '');
}

/** Returns the keys of a path, without elements, and without the one in which Elasticsearch puts all fields. */
export function keysOf(path: string): string[] {
  return path
    .replace(WRAPPER, '')
    .replace(/\\(.)/g, '$1')
    .replace(/\[\d*\]/g, '')
    .split(KEYS);
}

/** The sets and places of names, made once for each table. */
const tables = new WeakMap<AddressNames, Record<Role, ReadonlyMap<string, number>>>();

function tableOf(names: AddressNames): Record<Role, ReadonlyMap<string, number>> {
  const found = tables.get(names);
  if (found !== undefined) return found;
  const entries = ROLES.map((role) => [role, new Map(names[role].map((name, at) => [name, at]))]);
  const table = Object.fromEntries(entries) as Record<Role, ReadonlyMap<string, number>>;
  tables.set(names, table);
  return table;
}

/** Returns the place of a name among those of the client: as it is, without numbers, or as that of an IP address. */
function placeOf(name: string, client: ReadonlyMap<string, number>): number | undefined {
  const short = `${name.slice(-MAX_NAME).replace(ENDING, '')}ip`;
  return (
    client.get(name) ?? client.get(name.replace(/\d+/g, '')) ?? (ENDING.test(name) ? client.get(short) : undefined)
  );
}

/** Returns whether a key is a name of the client, and not only one of its words. */
export function isClientKey(path: string, names: AddressNames): boolean {
  const { client } = tableOf(names);
  const key = path.slice(-MAX_NAME).split(KEYS).at(-1)!;
  return (
    placeOf(plainName(keysOf(path).at(-1)!), client) !== undefined || wordsOf(key).every((word) => client.has(word))
  );
}

/** Returns whether a field is that of what writes or carries a message; `isSure`: or one beside it with a name that may be the client's. */
export function isShipper(path: string, { shipper, client }: AddressNames, isSure: boolean): boolean {
  const keys = keysOf(path.slice(-MAX_NAME)).map(plainName);
  const hasOwner = keys.slice(0, -1).some((key) => shipper.includes(key) && !client.includes(key));
  if ((isSure || hasOwner) && shipper.includes(keys.at(-1)!)) return true;
  const parts = [...keys, ...wordsOf(path.slice(-MAX_NAME))];
  return (
    parts.some((part) => shipper.includes(part)) && parts.every((part) => !client.includes(part) || BARE.test(part))
  );
}

/**
 * Returns the place of a field in the order of names; lower is better, that of a client is below {@link RANKS}.unnamed. Its path counts
 * as a whole, without its first keys, and by its words.
 */
export function rankOf(path: string, names: AddressNames): number {
  const { client, untrusted, server, machine, never } = tableOf(names);
  const keys = keysOf(path.slice(-MAX_NAME)).map(plainName);
  // The last keys, joined: as many as a name of the table can have.
  const tails = keys.slice(-4).map((_, at, last) => last.slice(at).join(''));
  const whole = keys.length <= 4 ? tails[0]! : keys.join('');
  const has = (list: ReadonlyMap<string, number>, parts: readonly string[]): boolean =>
    parts.some((one) => list.has(one));
  if (has(untrusted, tails) || tails.some((one) => names.labels.untrusted?.includes(one))) return RANKS.untrusted;
  const place = placeOf(whole, client);
  if (place !== undefined) return place;
  const name = keys.at(-1)!;
  if (machine.has(whole) || (name.endsWith('ip') && machine.has(name))) return RANKS.machine;
  const words = wordsOf(path.slice(-MAX_NAME));
  const lastWords = wordsOf(path.slice(-MAX_NAME).split(KEYS).at(-1)!);
  if (has(never, lastWords)) return RANKS.never;
  const parts = [...tails, ...words];
  const last = keys.length > 1 && name.startsWith('client') ? placeOf(name, client) : undefined;
  if (last !== undefined) return last;
  if (has(server, parts)) return RANKS.server;
  const places = parts.flatMap((part) => client.get(part) ?? []);
  // An address of something that has no name here is worse than any with one: the one at data.ip than at data.remote_address.
  const isBare = places.length > 0 && keys.length > 1 && parts.every((part) => !client.has(part) || BARE.test(part));
  if (places.length > 0) return (isBare ? 2 : 1) * client.size + Math.min(...places);
  return has(machine, words) ? RANKS.machine : RANKS.unnamed;
}

/** What says which address of a text is meant: the names of all texts, and the grammars of logs. */
export interface TextRoles {
  names: AddressNames;
  grammars: readonly Grammar[];
}
