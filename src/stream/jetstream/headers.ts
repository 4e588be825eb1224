/** The headers of output messages and rejects: written, and read back. docs/streams.md describes them for readers. */
import type { StoredMsg } from '@nats-io/jetstream';
import { headers, type Msg, type MsgHdrs } from '@nats-io/transport-node';
import { AtlasError } from '../../errors.js';
import type { Origin, OutputPart, Reject, SourceId, StoredPart, StoredReject } from './chain.js';

export const HEADER = {
  /** `<source stream> <sequence> <time stored, ns>` */
  source: 'Ipatlas-Source',
  /** Subject of the source message. */
  subject: 'Ipatlas-Subject',
  /** `too large` or `invalid` if the headers of the source message were left out. */
  headers: 'Ipatlas-Headers',
  release: 'Ipatlas-Release',
  /** Hash of the options of the enrichment. */
  settings: 'Ipatlas-Settings',
  /** Of a split message only: `<number> <more|last> <end in the source message, bytes> <output sequence of the part before>` */
  part: 'Ipatlas-Part',
  /** Reason for which the input of this part is missing. */
  rejected: 'Ipatlas-Rejected',
  /** Of a reject that was enriched later: `<offset in the source message|all> <end in the reject, bytes>` */
  replay: 'Ipatlas-Replay',
} as const;

/** Headers that are not copied from the source: those that the server obeys, and ours. */
const RESERVED = /^(nats|ipatlas)-/i;

/**
 * Returns where a message of the source came from, with the headers that go into its output.
 *
 * @param maxBytes larger headers are left out, and the header `Ipatlas-Headers` says so
 */
export function originOf(subject: string, messageHeaders: MsgHdrs | undefined, maxBytes: number): Origin {
  const subjectBytes = Buffer.byteLength(subject);
  if (messageHeaders === undefined) return { subject, headers: [], bytes: subjectBytes };
  const names = messageHeaders.keys().filter((name) => !RESERVED.test(name));
  const all = names.flatMap((name) => messageHeaders.values(name).map((value) => [name, value] as const));
  const bytes = all.reduce((sum, [name, value]) => sum + Buffer.byteLength(`${name}: ${value}\r\n`), subjectBytes);
  if (bytes > maxBytes) return { subject, headers: [[HEADER.headers, 'too large']], bytes: subjectBytes };
  return { subject, headers: all, bytes };
}

/**
 * Returns what {@link originOf} does for a message that was delivered, and whether its headers were readable. The client parses
 * headers when they are asked for, and throws for names and values that it would not write itself.
 */
export function deliveredOrigin(message: Msg, maxBytes: number): { origin: Origin; isReadable: boolean } {
  const { subject } = message;
  let found: MsgHdrs | undefined;
  try {
    found = message.headers;
  } catch {
    const origin: Origin = { subject, headers: [[HEADER.headers, 'invalid']], bytes: Buffer.byteLength(subject) };
    return { origin, isReadable: false };
  }
  return { origin: originOf(subject, found, maxBytes), isReadable: true };
}

function sourceHeaders(stream: string, { sequence, storedAt }: SourceId, origin: Origin | undefined): MsgHdrs {
  const all = headers();
  for (const [name, value] of origin?.headers ?? []) all.append(name, value);
  all.set(HEADER.source, `${stream} ${sequence} ${storedAt}`);
  if (origin !== undefined) all.set(HEADER.subject, origin.subject);
  return all;
}

/** @param settings hash of the options of the enrichment */
export function partHeaders(part: OutputPart, previous: number, stream: string, settings: string): MsgHdrs {
  const all = sourceHeaders(stream, part.source, part.origin);
  all.set(HEADER.release, part.release);
  all.set(HEADER.settings, settings);
  if (part.number > 1 || !part.isLast) {
    all.set(HEADER.part, `${part.number} ${part.isLast ? 'last' : 'more'} ${part.inputEnd} ${previous}`);
  }
  if (part.rejected !== undefined) all.set(HEADER.rejected, part.rejected);
  if (part.replay !== undefined) {
    all.set(HEADER.replay, `${part.replay.offset ?? 'all'} ${part.replay.end}`);
  }
  return all;
}

export function rejectHeaders({ source, origin, reason }: Reject, stream: string): MsgHdrs {
  const all = sourceHeaders(stream, source, origin);
  all.set(HEADER.rejected, reason);
  return all;
}

/** A message of a stream, with what its headers say. */
type Message = Pick<StoredMsg, 'header' | 'seq' | 'data'>;

/** Returns the source stream and the source message that a message names; undefined for a message of someone else. */
export function parseSource(message: Pick<Message, 'header'>): { stream: string; source: SourceId } | undefined {
  let text: string;
  try {
    text = message.header.get(HEADER.source);
  } catch {
    return undefined; // headers that the client does not parse, so not ours
  }
  const match = /^(\S+) (\d+) (\d+)$/.exec(text);
  if (match === null) return undefined;
  return { stream: match[1]!, source: { sequence: Number(match[2]), storedAt: match[3]! } };
}

/** Throws AtlasError E_STREAM if a message of a stream is output, or a reject, of another source. */
export function requireSource(message: Pick<Message, 'header'>, stream: string, source: string): void {
  const found = parseSource(message)?.stream;
  if (found === undefined || found === source) return;
  throw new AtlasError('E_STREAM', `${stream} belongs to the source ${found}, not ${source}; use another stream`);
}

const parseOffset = (text: string): number | undefined => (text === 'all' ? undefined : Number(text));

/** Reads back a reject; undefined for a message of someone else. */
export function parseReject(message: Pick<StoredMsg, 'header' | 'seq' | 'data' | 'subject'>): StoredReject | undefined {
  const { source } = parseSource(message) ?? {};
  if (source === undefined) return undefined;
  const { header, subject, data, seq } = message;
  const offset = /\.\d+\.(\d+)$/.exec(subject)?.[1];
  const origin = originOf(header.get(HEADER.subject), header, Number.POSITIVE_INFINITY);
  return {
    source,
    origin,
    position: seq,
    bytes: data,
    reason: header.get(HEADER.rejected),
    offset: offset === undefined ? undefined : Number(offset),
  };
}

/** Reads back what {@link partHeaders} wrote; undefined for a message that is not one of these. */
export function parsePart(message: Message): StoredPart | undefined {
  const found = parseSource(message);
  if (found === undefined) return undefined;
  const { header, seq, data } = message;
  const part = /^(\d+) (more|last) (\d+) (\d+)$/.exec(header.get(HEADER.part) || '1 last 0 0')!;
  const replay = /^(all|\d+) (\d+)$/.exec(header.get(HEADER.replay));
  return {
    source: found.source,
    number: Number(part[1]),
    isLast: part[2] === 'last',
    inputEnd: Number(part[3]),
    release: header.get(HEADER.release),
    rejected: header.get(HEADER.rejected) || undefined,
    ...(replay && { replay: { offset: parseOffset(replay[1]!), end: Number(replay[2]) } }),
    bytes: data,
    position: seq,
    previous: Number(part[4]),
  };
}
