/**
 * Runs command lines in the process of the test, from src/, with files in the place of the standard streams. A run takes
 * a tenth of the time of a process. What needs a process, such as pipes and signals, is in cli.ts.
 */
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { program } from '../../src/cli/program.js';
import { exitCodeOf } from '../../src/cli/run.js';
import { STANDARD_FD } from '../../src/standard-streams.js';
import type { Finished, RunOptions } from './cli.js';

/** Ends when the last run has ended: the streams, the environment and the working directory belong to one at a time. */
let lastRun: Promise<unknown> = Promise.resolve();

/** Runs `ipatlas` to its end in this process. Runs that are started together run one after the other. */
export function ipatlas(args: string[], options: RunOptions = {}): Promise<Finished> {
  const run = lastRun.then(() => runNow(args, options));
  lastRun = run.catch(() => {});
  return run;
}

async function runNow(args: string[], options: RunOptions): Promise<Finished> {
  const folder = mkdtempSync(join(tmpdir(), 'ipatlas-streams-'));
  const path = (name: string): string => join(folder, name);
  writeFileSync(path('stdin'), options.input ?? '');
  const fds = {
    input: openSync(path('stdin'), 'r'),
    output: openSync(path('stdout'), 'a'),
    error: openSync(path('stderr'), 'a'),
  };
  const restore = [
    setStandardFds(fds),
    redirect(process.stdout, fds.output),
    redirect(process.stderr, fds.error),
    setEnvironment(options.env ?? {}),
    setDirectory(options.cwd),
  ];
  try {
    const code = await exitCodeOf(() => program(args));
    const [stdout, stderr] = [readFileSync(path('stdout'), 'utf8'), readFileSync(path('stderr'), 'utf8')];
    return { code, signal: null, stdout, stderr };
  } finally {
    for (const undo of restore) undo();
    for (const fd of Object.values(fds)) closeSync(fd);
    rmSync(folder, { recursive: true });
  }
}

function setStandardFds(fds: typeof STANDARD_FD): () => void {
  const before = { ...STANDARD_FD };
  Object.assign(STANDARD_FD, fds);
  return () => void Object.assign(STANDARD_FD, before);
}

/** Makes a stream write to a file, and keeps no listener that a command adds to it. */
function redirect(stream: NodeJS.WriteStream, fd: number): () => void {
  const { write } = stream;
  const listeners = stream.listeners('error');
  stream.write = (chunk: string | Uint8Array, ...rest: unknown[]): boolean => {
    const bytes = Buffer.from(chunk as string);
    for (let at = 0; at < bytes.length; ) at += writeSync(fd, bytes, at);
    const done = rest.at(-1);
    if (typeof done === 'function') process.nextTick(done);
    return true;
  };
  return () => {
    stream.write = write;
    for (const listener of stream.listeners('error')) {
      if (!listeners.includes(listener)) stream.off('error', listener as () => void);
    }
  };
}

function setEnvironment(env: NodeJS.ProcessEnv): () => void {
  const before = Object.keys(env).map((name) => [name, process.env[name]] as const);
  const set = (entries: readonly (readonly [string, string | undefined])[]): void => {
    for (const [name, value] of entries) {
      if (value === undefined) delete process.env[name];
      else process.env[name] = value;
    }
  };
  set(Object.entries(env));
  return () => set(before);
}

function setDirectory(cwd: string | undefined): () => void {
  const before = process.cwd();
  if (cwd !== undefined) process.chdir(cwd);
  return () => process.chdir(before);
}
