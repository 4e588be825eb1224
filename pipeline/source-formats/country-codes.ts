/** The country codes of a source, numbered in order of first use. */
import { MAX_CODES_PER_SOURCE, MAX_COUNTRY_CODE_LENGTH } from '../../src/limits.js';

export class CountryCodes {
  /** Upper case; no code at all is the empty text. */
  readonly codes: string[] = [];
  /** Index by text as written in the file, so that a code is normalized once. */
  readonly #byText = new Map<string, number>();

  /** Returns the index of a code, or the reason why the text is not a country code. */
  index(text: string): number | string {
    const known = this.#byText.get(text);
    if (known !== undefined) return known;
    const trimmed = text.trim();
    // Before it is in upper case: that of "ß" is "SS", which is South Sudan.
    if (trimmed.length > MAX_COUNTRY_CODE_LENGTH || !/^[A-Za-z0-9?*/_-]*$/.test(trimmed)) {
      return 'the country is not a country code';
    }
    const code = trimmed.toUpperCase();
    let index = this.codes.indexOf(code);
    if (index < 0) {
      if (this.codes.length === MAX_CODES_PER_SOURCE) {
        return `the country is not one of the first ${MAX_CODES_PER_SOURCE} different codes; is this the country column?`;
      }
      index = this.codes.push(code) - 1;
    }
    this.#byText.set(text, index);
    return index;
  }
}
