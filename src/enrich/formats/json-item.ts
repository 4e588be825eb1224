/** Collects the tokens of one item of an array: the values of the fields, and the positions of the members. */
import type { Token } from 'stream-json/core/parser.js';
import { EACH, type PathStep } from '../field-path.js';
import type { FieldRequest } from '../options.js';
import { type FieldValue, MISSING, NOT_TEXT } from './results.js';

/** A member of an object, from the quote of its key to the end of its value. */
interface Member {
  key: string;
  start: number;
  end: number;
}

/** An object that results go into. */
interface ResultObject {
  /** Keys that lead to it. */
  keys: readonly string[];
  /** Position of its opening brace, and after its closing brace. */
  start: number;
  end: number;
  members: Member[];
}

/** A value of a field with several, and the keys and indexes that lead to it. */
interface Candidate {
  keys: PathStep[];
  value: FieldValue;
}

/** The text of a member that is added, by the field's target. */
export interface AddedMember {
  target: readonly string[];
  text: string;
}

type Slice = (start: number, end: number) => string;

function isSame(a: readonly unknown[], b: readonly unknown[]): boolean {
  return a.length === b.length && a.every((one, index) => one === b[index]);
}

export class JsonItem {
  /** Position of its first character. */
  readonly start: number;
  readonly isObject: boolean;
  readonly #fields: readonly FieldRequest[];
  /** The value of each field; of duplicate keys, the last one counts, as in JSON.parse. */
  readonly #values: FieldValue[];
  /** For each field whose path has the step EACH, its values. */
  readonly #candidates: (Candidate[] | undefined)[];
  /** The objects that results go into; of duplicate keys, the last one. */
  #objects: ResultObject[] = [];
  /** Open brackets around the members of the innermost object that results go into. */
  readonly #deepest: number;
  /** For each open bracket, the current key or the index of the current element; null before the first key. */
  readonly #keys: (string | number | null)[] = [];

  constructor(start: number, first: Token, fields: readonly FieldRequest[]) {
    this.start = start;
    this.isObject = first.name === 'startObject';
    this.#fields = fields;
    this.#values = fields.map(() => MISSING);
    this.#deepest = Math.max(...fields.map(({ target }) => target.length));
    this.#candidates = fields.map(({ path }) => (path.includes(EACH) ? [] : undefined));
  }

  /** Returns the values of each field, in order: one, or any number for a path with the step EACH. */
  get values(): FieldValue[][] {
    return this.#values.map((value, index) => this.#candidates[index]?.map((one) => one.value) ?? [value]);
  }

  /**
   * Adds the next token.
   *
   * @param key the text of the key if the token is a key
   * @returns whether the item ends with this token
   */
  add(token: Token, start: number, end: number, key: string | undefined): boolean {
    const keys = this.#keys;
    if (token.name === 'keyValue') {
      this.#addKey(key!, start);
      return false;
    }
    if (token.name === 'endObject' || token.name === 'endArray') {
      keys.pop();
      if (token.name === 'endObject') this.#endObject(end);
    } else {
      this.#nextElement();
      this.#addValue(token.name === 'stringValue' ? token.value : NOT_TEXT);
      if (token.name === 'startObject') this.#startObject(start);
      if (token.name === 'startObject' || token.name === 'startArray') {
        keys.push(token.name === 'startArray' ? -1 : null);
        return false;
      }
    }
    this.#endMember(end);
    return keys.length === 0;
  }

