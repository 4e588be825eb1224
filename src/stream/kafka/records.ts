/** Records of a Kafka topic and what becomes of them. No broker is involved. */
import type { RejectReason } from '../broker.js';
import type { EnrichMessage } from '../message.js';
import type { FetchedPartition } from './client.js';

/** A record of the source. */
export interface SourceRecord {
  partition: number;
  offset: bigint;
  /** Milliseconds since 1970. */
  timestamp: bigint;
  key: Buffer | null;
  value: Buffer | null;
  headers: readonly (readonly [name: Buffer | null, value: Buffer | null])[];
}

/** Bits of a batch's attributes (Kafka protocol, record batch). */
const COMPRESSION_BITS = 0b111;
const LOG_APPEND_TIME = 1 << 3;
const IS_TRANSACTIONAL = 1 << 4;
const IS_CONTROL = 1 << 5;

/** What a fetch brought of one partition. */
export interface Fetched {
  records: SourceRecord[];
  /** The offset after the last one that was looked at, records of aborted transactions and markers included. */
  end: bigint;
  /** Code of the compression of the last batch. */
  compression: number;
}

/** Whether the marker that a control batch holds ends an aborted transaction: version and type, two bytes each. */
const isAbortMarker = (key: Buffer | null | undefined): boolean => key?.readInt16BE(2) === 0;

/**
 * Returns the records from an offset on, without those of aborted transactions. The library leaves some of these in: if a
 * producer aborted more than one transaction, or if the marker is not in the same answer.
 *
 * @param from offset that was asked for: a broker answers with whole batches
 */
export function committedRecords(fetched: FetchedPartition, from: bigint): Fetched {
  const { partitionIndex: partition } = fetched;
  const aborted = [...(fetched.abortedTransactions ?? [])].sort((a, b) => Number(a.firstOffset - b.firstOffset));
  const aborting = new Set<bigint>();
  const result: Fetched = { records: [], end: from, compression: 0 };
  for (const batch of fetched.records ?? []) {
    const { firstOffset, attributes, producerId, firstTimestamp, maxTimestamp } = batch;
    const last = firstOffset + BigInt(batch.lastOffsetDelta);
    while (aborted.length > 0 && aborted[0]!.firstOffset <= last) aborting.add(aborted.shift()!.producerId);
    if (last >= result.end) result.end = last + 1n;
    if ((attributes & IS_CONTROL) !== 0) {
      if (isAbortMarker(batch.records[0]?.key)) aborting.delete(producerId);
      continue;
    }
    result.compression = attributes & COMPRESSION_BITS;
    if ((attributes & IS_TRANSACTIONAL) !== 0 && aborting.has(producerId)) continue;
    const isAppendTime = (attributes & LOG_APPEND_TIME) !== 0;
    for (const { offsetDelta, timestampDelta, key, value, headers } of batch.records) {
      const offset = firstOffset + BigInt(offsetDelta);
      if (offset < from) continue;
      const timestamp = isAppendTime ? maxTimestamp : firstTimestamp + timestampDelta;
      result.records.push({ partition, offset, timestamp, key, value, headers });
    }
  }
  return result;
}

/** What becomes of one record. */
export interface Outcome {
  record: SourceRecord;
  /** The new value; undefined if the record is not in the output. A tombstone stays one. */
  value: Uint8Array | null | undefined;
  /** What goes to the rejects, and why; undefined for nothing. */
  reject?: { reason: RejectReason; detail: string; bytes: Uint8Array | null } | undefined;
  /** Gives the memory of `value` back. */
  recycle?: (() => void) | undefined;
}

const NEWLINE = 10;
/** First byte of the mark in UTF-8. */
const BYTE_ORDER_MARK = 0xef;

/** Number of newlines in some bytes. */
function newlines(bytes: Uint8Array): number {
  let count = 0;
  for (let at = bytes.indexOf(NEWLINE); at >= 0; at = bytes.indexOf(NEWLINE, at + 1)) count++;
  return count;
}

/**
 * Enriches the values of many records as one block and cuts the output at the ends of the records: a call of the kernel costs
 * more than a short line.
 *
 * @returns undefined if the block cannot be cut, because a line was refused or a bug was met
 */
function enrichTogether(records: readonly SourceRecord[], enrich: EnrichMessage): Outcome[] | undefined {
  const chunks: Uint8Array[] = [];
  const newline = Uint8Array.of(NEWLINE);
  for (const { value } of records) {
    if (value === null || value.length === 0) continue;
    // A byte order mark counts at the beginning of a message only.
    if (value[0] === BYTE_ORDER_MARK) return undefined;
    chunks.push(value);
    if (value.at(-1) !== NEWLINE) chunks.push(newline);
  }
  const block = Buffer.concat(chunks);
  let enriched: ReturnType<EnrichMessage>;
  try {
    enriched = enrich(block);
  } catch {
    return undefined; // a bug: the record that meets it is found alone
  }
  const { output, refusal, rejects, recycle } = enriched;
  if (refusal !== undefined || rejects.length > 0) return undefined;
  const outcomes: Outcome[] = [];
  let at = 0;
  for (const record of records) {
    const { value } = record;
    if (value === null || value.length === 0) {
      outcomes.push({ record, value });
      continue;
    }
    const isOpen = value.at(-1) !== NEWLINE;
    let end = at;
    for (let left = newlines(value) + Number(isOpen); left > 0; left--) {
      end = output.indexOf(NEWLINE, end) + 1;
      if (end === 0) return undefined;
    }
    outcomes.push({ record, value: output.subarray(at, isOpen ? end - 1 : end) });
    at = end;
  }
  if (at !== output.length) return undefined;
  // The memory of all of them.
  if (outcomes.length > 0) outcomes[0]!.recycle = recycle;
  return outcomes;
}

function enrichAlone(record: SourceRecord, enrich: EnrichMessage, onBug: (error: unknown) => void): Outcome {
  const { value } = record;
  if (value === null || value.length === 0) return { record, value };
  try {
    const { output, refusal, rejects, recycle } = enrich(value);
    if (refusal !== undefined) {
      return { record, value: undefined, reject: { reason: 'invalid_line', detail: refusal, bytes: value } };
    }
    if (rejects.length === 0) return { record, value: output, recycle };
    const reject = { reason: 'invalid_line', detail: 'lines were dropped', bytes: rejects } as const;
    // Without a line that is left, nothing is: an empty value would be a record of its own.
    return { record, value: output.length === 0 ? undefined : output, recycle, reject };
  } catch (error) {
    onBug(error);
    const detail = 'a bug: see the log of the worker';
    return { record, value: undefined, reject: { reason: 'internal_error', detail, bytes: value } };
  }
}

/**
 * Enriches records. Empty values and tombstones pass.
 *
 * @param areLines whether records can be enriched as one block: the format is one of lines that do not depend on each other
 * @param onBug called for a record that is rejected because of a bug
 */
export function enrichRecords(
  records: readonly SourceRecord[],
  enrich: EnrichMessage,
  areLines: boolean,
  onBug: (error: unknown, record: SourceRecord) => void,
): Outcome[] {
  const together = areLines && records.length > 1 ? enrichTogether(records, enrich) : undefined;
  return together ?? records.map((record) => enrichAlone(record, enrich, (error) => onBug(error, record)));
}
