// Workers on Kafka: against a worker that copies records, and against what a user would write first with the same client. The broker
// and the Node that the client needs come from test/support/kafka/install.sh.
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { writeLines } from './enrich-lines.js';
import { row, section } from './measure.js';
import { freePort } from './nats.js';
import { dataDirectory } from './paths.js';

const root = fileURLToPath(new URL('..', import.meta.url));
const SUPPORT = join(root, 'test', 'support', 'kafka');
const WORKER = fileURLToPath(new URL('kafka-worker.js', import.meta.url));
const LINES = 250_000;
/** Rounds of each trial; the best counts. The trials take turns. */
const ROUNDS = 3;
const MODES = { enrich: 'one worker', copy: 'a worker that copies', naive: 'the same client, JSON.parse, maxmind' };
const GOALS = { copy: 0.8, naive: 3 };

export async function run() {
  section('Streams on Kafka, records of one line');
  const installed = spawnSync(join(SUPPORT, 'install.sh'), { encoding: 'utf8' });
  if (installed.status !== 0) {
    row('Kafka', 'not installed', 'java, mvn and the network', false);
    return;
  }
  const cache = installed.stdout.trim();
  const folder = mkdtempSync(join(tmpdir(), 'ipatlas-bench-'));
  const [port, controller] = [await freePort(), await freePort()];
  const properties = [
    ...['process.roles=broker,controller', 'node.id=1', `controller.quorum.voters=1@127.0.0.1:${controller}`],
    `listeners=PLAINTEXT://127.0.0.1:${port},CONTROLLER://127.0.0.1:${controller}`,
    ...[
      'controller.listener.names=CONTROLLER',
      'listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT',
    ],
    ...[`log.dirs=${join(folder, 'log')}`, 'num.partitions=6', 'group.initial.rebalance.delay.ms=0'],
    ...['offsets.topic', 'transaction.state.log', 'share.coordinator.state.topic'].map(
      (name) => `${name}.replication.factor=1`,
    ),
    ...['transaction.state.log.min.isr=1', 'offsets.topic.num.partitions=3', 'transaction.state.log.num.partitions=3'],
  ];
  writeFileSync(join(folder, 'properties'), properties.join('\n'));
  const java = (...args) => ['-Xmx1g', '-cp', join(cache, 'lib', '*'), ...args];
  const format = ['format', '-t', 'MkU3OEVBNTcwNTJENDM2Qg', '-c', join(folder, 'properties')];
  execFileSync('java', java('kafka.tools.StorageTool', ...format), { stdio: 'pipe' });
  const broker = spawn('java', java('kafka.Kafka', join(folder, 'properties')), { stdio: 'ignore' });
  try {
    const path = join(folder, 'lines.jsonl');
    writeLines(path, LINES);
    const program = (mode, to) => {
      const args = ['--import', join(SUPPORT, 'client-hook.js'), WORKER, `127.0.0.1:${port}`, mode, 'in', to];
      const env = { ...process.env, KAFKA_CACHE: cache };
      return execFileSync(join(cache, 'node'), [...args, dataDirectory(), path], {
        env,
        encoding: 'utf8',
      });
    };
    program('fill', '-');
    const speed = { enrich: 0, copy: 0, naive: 0 };
    const cost = { enrich: Number.POSITIVE_INFINITY, copy: Number.POSITIVE_INFINITY, naive: Number.POSITIVE_INFINITY };
    for (let round = 0; round < ROUNDS; round++) {
      for (const mode of Object.keys(MODES)) {
        const { perSecond, coreSeconds } = JSON.parse(program(mode, `${mode}-${round}`));
        speed[mode] = Math.max(speed[mode], perSecond);
        cost[mode] = Math.min(cost[mode], coreSeconds);
      }
    }
    for (const [mode, name] of Object.entries(MODES)) {
      const cpu = `${cost[mode].toFixed(1)} core s a million`;
      row(name, `${(speed[mode] / 1000).toFixed(0)} 000 records/s, ${cpu}`);
    }
    for (const [mode, goal] of Object.entries(GOALS)) {
      const ratio = speed.enrich / speed[mode];
      row(`one worker: against ${MODES[mode]}`, `${ratio.toFixed(2)} ×`, `≥ ${goal} ×`, ratio >= goal);
    }
  } finally {
    broker.kill('SIGKILL');
    rmSync(folder, { recursive: true, force: true });
  }
}
