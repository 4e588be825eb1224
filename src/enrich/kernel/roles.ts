/** Places the table of roles, by which the kernel chooses among the addresses of a text; see assembly/roles.ts. */
import { type AddressNames, type Grammar, ROLES, type Role, type TextRoles } from '../address-names.js';
import * as abi from './abi.js';
import type { MemoryPlan } from './memory-plan.js';

const NUMBERS: Record<Role | 'own', number> = {
  own: abi.ROLE_OWN,
  client: abi.ROLE_CLIENT,
  untrusted: abi.ROLE_UNTRUSTED,
  server: abi.ROLE_SERVER,
  machine: abi.ROLE_MACHINE,
  never: abi.ROLE_NEVER,
};

/** Returns the hash of a name, from its end, as the kernel computes it: FNV-1a, 32 bits. */
function hashOf(name: string): number {
  return [...Buffer.from(name)].reduceRight((hash, byte) => Math.imul(hash ^ byte, 0x0100_0193), 0x811c_9dc5) >>> 0;
}

function placeNames(plan: MemoryPlan, { labels, ...names }: AddressNames) {
  const entries = ROLES.flatMap((role) =>
    [...names[role], ...(labels[role] ?? [])].map((name) => [hashOf(name), NUMBERS[role]] as const),
  );
  const mask = 2 ** Math.ceil(Math.log2(2 * entries.length)) - 1;
  const table = new Uint32Array((2 * abi.NAME_BYTES * (mask + 1)) / 8);
  for (const [hash, number] of entries) {
    let slot = hash & mask;
    while (table[2 * slot] !== 0) slot = (slot + 1) & mask;
    table.set([hash, number], 2 * slot);
  }
  return { roleNames: plan.place(table), roleNamesMask: mask };
}

/** Returns texts as the kernel reads them, each after bytes with its length and others. */
function list(texts: readonly { text: string; role?: number }[]): Buffer {
  const bytes = texts.map(({ text, role }) => {
    const own = Buffer.from(text);
    return Buffer.concat([Buffer.from(role === undefined ? [own.length] : [own.length, role]), own]);
  });
  return Buffer.concat([...bytes, Buffer.from([0])]);
}

function placeGrammar(plan: MemoryPlan, { programs, untrusted, rest, texts = {} }: Grammar): number[] {
  const place = (some: readonly string[] = []): number => plan.place(list(some.map((text) => ({ text }))));
  const labelled = Object.entries(texts).flatMap(([role, own]) =>
    own.map((text) => ({ text, role: NUMBERS[role as Role] })),
  );
  return [place(programs), place(untrusted), place(rest), plan.place(list(labelled)), place(texts.own)];
}

/** Places the roles; returns the settings. */
export function placeRoles(plan: MemoryPlan, roles: TextRoles | undefined): Record<string, number> {
  const none = { hasRoles: 0, roleNames: 0, roleNamesMask: 0, generalTexts: 0, grammars: 0, grammarCount: 0 };
  if (roles === undefined) return none;
  const { names, grammars } = roles;
  return {
    ...placeNames(plan, names),
    hasRoles: 1,
    generalTexts: plan.place(Uint32Array.from(placeGrammar(plan, names.grammar))),
    grammars: plan.place(Uint32Array.from(grammars.flatMap((grammar) => placeGrammar(plan, grammar)))),
    grammarCount: grammars.length,
  };
}
