/** Looks up, counts, and writes the answer: what all formats share. */
import type { ReasonedResult } from '../../database/database.js';
import { answerJson } from '../fragment.js';
import { asByteText, type FormatContext } from './format.js';

/** Stands for a field that is not there, and for one whose value can be no address, such as a number. */
export const MISSING = Symbol('missing');
export const NO_TEXT = Symbol('no text');
export type FieldValue = string | typeof MISSING | typeof NO_TEXT;

/** From a field's value to the text of its answer, one character a byte. */
export type Answerer = (value: FieldValue) => string;

/**
 * @param write an answer as text; the same text for the same country or reason
 * @param none the text where the field is missing or holds no address
 * @returns looks up, counts and writes
 */
function answerer({ database, counts }: FormatContext, write: (answer: ReasonedResult) => string, none: string) {
  // There are some 250 countries and a dozen reasons, so each text is made once. A code has two capital letters, a reason
  // has small ones.
  const texts = new Map<string | null, string>();

  function textOf(answer: ReasonedResult): string {
    const key = answer.country_code ?? answer.reason;
    let text = texts.get(key);
    if (text === undefined) {
      text = asByteText(write(answer));
      texts.set(key, text);
    }
    return text;
  }

  return (value: FieldValue): string => {
    if (value === MISSING) {
      counts.missing_field++;
      return none;
    }
    const answer = value === NO_TEXT ? undefined : database.lookupWithReason(value);
    if (answer === undefined) {
      counts.invalid_address++;
      return none;
    }
    if (answer.country_code === null) counts.no_country++;
    else counts.found++;
    return textOf(answer);
  };
}

/** The answer as a JSON value; `null` where there is none. */
export function jsonAnswerer(context: FormatContext): Answerer {
  return answerer(context, (answer) => answerJson(answer, context.options.add), 'null');
}

/** @returns a cell, in quotes only where it must be (RFC 4180 §2) */
export function cellText(text: string, separator: string): string {
  const mustQuote = text.includes(separator) || /["\r\n]/.test(text);
  return mustQuote ? `"${text.replaceAll('"', '""')}"` : text;
}

/**
 * The answer as cells, each with a separator in front: empty ones for what is null and where there is no answer.
 *
 * @param separator what stands between cells
 */
export function cellAnswerer(context: FormatContext, separator: string): Answerer {
  const { add } = context.options;
  const cells = (answer: ReasonedResult) =>
    add.map((name) => separator + cellText(String(answer[name] ?? ''), separator)).join('');
  return answerer(context, cells, separator.repeat(add.length));
}
