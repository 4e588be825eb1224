/** The answer as JSON text, ready to be spliced in. */
import type { Answer } from '../database/engine.js';
import type { Addable } from './options.js';

/**
 * @param answer what the database says of an address
 * @param add the members wanted, in order
 * @returns a JSON object without blanks, such as `{"country":"Germany","country_code":"DE","is_eu":true}`
 */
export function answerJson(answer: Answer, add: readonly Addable[]): string {
  return `{${add.map((name) => `"${name}":${JSON.stringify(answer[name])}`).join(',')}}`;
}
