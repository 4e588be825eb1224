/** One item of an array, while its tokens come in: the values of the fields, and how the text changes. */
import type { Token } from 'stream-json/core/parser.js';
import type { FieldRequest } from '../options.js';
import { type FieldValue, MISSING, NO_TEXT } from './results.js';

/** A member of the item's top level, from its key's quote to the end of its value. */
interface Member {
  key: string;
  start: number;
  end: number;
}

export class JsonItem {
  /** Position of its first character. */
  readonly start: number;
  readonly isObject: boolean;
  /** What was found for each field. Where a key stands twice, the last one counts, as JSON.parse has it. */
  readonly values: FieldValue[];
  readonly #fields: readonly FieldRequest[];
  readonly #members: Member[] = [];
  /** For each open bracket the key at hand; null in an array. */
  readonly #keys: (string | null)[] = [];

  constructor(start: number, first: Token, fields: readonly FieldRequest[]) {
    this.start = start;
    this.isObject = first.name === 'startObject';
    this.#fields = fields;
    this.values = fields.map(() => MISSING);
  }

  /**
   * @param key where the token is a key, what it says
   * @returns whether the item ends with this token
   */
  take(token: Token, start: number, end: number, key: string | undefined): boolean {
    switch (token.name) {
      case 'keyValue':
        this.#takeKey(key!, start);
        return false;
      case 'startObject':
      case 'startArray':
        this.#takeValue(NO_TEXT);
        this.#keys.push(null);
        return false;
      case 'endObject':
      case 'endArray':
        this.#keys.pop();
        break;
      default:
        this.#takeValue(token.name === 'stringValue' ? token.value : NO_TEXT);
    }
    // Every token that comes here ends a value.
    if (this.#keys.length === 1 && this.isObject) this.#members.at(-1)!.end = end;
    return this.#keys.length === 0;
  }

  #takeKey(key: string, start: number): void {
    const depth = this.#keys.length;
    this.#keys[depth - 1] = key;
    if (depth === 1) this.#members.push({ key, start, end: start });
    this.#fields.forEach(({ path }, index) => {
      if (this.#leadsTo(path)) this.values[index] = MISSING;
    });
  }

  #takeValue(value: FieldValue): void {
    this.#fields.forEach(({ path }, index) => {
      if (path.length === this.#keys.length && this.#leadsTo(path)) this.values[index] = value;
    });
  }

  /** Whether the keys at hand are a path's first. */
  #leadsTo(path: readonly string[]): boolean {
    return this.#keys.length <= path.length && this.#keys.every((key, depth) => key === path[depth]);
  }

  /**
   * Puts members last in the object; those that have one of their names already go.
   *
   * @param slice gives the item's text between two positions
   * @param end position behind the closing brace
   * @param added for each name, its member as text
   */
  withMembers(slice: (start: number, end: number) => string, end: number, added: ReadonlyMap<string, string>): string {
    const first = this.#members[0];
    // What stands in front of the first member also goes in front of ours: an indented object stays one.
    const lead = slice(this.start + 1, first?.start ?? end - 1);
    const tail = first === undefined ? '' : slice(this.#members.at(-1)!.end, end - 1);
    const kept = this.#keptMembers(slice, added);
    const members = kept === '' ? [...added.values()] : [kept, ...added.values()];
    return `{${members.map((member) => lead + member).join(',')}${tail}}`;
  }

  /** The members that stay, with all that stands between them. */
  #keptMembers(slice: (start: number, end: number) => string, added: ReadonlyMap<string, string>): string {
    const members = this.#members;
    if (members.length === 0) return '';
    if (!members.some(({ key }) => added.has(key))) return slice(members[0]!.start, members.at(-1)!.end);
    let text = '';
    members.forEach(({ key, start, end }, index) => {
      if (added.has(key)) return;
      // The separator in front comes along, unless nothing stands in front any more.
      text += slice(text === '' ? start : members[index - 1]!.end, end);
    });
    return text;
  }
}
