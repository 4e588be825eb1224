/**
 * The rules of forward auth: a proxy asks before each request whether its client may go on. A rule is fixed when the server
 * starts, `NAME=allow:LIST` or `NAME=deny:LIST`, with `;private=deny` and `;fail=open`.
 */
import { continentTable } from '../country/continents.js';
import { type CountryList, isListed, parseCountryList } from '../country/memberships.js';
import { knownKinds, type Manifest } from '../database/release.js';
import { misuse } from '../errors.js';
import { KIND_VALUES } from '../rangefile/partitions.js';
import type { ServedRelease } from './releases/served-release.js';

export interface GateRule {
  name: string;
  /** Whether the clients in the list are let in, or those that are not. */
  allows: boolean;
  countries: CountryList;
  /** Numbers of autonomous systems in the list. */
  asns: ReadonlySet<number>;
  /** Kinds of networks in the list. */
  kinds: ReadonlySet<string>;
  /** Whether addresses without a country are in the list. */
  hasNone: boolean;
  /** Whether clients with an address that is not of the Internet are let in. */
  allowsPrivate: boolean;
  /** Whether clients are let in while no database is loaded. */
  failsOpen: boolean;
}

/** Why an address is of a private client: it is not routed on the Internet. */
const PRIVATE_REASONS = ['private', 'shared', 'loopback', 'link_local'];

/** What a rule says about an address, and the headers that say what is known of it. */
export interface GateDecision {
  isAllowed: boolean;
  headers: readonly string[];
}

/** The headers of what is not known. All are always sent, so that none that the client sent survives. */
export const UNKNOWN_HEADERS: readonly string[] = ['x-country-code', '', 'x-in-eu', '', 'x-asn', ''];

/**
 * Parses a rule.
 *
 * @throws AtlasError E_USAGE if it is not one, or has an unknown code
 */
export function parseGateRule(text: string): GateRule {
  const bad = (problem: string): never => {
    throw misuse(
      `--forward-auth ${JSON.stringify(text)}: ${problem}; write NAME=allow:LIST or NAME=deny:LIST, such as shop=allow:EU,CH`,
    );
  };
  const [, name = '', action = '', list = '', rest = ''] =
    /^([\w.-]{1,64})=(allow|deny):([^;]*)((?:;[^;]*)*)$/.exec(text) ?? bad('it is not a rule');
  const options = rest.split(';').slice(1);
  for (const [index, option] of options.entries()) {
    if (!/^(private=(allow|deny)|fail=(open|closed))$/.test(option)) bad(`${JSON.stringify(option)} is no option`);
    const key = option.split('=')[0]!;
    if (options.findIndex((one) => one.startsWith(key)) < index) bad(`${key} is there twice`);
  }
  const asns = new Set<number>();
  const kinds = new Set<string>();
  const countries: string[] = [];
  let hasNone = false;
  for (const word of list.split(',').map((part) => part.trim())) {
    const [, asn] = /^AS(\d{1,10})$/i.exec(word) ?? [];
    const kind = /^kind:(.*)$/i.exec(word)?.[1]?.toLowerCase();
    if (/^none$/i.test(word)) hasNone = true;
    else if (asn !== undefined && Number(asn) < 2 ** 32) asns.add(Number(asn));
    else if (kind !== undefined && KIND_VALUES.includes(kind)) kinds.add(kind);
    else if (kind !== undefined) bad(`${word} is no kind of network; there are ${KIND_VALUES.join(', ')}`);
    else countries.push(word);
  }
  const parsed = parseCountryList(countries, `--forward-auth ${name}`);
  const known = continentTable();
  for (const code of parsed.codes) if (!known.has(code)) bad(`${code} is not a country`);
  return {
    ...{ name, allows: action === 'allow', countries: parsed, asns, kinds, hasNone },
    allowsPrivate: !options.includes('private=deny'),
    failsOpen: options.includes('fail=open'),
  };
}

/** Returns what keeps a rule from being applied, so that it lets nobody in, as a phrase; undefined if nothing does. */
export function ruleProblem({ name, asns, kinds }: GateRule, manifest: Manifest): string | undefined {
  const rule = `--forward-auth ${name} names`;
  const release = `the release ${manifest.id} has`;
  if (asns.size > 0 && manifest.counts.networks === undefined) return `${rule} networks, and ${release} none`;
  const known = knownKinds(manifest);
  const unknown = [...kinds].find((kind) => !known.has(kind));
  return unknown && `${rule} kind:${unknown}, and ${release} no list of that kind, or not all that are configured`;
}

/** Returns the function that applies a rule to an address, with the answers of a release. */
function prepare(rule: GateRule, release: ServedRelease): (ip: string) => GateDecision | undefined {
  const { allows, countries, asns, kinds, hasNone, allowsPrivate } = rule;
  const asked = [...(release.database.hasNetworks ? ['asn'] : []), ...(kinds.size > 0 ? ['kind'] : [])];
  const search = release.search(['country_code', 'is_eu', 'reason', ...asked]);
  const country = search.each(['country_code', 'is_eu', 'reason'], ({ country_code, is_eu, reason }) => {
    const code = country_code as string | null;
    return {
      isPrivate: PRIVATE_REASONS.includes(String(reason)),
      isInList: code === null ? hasNone : isListed(countries, code, is_eu === true, release.asOf),
      code: code ?? '',
      isEu: code === null ? '' : String(is_eu),
    };
  });
  const network = search.each(['asn'], ({ asn }) => ({ isInList: asns.has(asn as number), asn: String(asn ?? '') }));
  const kindOf = search.each(['kind'], ({ kind }) => ({ isInList: kinds.has(kind as string) }));
  const isBlind = ruleProblem(rule, release.database.manifest) !== undefined;
  return (ip) => {
    if (!search.find(ip)) return undefined;
    const where = country();
    const who = network();
    const isInList = where.isInList || who.isInList || kindOf().isInList;
    const isAllowed = !isBlind && (where.isPrivate ? allowsPrivate : isInList === allows);
    return { isAllowed, headers: ['x-country-code', where.code, 'x-in-eu', where.isEu, 'x-asn', who.asn] };
  };
}

/** Returns what a rule says about an address, by a release; undefined if the text is no address. */
export type Gate = (ip: string, release: ServedRelease) => GateDecision | undefined;

/** Returns the function that applies a rule. It is prepared once for each release. */
export function gateOf(rule: GateRule): Gate {
  let prepared: { release: ServedRelease; decide: ReturnType<typeof prepare> } | undefined;
  return (ip, release) => {
    if (prepared?.release !== release) prepared = { release, decide: prepare(rule, release) };
    return prepared.decide(ip);
  };
}
