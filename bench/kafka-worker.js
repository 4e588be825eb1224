// Programs for bench/kafka.js, on a later Node with the client of Kafka. usage: kafka-worker.js SERVERS MODE FROM TO DATA LINES
// Mode `fill` writes the lines of a file; the others read all records of a topic once, write another, and print records per second
// and core seconds for a million records,
// without those of the first fifth, in which code is compiled.
import { readFileSync } from 'node:fs';
import * as module from '@platformatic/kafka';
import { Admin, Consumer, Producer } from '@platformatic/kafka';
import { open } from 'maxmind';
import { openDatabase } from '../dist/src/database/database.js';
import { checkAdd, parseFields } from '../dist/src/enrich/options.js';
import { Clients } from '../dist/src/stream/kafka/client.js';
import { setUpTopics } from '../dist/src/stream/kafka/setup.js';
import { KafkaWorker } from '../dist/src/stream/kafka/worker.js';
import { messageEnricher } from '../dist/src/stream/message.js';
import { MMDB } from './paths.js';

const [servers, mode, from, to, dataDir, path] = process.argv.slice(2);
const WARM_UP_SHARE = 0.2;
const BATCH = 1_000;
const lines = readFileSync(path, 'utf8').trimEnd().split('\n');
const PARTITIONS = 6;
const options = { clientId: 'bench', bootstrapBrokers: servers.split(','), timeout: 60_000 };
const server = { bootstrapBrokers: options.bootstrapBrokers };
const admin = new Clients(module, server).admin();
const setupOptions = { names: { from, to, rejects: `${to}-rejects`, group: to }, byKey: false, create: true };
const nothing = () => {};

let done = 0;
let begun;
function count(records) {
  done += records;
  if (done >= WARM_UP_SHARE * lines.length) begun ??= { at: performance.now(), done, cpu: process.cpuUsage() };
}

async function fill() {
  // The broker may still be starting.
  const patient = new Admin({ ...options, retries: 300, retryDelay: 200 });
  await patient.createTopics({ topics: [from], partitions: PARTITIONS, replicas: 1 });
  const producer = new Producer({ ...options, idempotent: true });
  for (let at = 0; at < lines.length; at += BATCH) {
    const messages = lines.slice(at, at + BATCH).map((line, n) => ({
      topic: from,
      partition: ((at / BATCH + n) % PARTITIONS) | 0,
      value: Buffer.from(line),
    }));
    await producer.send({ messages });
  }
  await producer.close();
}

/** The worker of `ipatlas stream`, or the same with nothing to do. */
async function worker() {
  const database = openDatabase(dataDir);
  const settings = { fields: parseFields(['ip']), add: checkAdd(undefined), onInvalid: 'keep' };
  const copy = (bytes) => ({ output: bytes, rejects: new Uint8Array(0), refusal: undefined });
  const enrich = mode === 'enrich' ? messageEnricher(database, settings) : copy;
  const events = {
    ...{ delivered: nothing, stored: nothing, alreadyDone: nothing, lost: nothing, idle: nothing },
    done: count,
    rejected: (_place, reason) => process.stderr.write(`${reason}\n`),
    retried: (problem) => process.stderr.write(`${problem}\n`),
    failed: (_place, error) => process.stderr.write(`${error}\n`),
  };
  await new KafkaWorker({
    module,
    server,
    setupOptions,
    setup: await setUpTopics(admin, setupOptions),
    compression: undefined,
    release: () => ({ id: 'bench', enrich }),
    areLines: mode === 'enrich',
    events,
    once: true,
    signal: new AbortController().signal,
  }).run();
}

/** What a user would write first: at least once, JSON.parse, maxmind, batches. */
async function naive() {
  const EU = new Set('AT BE BG CY CZ DE DK EE ES FI FR GR HR HU IE IT LT LU LV MT NL PL PT RO SE SI SK'.split(' '));
  const country = new Intl.DisplayNames('en', { type: 'region' });
  const reader = await open(MMDB);
  await setUpTopics(admin, setupOptions);
  const producer = new Producer({ ...options, idempotent: true });
  const consumer = new Consumer({ ...options, groupId: to, autocommit: false });
  const stream = await consumer.consume({ topics: [from], mode: 'earliest', sessionTimeout: 30_000 });
  let batch = [];
  const flush = async () => {
    const messages = batch;
    batch = [];
    await producer.send({ messages });
    count(messages.length);
  };
  for await (const { partition, value } of stream) {
    const record = JSON.parse(value.toString());
    const code = reader.get(record.ip)?.country_code ?? null;
    Object.assign(record, { country: code && country.of(code), country_code: code, is_eu: EU.has(code) });
    batch.push({ topic: to, partition, value: Buffer.from(JSON.stringify(record)) });
    if (batch.length === BATCH || done + batch.length === lines.length) await flush();
    if (done === lines.length) break;
  }
}

await { fill, enrich: worker, copy: worker, naive }[mode]();
if (mode !== 'fill') {
  const perSecond = (done - begun.done) / ((performance.now() - begun.at) / 1000);
  const { user, system } = process.cpuUsage(begun.cpu);
  const coreSeconds = (user + system) / (done - begun.done);
  process.stdout.write(JSON.stringify({ perSecond, coreSeconds }), () => process.exit());
} else process.exit();
