import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { FlowWindow } from '../../src/stream/flow.js';
import { parseAckSubject } from '../../src/stream/jetstream/nats.js';
import { type EnrichMessage, nextPart } from '../../src/stream/message.js';

/** Writes each digit line as many times as it says: output of any size, line by line. */
const repeat: EnrichMessage = (bytes) => {
  const lines =
    Buffer.from(bytes)
      .toString()
      .match(/[^\n]*\n|[^\n]+$/g) ?? [];
  const output = lines.map((line) => line[0]!.repeat(Number(line[0]) * 3) + (line.endsWith('\n') ? '\n' : ''));
  return { output: Buffer.from(output.join('')), rejects: new Uint8Array(0), refusal: undefined };
};

describe('splitting a message', () => {
  it('gives parts that fit and together are the output of the message, without lines that never fit', async () => {
    const digits = fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 40 });
    await fc.assert(
      fc.asyncProperty(digits, fc.boolean(), fc.integer({ min: 1, max: 120 }), async (lines, endsOpen, maxBytes) => {
        const text = lines.join('\n') + (endsOpen ? '' : '\n');
        const input = Buffer.from(text);
        let output = '';
        for (let from = 0; from < input.length; ) {
          const { bytes, inputEnd, isTooLarge } = await nextPart(repeat, input, from, maxBytes);
          expect(bytes.length).toBeLessThanOrEqual(maxBytes);
          expect(inputEnd).toBeGreaterThan(from);
          if (isTooLarge) output += '!';
          output += Buffer.from(bytes).toString();
          from = inputEnd;
        }
        const expected = lines.map((digit, index) => {
          const isOpen = endsOpen && index === lines.length - 1;
          const line = String(digit).repeat(digit * 3) + (isOpen ? '' : '\n');
          return line.length > maxBytes ? '!' : line;
        });
        expect(output).toBe(expected.join(''));
      }),
    );
  });
});

it.each([
  ['that grow', 4],
  ['that are dropped, all but a few', 0.02],
])('splitting a message with lines %s enriches each of them a few times at most', (_, growth) => {
  const input = Buffer.from('0123456789abcde\n'.repeat(20_000));
  let enriched = 0;
  const grow: EnrichMessage = (bytes) => {
    enriched += bytes.length;
    return { output: new Uint8Array(Math.ceil(bytes.length * growth)), rejects: new Uint8Array(0), refusal: undefined };
  };
  let parts = 0;
  for (let from = 0; from < input.length; parts++) from = nextPart(grow, input, from, 2_000).inputEnd;
  expect(enriched).toBeLessThan(8 * input.length);
  expect(parts).toBeLessThanOrEqual(Math.ceil((input.length * growth) / 1_000));
});

describe('the reply subject of a delivery', () => {
  it.each([
    ['$JS.ACK.IN.workers.3.41.77.1700000000000000001.5', 'without domain'],
    ['$JS.ACK._.ACC.IN.workers.3.41.77.1700000000000000001.5', 'with domain and account'],
    ['$JS.ACK.hub.ACC.IN.workers.3.41.77.1700000000000000001.5.random', 'with a last token'],
  ])('%s: %s', (subject) => {
    const source = { sequence: 41, storedAt: '1700000000000000001' };
    expect(parseAckSubject(subject)).toEqual({ consumer: 'workers', count: 3, consumerSequence: 77, source });
  });
});

describe('a flow window', () => {
  it('counts what is in flight, and wakes those who wait for half of it, for room, and for nothing', async () => {
    const window = new FlowWindow({ messages: 4, bytes: 100 });
    window.enter(60);
    window.enter(40);
    expect(window.room).toEqual({ messages: 2, bytes: 0 });
    const reached: string[] = [];
    const waits = [
      window.hasRoom().then(() => reached.push('room')),
      window.halfFree().then(() => reached.push('half')),
      window.empty().then(() => reached.push('empty')),
    ];
    await Promise.resolve();
    expect(reached).toEqual([]);
    window.leave(40);
    await waits[0];
    expect(reached).toEqual(['room']);
    window.leave(60);
    await Promise.all(waits);
    expect(reached).toEqual(['room', 'half', 'empty']);
    expect(window.isEmpty).toBe(true);
  });
});
