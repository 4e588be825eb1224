/**
 * Enriches rejects again, after what refused them was changed: a policy, the size of messages, a bug. The output continues the
 * chain of its source message, under the same check as that of a worker, and names its reject. So a reject is in the output
 * once, however often a replay is killed and repeated.
 */
import { retried } from '../broker.js';
import { nextPart } from '../message.js';
import type { StoredPart, StoredReject } from './chain.js';
import type { WorkerOptions } from './intake.js';
import { chain } from './reader.js';

export type ReplayOptions = Pick<WorkerOptions, 'broker' | 'release' | 'oversize' | 'signal' | 'events'>;

/** What a replay did. */
export interface Replayed {
  replayed: number;
  /** Rejects that stay, and why. */
  left: { position: number; sequence: number; why: string }[];
}

/** Returns how much of a reject is in a chain of output, in bytes. */
function replayedUpTo(parts: readonly StoredPart[], { source, offset }: StoredReject): number {
  const ends = parts.map(({ source: { storedAt }, replay }) =>
    storedAt === source.storedAt && replay !== undefined && replay.offset === offset ? replay.end : 0,
  );
  return Math.max(0, ...ends);
}

/** Puts the output of a reject into the output stream. Returns why that is not possible; undefined if it is there. */
async function replay({ broker, release, oversize }: ReplayOptions, reject: StoredReject): Promise<string | undefined> {
  const { source, origin, offset, bytes } = reject;
  if (bytes.length === 0) return 'it was too large to be kept';
  const { id, enrich } = release();
  const { output, refusal, rejects } = enrich(bytes);
  if (refusal !== undefined) return refusal;
  if (rejects.length > 0) return 'lines are still refused';
  const room = broker.maxPartBytes - origin.bytes;
  if (oversize === 'reject' && output.length > room) return `the output has ${output.length} bytes, more than ${room}`;
  for (;;) {
    const last = await broker.lastPart(source.sequence, origin.subject);
    if (last === 'foreign') return 'somebody else published to its output subject';
    if (last === undefined || !last.isLast) return 'the output of its message is not complete yet';
    const from = replayedUpTo(await chain(broker, last), reject);
    if (from === bytes.length) return undefined;
    const part = nextPart(enrich, bytes, from, room);
    if (part.isTooLarge) return `the output of the line at byte ${from} is larger than ${room} bytes`;
    const content = { source, origin, number: last.number + 1, isLast: true, inputEnd: last.inputEnd, release: id };
    // If another part is the last one by now, the chain is read again.
    await broker.append({ ...content, replay: { offset, end: part.inputEnd }, bytes: part.bytes }, last.position);
  }
}

/**
 * Enriches all rejects that are there now, and deletes those that are in the output then.
 *
 * @throws AtlasError E_STREAM if a stream is gone
 */
export async function replayRejects(options: ReplayOptions): Promise<Replayed> {
  const { broker } = options;
  const result: Replayed = { replayed: 0, left: [] };
  const range = await retried(options, () => broker.rejectRange());
  const { first = 1, last = 0 } = range ?? {};
  for (let position = first; position <= last && !options.signal.aborted; position++) {
    const reject = await retried(options, () => broker.rejectAt(position));
    if (reject === undefined) continue;
    const why = await retried(options, async () => (await replay(options, reject)) ?? 'done');
    if (why === 'done') {
      await retried(options, () => broker.deleteReject(position));
      result.replayed++;
    } else if (why !== undefined) {
      result.left.push({ position, sequence: reject.source.sequence, why });
    }
  }
  return result;
}
