import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { FetchedPartition, RecordsBatch } from '../../src/stream/kafka/client.js';
import { committedRecords, enrichRecords, type SourceRecord } from '../../src/stream/kafka/records.js';
import type { EnrichMessage } from '../../src/stream/message.js';

const TRANSACTIONAL = 16;
const CONTROL = 32;
const APPEND_TIME = 8;

function batch(firstOffset: number, size: number, changes: Partial<RecordsBatch> = {}): RecordsBatch {
  return {
    firstOffset: BigInt(firstOffset),
    lastOffsetDelta: size - 1,
    attributes: 0,
    firstTimestamp: 100n,
    maxTimestamp: 900n,
    producerId: -1n,
    records: Array.from({ length: size }, (_, at) => ({
      ...{ timestampDelta: BigInt(at), offsetDelta: at, key: null, headers: [] },
      value: Buffer.from(`${firstOffset + at}`),
    })),
    ...changes,
  };
}
const of = (producer: number, attributes = 0) => ({
  producerId: BigInt(producer),
  attributes: TRANSACTIONAL | attributes,
});
const marker = (offset: number, producer: number, isCommit: boolean): RecordsBatch => {
  const key = Buffer.from([0, 0, 0, Number(isCommit)]);
  const record = { timestampDelta: 0n, offsetDelta: 0, key, value: null, headers: [] as [] };
  return batch(offset, 1, { ...of(producer, CONTROL), records: [record] });
};
const offsets = (records: RecordsBatch[], aborted: [number, number][], from = 0) => {
  const abortedTransactions = aborted.map(([producer, first]) => ({
    producerId: BigInt(producer),
    firstOffset: BigInt(first),
  }));
  const fetched: FetchedPartition = { partitionIndex: 3, lastStableOffset: 99n, abortedTransactions, records };
  const { records: found, end } = committedRecords(fetched, BigInt(from));
  return { found: found.map(({ offset }) => Number(offset)), end: Number(end) };
};

describe('records that were read', () => {
  it.each([
    { what: 'no batch', batches: [], aborted: [], from: 5, found: [], end: 5 },
    {
      what: 'a batch that begins before the offset',
      batches: [batch(3, 4)],
      aborted: [],
      from: 5,
      found: [5, 6],
      end: 7,
    },
    {
      what: 'a marker at the end',
      batches: [batch(0, 2, of(1)), marker(2, 1, true)],
      aborted: [],
      found: [0, 1],
      end: 3,
    },
    {
      what: 'an aborted transaction',
      batches: [batch(0, 2, of(1)), marker(2, 1, false), batch(3, 1, of(1))],
      aborted: [[1, 0]],
      found: [3],
      end: 4,
    },
    {
      what: 'two aborted transactions of a producer, a committed one between them, another producer all the time',
      batches: [
        batch(0, 1, of(1)),
        batch(1, 1, of(2)),
        marker(2, 1, false),
        batch(3, 1, of(1)),
        marker(4, 1, true),
        batch(5, 1, of(1)),
        marker(6, 1, false),
      ],
      aborted: [
        [1, 5],
        [1, 0],
      ],
      found: [1, 3],
      end: 7,
    },
    {
      what: 'an aborted transaction whose marker is not there',
      batches: [batch(0, 2, of(1)), batch(2, 1)],
      aborted: [[1, 0]],
      found: [2],
      end: 3,
    },
    {
      what: 'an aborted transaction that began before',
      batches: [batch(7, 2, of(1)), marker(9, 1, false)],
      aborted: [[1, 2]],
      from: 7,
      found: [],
      end: 10,
    },
  ] as {
    what: string;
    batches: RecordsBatch[];
    aborted: [number, number][];
    from?: number;
    found: number[];
    end: number;
  }[])('are the committed ones: $what', ({ batches, aborted, from, found, end }) =>
    expect(offsets(batches, aborted, from)).toEqual({ found, end }),
  );

  it('have their own time, or that of the log', () => {
    const times = (attributes: number) =>
      committedRecords(
        { partitionIndex: 0, lastStableOffset: 9n, abortedTransactions: null, records: [batch(0, 2, { attributes })] },
        0n,
      ).records.map(({ timestamp }) => timestamp);
    expect(times(0)).toEqual([100n, 101n]);
    expect(times(APPEND_TIME)).toEqual([900n, 900n]);
  });
});

describe('records that are enriched together', () => {
  const record = (value: string | null): SourceRecord => ({
    ...{ partition: 0, offset: 0n, timestamp: 0n, key: null, headers: [] },
    value: value === null ? null : Buffer.from(value),
  });
  /** Adds to each line, removes or refuses some, and fails for one. */
  const enrich: EnrichMessage = (bytes) => {
    const text = Buffer.from(bytes).toString();
    if (text.includes('bug')) throw new Error('a bug');
    const none = { rejects: Buffer.alloc(0), refusal: undefined };
    if (text.includes('refuse')) return { ...none, output: Buffer.alloc(0), refusal: 'refused' };
    const lines = text.split('\n').map((line, at, all) => (line === '' && at === all.length - 1 ? '' : `${line}+`));
    const kept = lines.filter((line) => !line.startsWith('drop'));
    const rejects = Buffer.from(lines.filter((line) => line.startsWith('drop')).join('\n'));
    return { ...none, output: Buffer.from(kept.join('\n')), rejects };
  };
  const text = (bytes: Uint8Array | null | undefined): string | null | undefined =>
    bytes && Buffer.from(bytes).toString();

  it('give what each gives alone', () => {
    const line = fc.constantFrom('a', 'b', '', 'drop', 'refuse', 'bug', '\r', 'é');
    const value = fc.option(
      fc.array(line, { maxLength: 4 }).map((lines) => lines.join('\n')),
      { freq: 8 },
    );
    fc.assert(
      fc.property(fc.array(value, { maxLength: 8 }), (values) => {
        const records = values.map(record);
        const shown = (areLines: boolean) =>
          enrichRecords(records, enrich, areLines, () => {}).map(({ value: output, reject }) => [
            text(output),
            reject?.reason,
            text(reject?.bytes),
          ]);
        expect(shown(true)).toEqual(shown(false));
      }),
    );
  });
});
