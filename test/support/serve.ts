/** A real `ipatlas serve`, as a separate process. */
import type { ChildProcess } from 'node:child_process';
import { connect, type Socket } from 'node:net';
import { start } from './cli.js';

export interface ServeProcess {
  child: ChildProcess;
  port: number;
  /** Its base address, on the IPv4 loopback address. */
  url: string;
  stdout(): string;
  stderr(): string;
  /** The log's lines. */
  log(): Record<string, unknown>[];
  /** Resolves when the log has a line with this message. */
  logged(message: RegExp | string): Promise<Record<string, unknown>>;
  /** Sends a signal and waits for the end; resolves to the exit code. */
  stop(signal?: NodeJS.Signals): Promise<number | null>;
}

/** Longest time that a test waits for a server, in milliseconds. */
const PATIENCE_MS = 60_000;

/** Waits until `probe` returns something other than undefined or false. */
export async function until<Value>(
  probe: () => Value | Promise<Value>,
  what: string,
  patienceMs = PATIENCE_MS,
): Promise<NonNullable<Value>> {
  const end = performance.now() + patienceMs; // tests stop the other clock
  for (;;) {
    const value = await probe();
    if (value !== undefined && value !== null && value !== false) return value as NonNullable<Value>;
    if (performance.now() > end) throw new Error(`${what} did not happen`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** Starts a server on a free port and waits until it listens. */
export function serve(dataDir: string, ...args: string[]): Promise<ServeProcess> {
  return serveWith({}, dataDir, ...args);
}

/** As {@link serve}, with environment variables. */
export async function serveWith(env: NodeJS.ProcessEnv, dataDir: string, ...args: string[]): Promise<ServeProcess> {
  const child = start(['serve', '--data', dataDir, '--port', '0', ...args], { env });
  let stdout = '';
  let stderr = '';
  child.stdout?.setEncoding('utf8').on('data', (chunk: string) => {
    stdout += chunk;
  });
  child.stderr?.setEncoding('utf8').on('data', (chunk: string) => {
    stderr += chunk;
  });
  const ended = new Promise<number | null>((resolve) => child.once('close', (code) => resolve(code)));
  const log = (): Record<string, unknown>[] =>
    stderr
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line) as Record<string, unknown>);
  const logged = (message: RegExp | string): Promise<Record<string, unknown>> =>
    until(() => {
      if (child.exitCode !== null) throw new Error(`the server ended (${child.exitCode}): ${stderr}`);
      return log().find(({ msg }) => (message instanceof RegExp ? message.test(String(msg)) : msg === message));
    }, `the message ${message}`);
  const { url } = await logged('listening');
  const port = Number(new URL(String(url)).port);
  return {
    child,
    port,
    url: `http://127.0.0.1:${port}`,
    stdout: () => stdout,
    stderr: () => stderr,
    log,
    logged,
    stop(signal = 'SIGTERM') {
      child.kill(signal);
      return ended;
    },
  };
}

/** Sends bytes unchanged and collects the response until the other end closes. */
export function exchange(port: number, bytes: string | Buffer, host = '127.0.0.1'): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect(port, host, () => socket.write(bytes));
    const answer = textFrom(socket);
    socket.setTimeout(PATIENCE_MS, () => socket.destroy());
    socket.on('error', () => {}); // a reset counts as closed: the bytes before it are the response
    socket.on('close', () => resolve(answer()));
  });
}

/** Reads a connection; returns a function that gives what has come so far, one character for each byte. */
export function textFrom(socket: Socket): () => string {
  let text = '';
  socket.setEncoding('latin1').on('data', (chunk: string) => {
    text += chunk;
  });
  return () => text;
}
