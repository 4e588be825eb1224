/** Runs the commands of a configuration file, by zx: what it prints goes to files, and no argument means anything to a shell. */
import { closeSync, fstatSync, mkdtempSync, openSync, readSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { AtlasError } from '../../src/errors.js';

/** Names of environment variables whose values are not shown. */
const SECRET_NAME = /KEY|SECRET|TOKEN|PASS/i;
/** Shorter values are too likely to occur in any text. */
const MIN_SECRET_LENGTH = 4;
/** How much of the end of an output a message shows, in bytes and in lines. */
const TAIL_BYTES = 4096;
const TAIL_LINES = 5;
/** How often the size of an output is looked at, in milliseconds. */
const SIZE_CHECK_MS = 200;

export interface CommandOptions {
  cwd: string;
  timeoutMs: number;
  /** The whole environment of the command. */
  env: NodeJS.ProcessEnv;
  /** Where standard output goes, and how much it may be in bytes; by default the end of it is shown if the command fails. */
  output?: { fd: number; maxBytes: number };
}

/** Why a command failed. */
export interface CommandFailure {
  /** The reason and the last lines that it printed, without secrets. */
  message: string;
  /** Whether it would fail again. */
  isPermanent: boolean;
}

/** Returns the milliseconds of a duration that the schemas accept: `30s`, `500ms`, `5m`. */
export function milliseconds(duration: string): number {
  const [, number, unit] = /^(\d+)(ms|s|m)$/.exec(duration)!;
  return Number(number) * (unit === 'ms' ? 1 : unit === 's' ? 1000 : 60_000);
}

/**
 * Refuses a file with commands that others could have written: who writes it runs commands as this user.
 *
 * @throws AtlasError E_CONFIG
 */
export function checkOwner(path: string): void {
  const { uid, mode } = statSync(path);
  const me = process.getuid?.();
  if (me === undefined) return; // Windows
  const why =
    uid !== 0 && uid !== me
      ? 'belongs to another user'
      : (mode & 0o022) !== 0
        ? 'can be written by other users'
        : undefined;
  if (why === undefined) return;
  const advice = 'make it yours or root\'s, and "chmod go-w" it';
  throw new AtlasError('E_CONFIG', `${path} has commands, but ${why}; ${advice}`);
}

/** Returns a text without the values of secret variables. */
export function withoutSecrets(text: string, env: NodeJS.ProcessEnv): string {
  const secrets = Object.entries(env).flatMap(([name, value]) =>
    SECRET_NAME.test(name) && value !== undefined && value.length >= MIN_SECRET_LENGTH ? [value] : [],
  );
  // The longest first: one may be part of another.
  secrets.sort((a, b) => b.length - a.length);
  return secrets.reduce((rest, secret) => rest.replaceAll(secret, '***'), text);
}

/** Returns the last lines of a file. */
function tailOf(fd: number): string {
  const { size } = fstatSync(fd);
  const bytes = Buffer.alloc(Math.min(size, TAIL_BYTES));
  readSync(fd, bytes, 0, bytes.length, size - bytes.length);
  return bytes.toString().trimEnd().split('\n').slice(-TAIL_LINES).join('\n');
}

/**
 * Runs a command to its end. All processes that it started are killed if it takes too long.
 *
 * @param command the program and its arguments
 * @returns undefined if it succeeded
 * @throws AtlasError E_CONFIG if there is no shell to start it with
 */
export async function runCommand(
  command: readonly string[],
  options: CommandOptions,
): Promise<CommandFailure | undefined> {
  const { $, usePowerShell, which } = await import('zx');
  if (which.sync('bash', { nothrow: true }) === null) {
    const hasPowerShell = which.sync('powershell.exe', { nothrow: true }) !== null;
    if (!hasPowerShell)
      throw new AtlasError('E_CONFIG', `commands are started by bash; install it to run ${command[0]}`);
    usePowerShell();
  }
  const { cwd, env, timeoutMs, output } = options;
  const folder = mkdtempSync(join(tmpdir(), 'ipatlas-command-'));
  const log = openSync(join(folder, 'output'), 'w+');
  let isTooLarge = false;
  let watch: NodeJS.Timeout | undefined;
  try {
    const start = Date.now();
    const shell = $({
      ...{ cwd, env, nothrow: true, quiet: true, timeout: `${Math.ceil(timeoutMs)}ms`, timeoutSignal: 'SIGKILL' },
      stdio: ['ignore', output?.fd ?? log, log],
    });
    const running = shell`${command}`;
    if (output !== undefined) {
      watch = setInterval(() => {
        isTooLarge ||= fstatSync(output.fd).size > output.maxBytes;
        if (isTooLarge) running.kill('SIGKILL').catch(() => {}); // It has ended by itself.
      }, SIZE_CHECK_MS);
    }
    const { exitCode, signal } = await running;
    isTooLarge ||= output !== undefined && fstatSync(output.fd).size > output.maxBytes;
    if (exitCode === 0 && !isTooLarge) return undefined;
    const elapsedMs = Date.now() - start;
    const why = isTooLarge
      ? `it wrote more than ${output!.maxBytes} bytes`
      : exitCode === 127
        ? 'it was not found'
        : exitCode !== null && elapsedMs < timeoutMs // else a shell that saw its children end
          ? `its exit code is ${exitCode}`
          : `it was ended by ${signal ?? 'SIGKILL'} after ${Math.round(elapsedMs / 1000)} s (the limit is ${timeoutMs / 1000} s)`;
    const tail = tailOf(log);
    const text = tail === '' ? why : `${why}; its last lines:\n${tail.replace(/^/gm, '    ')}`;
    return { message: withoutSecrets(text, env), isPermanent: isTooLarge || exitCode === 127 };
  } finally {
    clearInterval(watch);
    closeSync(log);
    rmSync(folder, { recursive: true, force: true });
  }
}
