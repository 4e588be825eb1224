/** A real gdnsd on the loopback address, and questions to it by dig. */
import { type ChildProcess, execFile, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { until } from './serve.js';

export const GDNSD_SKIPPED =
  'SKIPPED: gdnsd or dig is not installed (scripts/ci-packages.sh installs both); DNS routing is NOT tested with gdnsd';

export function hasGdnsd(): boolean {
  return ['gdnsd', 'dig'].every((program) => spawnSync(program, ['-v']).error === undefined);
}

/** The options of nodes.json for a server of a test. */
export function gdnsdOptions(directory: string, port: number) {
  const [runDir, stateDir] = [join(directory, 'run'), join(directory, 'state')];
  for (const folder of [runDir, stateDir]) mkdirSync(folder, { recursive: true });
  return { listen: [`127.0.0.1:${port}`], run_dir: runDir, state_dir: stateDir };
}

/** Returns what `gdnsd checkconf` says. */
export function checkConfiguration(directory: string): { ok: boolean; messages: string } {
  const { status, stderr } = spawnSync('gdnsd', ['-c', directory, 'checkconf'], { encoding: 'utf8' });
  return { ok: status === 0, messages: stderr };
}

export class GdnsdProcess {
  readonly #port: number;
  readonly #child: ChildProcess;
  messages = '';

  private constructor(port: number, child: ChildProcess) {
    this.#port = port;
    this.#child = child;
    child.stderr!.setEncoding('utf8').on('data', (chunk: string) => {
      this.messages += chunk;
    });
  }

  /** Starts it with a directory of configuration, and waits until it answers. */
  static async start(directory: string, port: number): Promise<GdnsdProcess> {
    const child = spawn('gdnsd', ['-c', directory, 'start'], { stdio: ['ignore', 'ignore', 'pipe'] });
    const gdnsd = new GdnsdProcess(port, child);
    await until(() => {
      if (child.exitCode !== null) throw new Error(`gdnsd ended (${child.exitCode}): ${gdnsd.messages}`);
      return gdnsd.messages.includes('DNS listeners started');
    }, 'the start of gdnsd');
    return gdnsd;
  }

  /**
   * Asks for the addresses of a name.
   *
   * @param subnet of the client, as a resolver sends it
   */
  ask(name: string, subnet?: string, type: 'A' | 'AAAA' = 'A'): string[] {
    const client = subnet === undefined ? [] : [`+subnet=${subnet}`];
    const args = ['@127.0.0.1', '-p', `${this.#port}`, '+short', '+time=5', '+tries=3', ...client, type, name];
    const { status, stdout, stderr } = spawnSync('dig', args, { encoding: 'utf8' });
    if (status !== 0) throw new Error(`dig failed (${status}): ${stdout}${stderr}`);
    return stdout.split('\n').filter((line) => line !== '');
  }

  /**
   * Asks for a name from several networks, by one process; returns the addresses for each. Servers in the process of the test
   * can answer health checks meanwhile.
   */
  async askAll(name: string, subnets: readonly string[], type: 'A' | 'AAAA' = 'A'): Promise<string[][]> {
    const queries = subnets.flatMap((subnet) => [type, name, `+subnet=${subnet}`, '+noall', '+question', '+answer']);
    const args = ['@127.0.0.1', '-p', `${this.#port}`, '+time=5', '+tries=3', ...queries];
    const { stdout } = await promisify(execFile)('dig', args);
    // Each answer follows its question, a line that begins with a semicolon.
    const answers = stdout.split(/^;.*\n/m).slice(1);
    return answers.map((text) => text.split('\n').flatMap((line) => /\sIN\sA+\s(\S+)$/.exec(line)?.[1] ?? []));
  }

  async stop(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    this.#child.kill('SIGTERM');
    await once(this.#child, 'exit');
  }
}
