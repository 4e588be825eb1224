/** Collects the tokens of one item of an array: the values of the fields, and the positions of the members. */
import type { Token } from 'stream-json/core/parser.js';
import type { FieldRequest } from '../options.js';
import { type FieldValue, MISSING, NOT_TEXT } from './results.js';

/** A top-level member of the item, from the quote of its key to the end of its value. */
interface Member {
  key: string;
  start: number;
  end: number;
}

export class JsonItem {
  /** Position of its first character. */
  readonly start: number;
  readonly isObject: boolean;
  /** The value of each field. Of duplicate keys, the last one counts, as in JSON.parse. */
  readonly values: FieldValue[];
  readonly #fields: readonly FieldRequest[];
  readonly #members: Member[] = [];
  /** For each open bracket, the current key; null in an array. */
  readonly #keys: (string | null)[] = [];

  constructor(start: number, first: Token, fields: readonly FieldRequest[]) {
    this.start = start;
    this.isObject = first.name === 'startObject';
    this.#fields = fields;
    this.values = fields.map(() => MISSING);
  }

  /**
   * Adds the next token.
   *
   * @param key the text of the key if the token is a key
   * @returns whether the item ends with this token
   */
  add(token: Token, start: number, end: number, key: string | undefined): boolean {
    switch (token.name) {
      case 'keyValue':
        this.#addKey(key!, start);
        return false;
      case 'startObject':
      case 'startArray':
        this.#addValue(NOT_TEXT);
        this.#keys.push(null);
        return false;
      case 'endObject':
      case 'endArray':
        this.#keys.pop();
        break;
      default:
        this.#addValue(token.name === 'stringValue' ? token.value : NOT_TEXT);
    }
    // Every token that reaches this line ends a value.
    if (this.#keys.length === 1 && this.isObject) this.#members.at(-1)!.end = end;
    return this.#keys.length === 0;
  }

  #addKey(key: string, start: number): void {
    const depth = this.#keys.length;
    this.#keys[depth - 1] = key;
    if (depth === 1) this.#members.push({ key, start, end: start });
    this.#fields.forEach(({ path }, index) => {
      if (this.#isPrefixOf(path)) this.values[index] = MISSING;
    });
  }

  #addValue(value: FieldValue): void {
    this.#fields.forEach(({ path }, index) => {
      if (path.length === this.#keys.length && this.#isPrefixOf(path)) this.values[index] = value;
    });
  }

  /** Returns whether the current keys are the first keys of a path. */
  #isPrefixOf(path: readonly string[]): boolean {
    return this.#keys.length <= path.length && this.#keys.every((key, depth) => key === path[depth]);
  }

  /**
   * Returns the text of the object with members added at the end. Existing members with the same names are removed.
   *
   * @param slice returns the item's text between two positions
   * @param end position after the closing brace
   * @param added the text of each member, by its name
   */
  withMembers(slice: (start: number, end: number) => string, end: number, added: ReadonlyMap<string, string>): string {
    const first = this.#members[0];
    // The blanks before the first member are also put before the added ones, so an indented object stays indented.
    const lead = slice(this.start + 1, first?.start ?? end - 1);
    const tail = first === undefined ? '' : slice(this.#members.at(-1)!.end, end - 1);
    const kept = this.#keptMembers(slice, added);
    const members = kept === '' ? [...added.values()] : [kept, ...added.values()];
    return `{${members.map((member) => lead + member).join(',')}${tail}}`;
  }

  /** Returns the members that are kept, with the text between them. */
  #keptMembers(slice: (start: number, end: number) => string, added: ReadonlyMap<string, string>): string {
    const members = this.#members;
    if (members.length === 0) return '';
    if (!members.some(({ key }) => added.has(key))) return slice(members[0]!.start, members.at(-1)!.end);
    let text = '';
    members.forEach(({ key, start, end }, index) => {
      if (added.has(key)) return;
      // The comma before the member is kept unless it is now the first member.
      text += slice(text === '' ? start : members[index - 1]!.end, end);
    });
    return text;
  }
}
