/** Results in the middle of text, directly after each address or in its place. */
import { misuse } from '../errors.js';
import { type Addable, addable } from './members.js';

/** What takes the place of an address: texts, and a member of the result between each two. */
export interface Inline {
  add: Addable[];
  texts: readonly string[];
}

/** Parses a template such as `{address} ({country_code})`. @throws AtlasError E_USAGE for an unknown member, or one that is there twice */
export function parseTemplate(template: string, name: string): Inline {
  const parts = template.split(/\{([^{}]*)\}/);
  const add = parts.filter((_, index) => index % 2 === 1) as Addable[];
  const wrong = add.find((member, index) => !addable().includes(member) || add.indexOf(member) !== index);
  if (wrong !== undefined || add.length === 0) {
    const problem = wrong === undefined ? 'has no member' : `has {${wrong}}, which is no member, or there twice`;
    throw misuse(`${name} ${JSON.stringify(template)} ${problem}; members are ${addable().join(', ')}`);
  }
  if (/[\r\n]/.test(template)) throw misuse(`${name} has a line break, which would end the line`);
  return { add, texts: parts.filter((_, index) => index % 2 === 0) };
}

/** Returns the template of results in brackets after the address. */
export function bracketTemplate(add: readonly string[]): string {
  return `{address} [${add.map((member) => `{${member}}`).join(', ')}]`;
}

/** Returns how a template is filled, as a `ResultFormat`. What an address does not have is a dash. */
export function inlineFormat({ add, texts }: Inline) {
  const member = (name: Addable, value: unknown): string => `${texts[add.indexOf(name)]}${value ?? '-'}`;
  return { open: '', separator: '', close: texts.at(-1)!, none: '', member };
}
