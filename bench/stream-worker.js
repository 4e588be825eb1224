// A worker for the benchmark: empties a stream to warm up, waits for the word to begin, then empties another one and reports
// times and memory.
import { once } from 'node:events';
import { openDatabase } from '../dist/src/database/database.js';
import { checkAdd, parseFields } from '../dist/src/enrich/options.js';
import { STREAM_BYTES_IN_FLIGHT, STREAM_LARGEST_IN_FLIGHT, STREAM_MESSAGES_IN_FLIGHT } from '../dist/src/limits.js';
import { openNatsBroker } from '../dist/src/stream/jetstream/nats.js';
import { Worker } from '../dist/src/stream/jetstream/worker.js';
import { messageEnricher } from '../dist/src/stream/message.js';
import { peakMegabytes } from './measure.js';

/** Size of the output of the warm-up, which the server reserves. */
const WARM_UP_MAX_BYTES = 500_000_000;
/** Largest output of a message in mode `filler`. */
const MAX_FILLER_BYTES = 8_000_000;

const [url, warmUpFrom, from, to, mode, dataDir] = process.argv.slice(2);
const nothing = () => {};
const database = openDatabase(dataDir);

const refusal = undefined;
const rejects = new Uint8Array(0);
const createEnrich = () =>
  messageEnricher(database, { fields: parseFields(['ip']), add: checkAdd(undefined), onInvalid: 'keep' });

/** Publishes as many bytes as an enriched message has, without enriching it. */
function createFiller() {
  const filler = new Uint8Array(MAX_FILLER_BYTES).fill(0x78);
  const enrich = createEnrich();
  let growth = 0;
  return (bytes) => {
    if (growth === 0) growth = enrich(bytes).output.length / bytes.length;
    return { output: filler.subarray(0, Math.round(growth * bytes.length)), rejects, refusal };
  };
}

const ENRICHERS = {
  enrich: createEnrich,
  empty: () => (bytes) => ({ output: bytes, rejects, refusal }),
  filler: createFiller,
};
const enrich = ENRICHERS[mode]();

/** Connects to the streams and returns a function that empties the source; it resolves with the time of the last message. */
async function prepare(source, output, consumer, maxBytes) {
  const names = { from: source, to: output, rejects: `${output}_REJECTS`, consumer };
  const limits = { ackWaitMs: 60_000, maxBytes, maxAgeMs: 0, replicas: 1 };
  const { broker } = await openNatsBroker({ url }, { names, startAt: undefined, create: true, ...limits });
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
      idle: nothing,
      delivered: nothing,
      stored: nothing,
      // The last message counts, not the look for more after it.
      done: () => {
        ended = Date.now();
      },
      alreadyDone: nothing,
      rejected: nothing,
      retried: (problem) => process.stderr.write(`${problem}\n`),
      failed: (_place, error) => process.stderr.write(`${error}\n`),
    },
  });
  return async () => {
    await worker.run();
    await broker.close();
    return ended;
  };
}

// A worker runs for days: the compilation of its code at the start must not count.
const warmUp = await prepare(warmUpFrom, `${warmUpFrom}_${process.pid}`, `warm_up_${process.pid}`, WARM_UP_MAX_BYTES);
await warmUp();
const drain = await prepare(from, to, 'workers', 2_000_000_000);
process.stdout.write('ready\n');
await once(process.stdin.resume(), 'end');
const begun = Date.now();
const cpuBefore = process.cpuUsage();
const ended = await drain();
const { user, system } = process.cpuUsage(cpuBefore);
const cpuSeconds = (user + system) / 1e6;
process.stdout.write(JSON.stringify({ begun, ended, cpuSeconds, peak: peakMegabytes() }));