  /** Counts an element if the innermost open bracket is that of an array. */
  #nextElement(): void {
    const last = this.#keys.at(-1);
    if (typeof last === 'number') this.#keys[this.#keys.length - 1] = last + 1;
  }

  #addKey(key: string, start: number): void {
    const keys = this.#keys;
    keys[keys.length - 1] = key;
    this.#fields.forEach(({ path }, index) => {
      if (this.#leadsTo(path)) this.#values[index] = MISSING;
    });
    for (const candidates of this.#candidates) {
      // What an earlier member with the same key led to was found last.
      while (candidates !== undefined && candidates.length > 0 && this.#leadsTo(candidates.at(-1)!.keys))
        candidates.pop();
    }
    if (keys.length < this.#deepest) {
      this.#objects = this.#objects.filter((object) => object.keys.length < keys.length || !this.#leadsTo(object.keys));
    }
    this.#innermostObject()?.members.push({ key, start, end: start });
  }

  #addValue(value: FieldValue): void {
    const keys = this.#keys;
    this.#fields.forEach(({ path }, index) => {
      if (path.length !== keys.length || !this.#leadsTo(path)) return;
      this.#values[index] = value;
      this.#candidates[index]?.push({ keys: [...(keys as PathStep[])], value });
    });
  }

  /** Returns whether the current keys and indexes are the first steps of a path. */
  #leadsTo(path: readonly PathStep[]): boolean {
    const keys = this.#keys;
    return (
      keys.length <= path.length &&
      keys.every((key, depth) => key === path[depth] || (typeof key === 'number' && path[depth] === EACH))
    );
  }

  #startObject(start: number): void {
    if (this.#keys.length >= this.#deepest) return;
    const isWanted = ({ target }: FieldRequest): boolean => isSame(this.#keys, target.slice(0, -1));
    // The item itself is noted in any case.
    if (this.#keys.length > 0 && !this.#fields.some(isWanted)) return;
    this.#objects.push({ keys: [...this.#keys] as string[], start, end: start, members: [] });
  }

  /** Returns the object that results go into if the current key is directly in it. */
  #innermostObject(): ResultObject | undefined {
    if (this.#keys.length > this.#deepest) return undefined;
    const outer = this.#keys.slice(0, -1);
    return this.#objects.find(({ keys }) => isSame(keys, outer));
  }

  #endObject(end: number): void {
    if (this.#keys.length >= this.#deepest) return;
    const object = this.#objects.find(({ keys }) => isSame(keys, this.#keys));
    if (object !== undefined) object.end = end;
  }

  /** Ends a value: the current member, if it is directly in an object that results go into. */
  #endMember(end: number): void {
    const member = this.#innermostObject()?.members.at(-1);
    if (member !== undefined && this.#keys.length > 0) member.end = end;
  }

  /**
   * Returns the text of the item with members added at the ends of the objects that they go into. Existing members with the
   * same keys are removed.
   *
   * @param slice returns the item's text between two positions
   */
  withMembers(slice: Slice, added: readonly AddedMember[]): string {
    return this.#object(slice, added, this.#objects.find(({ keys }) => keys.length === 0)!);
  }

  /** Returns the text between two positions, with the members that are added to the objects in it. */
  #copy(slice: Slice, added: readonly AddedMember[], start: number, end: number, inside: ResultObject): string {
    const inner = this.#objects.filter((one) => one !== inside && one.start >= start && one.end <= end);
    // Outermost first: an object in another one is copied with it.
    inner.sort((a, b) => a.start - b.start || b.end - a.end);
    let text = '';
    let from = start;
    for (const object of inner) {
      if (object.start < from) continue;
      text += slice(from, object.start) + this.#object(slice, added, object);
      from = object.end;
    }
    return text + slice(from, end);
  }

  #object(slice: Slice, added: readonly AddedMember[], object: ResultObject): string {
    const { start, end, members } = object;
    const own = added.filter(({ target }) => isSame(target.slice(0, -1), object.keys));
    const keys = new Set(own.map(({ target }) => target.at(-1)!));
    const copy = (from: number, to: number): string => this.#copy(slice, added, from, to, object);
    const first = members[0];
    // The blanks before the first member are also put before the added ones, so an indented object stays indented.
    const lead = slice(start + 1, first?.start ?? end - 1);
    const tail = first === undefined ? '' : slice(members.at(-1)!.end, end - 1);
    let kept = '';
    members.forEach((member, index) => {
      if (keys.has(member.key)) return;
      // The comma before the member is kept unless it is now the first member.
      kept += copy(kept === '' ? member.start : members[index - 1]!.end, member.end);
    });
    const texts = own.map(({ text }) => text);
    const all = kept === '' ? texts : [kept, ...texts];
    return `{${all.map((member) => lead + member).join(',')}${tail}}`;
  }
}
