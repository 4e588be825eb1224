/** What "exactly once" means, as a check of the two streams. Shares no code with the worker or the reader. */
import { createHash } from 'node:crypto';
import type { NatsConnection } from '@nats-io/transport-node';
import { openDatabase } from '../../src/database/database.js';
import { createBlockEnricher } from '../../src/enrich/block-enricher.js';
import { messagesOf } from './nats.js';

const digest = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');

/**
 * Compares the output stream with the local enrichment of the source stream, message by message.
 *
 * @param keepsSubjects whether the subjects of the output end with those of the source
 * @returns what is wrong: messages that are missing, appear twice or differ; empty if nothing is
 */
export async function outputErrors(
  connection: NatsConnection,
  from: string,
  to: string,
  dataDir: string,
  keepsSubjects = false,
) {
  const database = openDatabase(dataDir);
  const enricher = createBlockEnricher(database);
  const expected = new Map<string, string>();
  for (const { seq, data, subject } of await messagesOf(connection, from)) {
    expected.set(`${to.toLowerCase()}.${seq}${keepsSubjects ? `.${subject}` : ''}`, digest(enricher.enrichBlock(data)));
  }
  database.close();
  const errors: string[] = [];
  const seen = new Set<string>();
  for (const { subject, data } of await messagesOf(connection, to)) {
    if (seen.has(subject)) errors.push(`${subject} appears twice`);
    else if (!expected.has(subject)) errors.push(`${subject} answers no message`);
    else if (expected.get(subject) !== digest(data)) errors.push(`${subject} differs`);
    seen.add(subject);
  }
  for (const subject of expected.keys()) if (!seen.has(subject)) errors.push(`${subject} is missing`);
  return { errors, messages: expected.size };
}

/** Checks that the subjects of an output stream name source sequences that increase; parts of one message may follow each other. */
export async function orderErrors(connection: NatsConnection, to: string): Promise<string[]> {
  const errors: string[] = [];
  let before = 0;
  for (const { subject, seq } of await messagesOf(connection, to)) {
    const sequence = Number(subject.split('.')[1]);
    if (sequence < before) errors.push(`position ${seq} answers message ${sequence}, after message ${before}`);
    before = sequence;
  }
  return errors;
}
