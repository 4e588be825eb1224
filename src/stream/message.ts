/** Turns one source message into the parts of its output. No broker is involved. */
import type { Database } from '../database/database.js';
import { createMessageEnricher } from '../enrich/block-enricher.js';
import type { EnrichOptions } from '../enrich/options.js';
import { AtlasError } from '../errors.js';

/** What enriching a message, or some of its lines, gives. */
export interface Enriched {
  output: Uint8Array;
  /** The lines that the policy `drop` left out. */
  rejects: Uint8Array;
  /** Why nothing of it can be enriched; `output` is empty then. */
  refusal: string | undefined;
  /** Gives the memory of `output` back, for later messages. May be called once, when nothing refers to it any more. */
  recycle?: () => void;
}

/** Enriches a message, or some whole lines of one. */
export type EnrichMessage = (bytes: Uint8Array) => Enriched;

const EMPTY = new Uint8Array(0);
const NEWLINE = 10;

/**
 * The result for a message that is not valid, such as a table without the column (E_USAGE: options were checked before, so
 * only the message can be the cause). Throws an error of any other kind.
 */
function refusalOf(error: unknown): Enriched {
  if (!(error instanceof AtlasError && ['E_BAD_INPUT', 'E_USAGE'].includes(error.code))) throw error;
  return { output: EMPTY, rejects: EMPTY, refusal: error.message };
}

/**
 * Returns a function that enriches messages with one release.
 *
 * @throws AtlasError as createBlockEnricher does
 */
export function messageEnricher(database: Database, options: EnrichOptions): EnrichMessage {
  let rejects: Uint8Array[] = [];
  const onReject = options.onInvalid === 'drop' ? (records: Uint8Array) => rejects.push(records) : undefined;
  const enricher = createMessageEnricher(database, options, onReject);
  return (bytes) => {
    rejects = [];
    try {
      const output = enricher.enrichBlock(bytes);
      const recycle = (): void => enricher.recycle(output);
      return { output, rejects: Buffer.concat(rejects), refusal: undefined, recycle };
    } catch (error) {
      return refusalOf(error);
    }
  };
}

/** The output of some whole lines of a message. */
export interface MessagePart {
  bytes: Uint8Array;
  /** End of these lines in the message. */
  inputEnd: number;
  /** Set for a single line whose output is larger than a part may be; `bytes` is empty then. */
  isTooLarge: boolean;
}

/** Share of the proportional estimate that is tried next: lines differ, and each try costs a run. */
const ESTIMATE_SHARE = 0.9;

/** Returns the end of a run of whole lines from `from` that ends before `to`, near `target`; `to` for a single line. */
function shorterEnd(input: Uint8Array, from: number, to: number, target: number): number {
  const before = input.subarray(from, target).lastIndexOf(NEWLINE);
  if (before >= 0) return from + before + 1;
  const after = input.subarray(from, to).indexOf(NEWLINE);
  return after < 0 ? to : from + after + 1;
}

/**
 * Enriches whole lines of a message, as many as make at least half of a part and fit into it. The work for all parts grows with
 * the message, not with its square.
 *
 * @param from byte of the message at which the part begins, the start of a line
 * @param maxBytes largest output
 */
export function nextPart(enrich: EnrichMessage, input: Uint8Array, from: number, maxBytes: number): MessagePart {
  const { length } = input;
  const endNear = (start: number, target: number): number =>
    target >= length ? length : shorterEnd(input, start, length, target);
  // Most lines grow, so a first try with far more than fits would be in vain; lines that shrink are tried again with more.
  let to = endNear(from, from + maxBytes);
  for (let hasFit = true; ; ) {
    const { output } = enrich(input.subarray(from, to));
    hasFit &&= output.length <= maxBytes;
    if (hasFit && to < length && 2 * output.length < maxBytes) {
      to = endNear(to, from + 2 * (to - from));
      continue;
    }
    if (output.length <= maxBytes) return { bytes: output, inputEnd: to, isTooLarge: false };
    const target = from + Math.floor((to - from) * (maxBytes / output.length) * ESTIMATE_SHARE);
    const end = shorterEnd(input, from, to, target);
    if (end === to) return { bytes: EMPTY, inputEnd: to, isTooLarge: true };
    to = end;
  }
}
