/** Runs the real command line, as compiled into dist/. */
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { packageFile } from '../../src/package-root.js';

/** The main file of the command line. */
export const MAIN = packageFile('dist/src/cli/start.cjs');

const SCRIPT = '/usr/bin/script';

export interface Finished {
  /** Exit code, or null if a signal ended it. */
  code: number | null;
  signal: NodeJS.Signals | null;
  stdout: string;
  stderr: string;
}

export interface RunOptions {
  input?: string | Buffer;
  env?: NodeJS.ProcessEnv;
  cwd?: string;
}

/** Starts `ipatlas` with these arguments; stdin, stdout and stderr are pipes. */
export function start(args: string[], { env, cwd }: RunOptions = {}, main = MAIN): ChildProcess {
  if (!existsSync(main)) throw new Error('dist/ is missing: run "npm run build" first (make test does)');
  return spawn(process.execPath, [main, ...args], { env: { ...process.env, ...env }, cwd });
}

/** Waits for the end of a process, and collects its output. */
export function finished(child: ChildProcess): Promise<Finished> {
  let stdout = '';
  let stderr = '';
  child.stdout?.setEncoding('utf8').on('data', (chunk: string) => {
    stdout += chunk;
  });
  child.stderr?.setEncoding('utf8').on('data', (chunk: string) => {
    stderr += chunk;
  });
  return new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (code, signal) => resolve({ code, signal, stdout, stderr }));
  });
}

/** Parses lines of JSON. */
export function jsonLines(text: string) {
  return text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
}

/** Runs `ipatlas` to its end. */
export function ipatlas(args: string[], options: RunOptions = {}): Promise<Finished> {
  return withInput(start(args, options), options);
}

/** Runs another copy of the command line, given by its main file, to its end. */
export function ipatlasAt(main: string, args: string[], options: RunOptions = {}): Promise<Finished> {
  return withInput(start(args, options, main), options);
}

function withInput(child: ChildProcess, options: RunOptions): Promise<Finished> {
  child.stdin?.on('error', () => {}); // it may end without reading its input
  child.stdin?.end(options.input ?? '');
  return finished(child);
}

/**
 * Runs a line of bash, in which "$NODE" "$MAIN" is ipatlas.
 *
 * @param env more variables for it
 */
export function shell(line: string, env: NodeJS.ProcessEnv = {}): Promise<Finished> {
  return finished(spawn('bash', ['-c', line], { env: { ...process.env, NODE: process.execPath, MAIN, ...env } }));
}

/**
 * Runs a line of bash, as {@link shell} does, on a new terminal. Its output is that of the terminal, with CRLF.
 *
 * @param answers text to type when the output matches, in this order
 */
export async function terminal(line: string, answers: readonly (readonly [RegExp, string])[] = []): Promise<Finished> {
  // script(1) of util-linux runs a command on a new terminal.
  if (!existsSync(SCRIPT)) throw new Error(`${SCRIPT} is missing: install util-linux (bsdutils on Debian)`);
  const child = spawn(SCRIPT, ['-qec', line, '/dev/null'], {
    env: { ...process.env, SHELL: '/bin/bash', NODE: process.execPath, MAIN },
  });
  const left = [...answers];
  let output = '';
  child.stdout.on('data', (chunk: Buffer) => {
    output += chunk;
    // Typed when it is asked for: closing the terminal earlier would also be an answer.
    if (left[0]?.[0].test(output)) child.stdin.write(left.shift()![1]);
  });
  return finished(child);
}
