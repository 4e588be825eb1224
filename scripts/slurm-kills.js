#!/usr/bin/env node
// Enriches many files as the job array of deploy/slurm on a Slurm of two nodes that it starts on this machine, kills tasks at random,
// drains a node, and compares each file with what one process writes. Needs slurm-wlm and munge (scripts/ci-packages.sh slurm-wlm munge).
// usage: node scripts/slurm-kills.js DATA [FILES [KILLS [SEED]]]   (default: 200 files, 60 kills)
import { execFileSync, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { hostname, tmpdir, userInfo } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { randomWords } from '../bench/measure.js';
import { CLI } from '../bench/paths.js';

const [data, files = 200, kills = 60, seed = 1] = process.argv.slice(2);
const TASKS = 50;
/** Tasks at a time on each of the nodes. */
const NODE_TASKS = 4;
const LINES = 20_000;
/** Longest pause between two kills, in milliseconds: about as long as a task takes for a file. */
const PAUSE_MS = 400;
/** Longest time until all files are there, in milliseconds, after which something hangs. */
const PATIENCE_MS = 900_000;

const words = randomWords(Number(seed));
const random = (limit) => words() % limit;
const dir = mkdtempSync(join(tmpdir(), 'ipatlas-slurm-'));
const path = (name) => join(dir, name);
const daemons = [];
process.on('SIGTERM', () => process.exit(1));
process.on('exit', () => {
  for (const child of daemons.reverse()) child.kill('SIGKILL');
  for (const pid of processesOfTasks()) process.kill(Number(pid), 'SIGKILL');
  rmSync(dir, { recursive: true, force: true });
});

async function freePort() {
  const server = createServer();
  await new Promise((done) => server.listen(0, '127.0.0.1', done));
  const { port } = server.address();
  await new Promise((done) => server.close(done));
  return port;
}

const env = { ...process.env, SLURM_CONF: path('slurm.conf'), PATH: `${path('bin')}:${process.env.PATH}` };
const slurm = (program, ...args) => execFileSync(program, args, { cwd: dir, env, encoding: 'utf8' }).trim();

function startDaemon(name, program, ...args) {
  const child = spawn(program, args, { env, stdio: 'ignore' });
  child.on('exit', (code) => {
    if (!child.killed) console.error(`${name} ended with ${code}: ${path('log')}`);
  });
  daemons.push(child);
}

/** Starts Slurm on the loopback address: a controller and two nodes, told apart by their names and ports. */
async function startSlurm() {
  for (const name of ['log', 'state', 'spool', 'bin']) mkdirSync(path(name), { mode: 0o755 });
  writeFileSync(path('munge.key'), randomBytes(128), { mode: 0o400 });
  const munge = ['--foreground', '--force', `--socket=${path('munge.socket')}`, `--key-file=${path('munge.key')}`];
  startDaemon('munged', 'munged', ...munge, `--pid-file=${path('munge.pid')}`, `--seed-file=${path('munge.seed')}`);
  const host = hostname();
  const nodes = [];
  for (const name of ['node1', 'node2']) {
    mkdirSync(path(`spool/${name}`));
    const size = `CPUs=${NODE_TASKS} RealMemory=16000`;
    nodes.push(`NodeName=${name} NodeHostname=${host} NodeAddr=127.0.0.1 Port=${await freePort()} ${size}`);
  }
  const settings = {
    ...{ ClusterName: 'soak', SlurmctldHost: `${host}(127.0.0.1)`, SlurmctldPort: await freePort() },
    ...{ SlurmUser: userInfo().username, SlurmdUser: userInfo().username },
    ...{ AuthType: 'auth/munge', AuthInfo: `socket=${path('munge.socket')}`, CredType: 'cred/munge' },
    CommunicationParameters: 'NoInAddrAny,NoCtldInAddrAny',
    ...{ StateSaveLocation: path('state'), SlurmdSpoolDir: path('spool/%n') },
    ...{ SlurmctldPidFile: path('slurmctld.pid'), SlurmdPidFile: path('%n.pid') },
    ...{ SlurmctldLogFile: path('log/slurmctld'), SlurmdLogFile: path('log/%n') },
    ...{ ProctrackType: 'proctrack/pgid', TaskPlugin: 'task/none', SwitchType: 'switch/none', MpiDefault: 'none' },
    ...{ JobAcctGatherType: 'jobacct_gather/none', AccountingStorageType: 'accounting_storage/none' },
    ...{ SelectType: 'select/cons_tres', SelectTypeParameters: 'CR_CPU', SlurmdParameters: 'config_overrides' },
    ...{ ReturnToService: 2, KillWait: 2 },
  };
  const lines = Object.entries(settings).map(([name, value]) => `${name}=${value}`);
  writeFileSync(path('slurm.conf'), [...lines, ...nodes, 'PartitionName=soak Nodes=ALL Default=YES', ''].join('\n'));
  startDaemon('slurmctld', 'slurmctld', '-D');
  for (const name of ['node1', 'node2']) startDaemon(name, 'slurmd', '-D', '-N', name);
  for (const begun = performance.now(); ; await sleep(200)) {
    try {
      if (slurm('sinfo', '-h', '-o', '%T %D') === 'idle 2') return;
    } catch (error) {
      if (performance.now() - begun > 60_000) throw error;
    }
    if (performance.now() - begun > 60_000) throw new Error(`the nodes are not idle: ${slurm('sinfo', '-l')}`);
  }
}

/** The processes of tasks: the shell of a share, or its ipatlas. */
function processesOfTasks() {
  return readdirSync('/proc').filter((pid) => {
    try {
      const text = readFileSync(`/proc/${pid}/environ`, 'latin1');
      return text.includes(`SLURM_CONF=${env.SLURM_CONF}\0`) && text.includes('\0SLURM_ARRAY_TASK_ID=');
    } catch {
      return false; // Not a process, or it has ended.
    }
  });
}

function makeFiles() {
  const list = [];
  for (let index = 0; index < files; index++) {
    const name = `logs/host${index % 20}/${index}.jsonl`;
    mkdirSync(path(`logs/host${index % 20}`), { recursive: true });
    const lines = Array.from({ length: LINES }, (_, line) => {
      const [a, b] = [words(), words()];
      return line % 97 === 0
        ? `not JSON ${line}`
        : `{"n":${line},"ip":"${(a >>> 24) % 223}.${(a >>> 16) & 255}.${a & 255}.${b & 255}"}`;
    });
    writeFileSync(path(name), `${lines.join('\n')}\n`);
    list.push(name);
  }
  writeFileSync(path('list'), `${list.join('\n')}\n`);
  return list;
}

try {
  await startSlurm();
  writeFileSync(path('bin/ipatlas'), `#!/bin/sh\nexec '${process.execPath}' '${CLI}' "$@"\n`, { mode: 0o755 });
  for (const name of ['enrich.sbatch', 'enrich-share.sh']) {
    writeFileSync(path(name), readFileSync(fileURLToPath(new URL(`../deploy/slurm/${name}`, import.meta.url))));
  }
  const list = makeFiles();
  const flags = ['--data', resolve(data)];
  const submit = () =>
    slurm(
      ...['sbatch', '--parsable', '--output=log/%A_%a', `--array=0-${TASKS - 1}`],
      ...['enrich.sbatch', 'list', 'enriched', ...flags],
    );
  const missing = () => list.filter((name) => !existsSync(path(`enriched/${name}`))).length;
  const jobs = [];
  const begun = performance.now();
  const killed = { processes: 0, requeued: 0 };
  const count = () => killed.processes + killed.requeued;
  let isDrained = false;
  while (count() < kills || missing() > 0 || slurm('squeue', '-h') !== '') {
    if (performance.now() - begun > PATIENCE_MS) throw new Error(`${missing()} files are missing: ${slurm('squeue')}`);
    if (missing() === 0 && count() < kills) throw new Error(`done after ${count()} kills: files are too small`);
    // Two arrays at once, so that shares also run twice at the same time.
    if (slurm('squeue', '-h') === '') jobs.push(submit(), submit());
    if (!isDrained && count() >= kills / 3) {
      slurm('scontrol', 'update', 'nodename=node2', 'state=drain', 'reason=soak');
      isDrained = true;
    }
    await sleep(random(PAUSE_MS));
    if (count() >= kills) continue;
    const running = slurm('squeue', '-h', '-t', 'running', '-o', '%i').split('\n').filter(Boolean);
    const processes = processesOfTasks();
    // Every sixth is put back to the queue by Slurm, which kills it and starts it again.
    if (count() % 6 === 5 && running.length > 0) {
      try {
        slurm('scontrol', 'requeue', running[random(running.length)]);
        killed.requeued++;
      } catch {} // It has ended meanwhile.
    } else if (processes.length > 0) {
      try {
        process.kill(Number(processes[random(processes.length)]), 'SIGKILL');
        killed.processes++;
      } catch {}
    }
  }
  const seconds = (performance.now() - begun) / 1000;
  if (!slurm('sinfo', '-h', '-N', '-o', '%N %T').includes('node2 drained')) throw new Error('node2 is not drained');

  const written = readdirSync(path('enriched'), { recursive: true, encoding: 'utf8', withFileTypes: true }).filter(
    (each) => each.isFile(),
  );
  const leftovers = written.filter(({ name }) => name.endsWith('.part')).length;
  if (written.length - leftovers !== list.length) throw new Error(`${written.length - leftovers} files were written`);
  execFileSync(path('bin/ipatlas'), ['enrich', ...list, '-o', 'alone', ...flags], { cwd: dir, stdio: 'ignore' });
  const together = Buffer.concat(list.map((name) => readFileSync(path(`enriched/${name}`))));
  if (!readFileSync(path('alone')).equals(together)) throw new Error('the files differ from those of one process');
  console.log(
    `${list.length} files by ${jobs.length} arrays of ${TASKS} tasks in ${seconds.toFixed(0)} s: each once, as one process writes it; ` +
      `${killed.processes} processes killed, ${killed.requeued} tasks requeued, node2 drained; ${leftovers} .part files left`,
  );
} catch (error) {
  console.error(error);
  process.exitCode = 1;
}
process.exit();
