// A worker for the benchmark: waits for the word to begin, then empties a stream and reports times and memory.
import { once } from 'node:events';
import { openDatabase } from '../dist/src/database/database.js';
import { checkAdd, parseFields } from '../dist/src/enrich/options.js';
import { STREAM_BYTES_IN_FLIGHT, STREAM_LARGEST_IN_FLIGHT, STREAM_MESSAGES_IN_FLIGHT } from '../dist/src/limits.js';
import { messageEnricher } from '../dist/src/stream/message.js';
import { openNatsBroker } from '../dist/src/stream/nats.js';
import { Worker } from '../dist/src/stream/worker.js';

const [url, from, to, mode, dataDir] = process.argv.slice(2);
const nothing = () => {};

const names = { from, to, rejects: `${to}_REJECTS`, consumer: 'workers' };
const limits = { ackWaitMs: 60_000, maxBytes: 2_000_000_000, maxAgeMs: 0, replicas: 1 };
const { broker } = await openNatsBroker({ url }, { names, startAt: undefined, create: true, ...limits });
const database = openDatabase(dataDir);
const enrich =
  mode === 'enrich'
    ? messageEnricher(database, { fields: parseFields(['ip']), add: checkAdd(undefined), onInvalid: 'keep' })
    : (bytes) => ({ output: bytes, rejects: new Uint8Array(0), refusal: undefined });
const flow = Math.max(STREAM_BYTES_IN_FLIGHT, STREAM_LARGEST_IN_FLIGHT * broker.maxPartBytes);
let ended = 0;
const worker = new Worker({
  broker,
  release: () => ({ id: 'bench', enrich }),
  oversize: 'split',
  inFlight: { messages: STREAM_MESSAGES_IN_FLIGHT, bytes: flow },
  maxOutputBytes: flow,
  once: true,
  signal: new AbortController().signal,
  events: {
    delivered: nothing,
    appended: nothing,
    // The last message counts, not the look for more after it.
    done: () => {
      ended = Date.now();
    },
    alreadyDone: nothing,
    rejected: nothing,
    retried: (_delivery, problem) => process.stderr.write(`${problem}\n`),
    failed: (_delivery, error) => process.stderr.write(`${error}\n`),
  },
});
process.stdout.write('ready\n');
await once(process.stdin.resume(), 'end');
const begun = Date.now();
const cpuBefore = process.cpuUsage();
await worker.run();
const { user, system } = process.cpuUsage(cpuBefore);
await broker.close();
const cpuSeconds = (user + system) / 1e6;
process.stdout.write(JSON.stringify({ begun, ended, cpuSeconds, peak: process.resourceUsage().maxRSS / 1024 }));
