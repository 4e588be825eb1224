import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it, onTestFinished } from 'vitest';
import { AtlasError } from '../../src/errors.js';
import { STREAM_READ_POLL_MS } from '../../src/limits.js';
import { BrokerUnavailable } from '../../src/stream/broker.js';
import type { StoredPart } from '../../src/stream/jetstream/chain.js';
import type { NatsBroker } from '../../src/stream/jetstream/nats.js';
import { chain, readInOrder } from '../../src/stream/jetstream/reader.js';

/** Reads from a broker that answers for message 1 only. Returns the error, and how often it was asked after it. */
async function readingFails(lastPart: () => StoredPart, onMessage: () => void): Promise<[unknown, number]> {
  let asked = 0;
  const broker = {
    readableRange: async () => ({ first: 1, last: 30 }),
    lastPart: async (sequence: number) => {
      asked++;
      if (sequence === 1) return lastPart();
      throw new BrokerUnavailable('no answer');
    },
  } as unknown as NatsBroker;
  try {
    for await (const _ of readInOrder({ broker, once: true, signal: new AbortController().signal })) onMessage();
    throw new Error('read to its end');
  } catch (error) {
    asked = 0;
    await sleep(2 * STREAM_READ_POLL_MS);
    return [error, asked];
  }
}

// Requests that go on would keep the process from ending.
it('a reader that failed, and one whose messages cannot be written, ask for nothing more', async () => {
  const warnings: Error[] = [];
  const onWarning = (warning: Error) => void warnings.push(warning);
  process.on('warning', onWarning);
  onTestFinished(() => void process.off('warning', onWarning));
  const gone = new AtlasError('E_STREAM', 'gone');
  const full = new Error('no room');
  const part = { isLast: true, previous: 0 } as StoredPart;
  const throws = (error: Error) => (): never => {
    throw error;
  };
  const both = await Promise.all([readingFails(throws(gone), () => {}), readingFails(() => part, throws(full))]);
  expect(both).toEqual([
    [gone, 0],
    [full, 0],
  ]);
  // Many messages are waited for at a time.
  expect(warnings).toEqual([]);
});

it('the parts of a message are followed only to parts of the same message', async () => {
  const source = { sequence: 7, storedAt: '1' };
  const last = { source, number: 3, isLast: true, position: 12, previous: 9 } as StoredPart;
  const read = async (before: Partial<StoredPart> | undefined) => {
    const part = before && { source, number: 2, previous: 0, ...before };
    return chain({ partAt: async () => part } as unknown as NatsBroker, last);
  };
  expect((await read({})).map(({ number }) => number)).toEqual([2, 3]);
  const lost = /part 2 of the output of message 7 is not at position 9: the server has lost messages/;
  await expect(read({ number: 1 })).rejects.toThrow(lost);
  await expect(read({ source: { sequence: 8, storedAt: '1' } })).rejects.toThrow(lost);
  await expect(read({ source: { sequence: 7, storedAt: '2' } })).rejects.toThrow(lost);
  await expect(read(undefined)).rejects.toThrow(/part 2 of the output of message 7 was deleted/);
});
