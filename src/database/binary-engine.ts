/** Look-up in the range file, in memory. */
import { type EmbeddedScheme, embeddedIPv4 } from '../address/embedded.js';
import type { RangeRecord } from '../rangefile/layout.js';
import type { RangeFile } from '../rangefile/reader.js';
import { findIPv4, findIPv6 } from '../rangefile/search.js';
import type { Answer, Engine } from './engine.js';

/** The answer that a record stands for; for an embedded scheme, only a placeholder. */
export function recordAnswer(record: RangeRecord): Answer {
  if (record.kind === 'country') {
    return { country: record.name, country_code: record.code, is_eu: record.isEu, reason: null };
  }
  return { country: null, country_code: null, is_eu: false, reason: record.kind === 'none' ? record.reason : null };
}

export class BinaryEngine implements Engine {
  readonly #file: RangeFile;
  /** By record number. */
  readonly #answers: Answer[];
  /** By record number: the scheme, where the IPv4 address inside answers. */
  readonly #schemes: (EmbeddedScheme | undefined)[];

  constructor(file: RangeFile) {
    this.#file = file;
    this.#answers = file.records.map(recordAnswer);
    this.#schemes = file.records.map((record) => (record.kind === 'embedded' ? record.scheme : undefined));
  }

  answerIPv4(address: number): Answer {
    return this.#answers[this.#file.record4[findIPv4(this.#file, address)]!]!;
  }

  answerIPv6(words: Uint32Array): Answer {
    const file = this.#file;
    const record = file.record6[findIPv6(file, words)]!;
    const scheme = this.#schemes[record];
    return scheme === undefined ? this.#answers[record]! : this.answerIPv4(embeddedIPv4(scheme, words) | 0);
  }

  /** Nothing to release: the file was read whole. */
  close(): void {}
}
