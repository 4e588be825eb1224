/**
 * Runs the console blocks of a Markdown file: each line that begins with `$ ` is a command, the lines below it are what
 * it prints. All commands of a file run in one shell, one after the other.
 */
import { execFile } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { delimiter, join } from 'node:path';
import { packageFile } from '../../src/package-root.js';
import { ipatlas } from './in-process.js';
import { freePort } from './ports.js';

export interface Step {
  command: string;
  output: string;
}

const BLOCK = /^```console\n([\s\S]*?)^```$/gm;

/** Returns the commands of all console blocks, with their output in the text. */
export function consoleSteps(markdown: string): Step[] {
  return [...markdown.matchAll(BLOCK)].flatMap(([, block]) => stepsOf(block!));
}

function stepsOf(block: string): Step[] {
  const steps: Step[] = [];
  for (const line of block.replace(/\n$/, '').split('\n')) {
    if (line.includes('```')) throw new Error(`a console block does not end before: ${line}`);
    const step = steps.at(-1);
    if (line.startsWith('$ ')) steps.push({ command: line.slice(2), output: '' });
    else if (step === undefined) throw new Error(`a console block begins with output: ${line}`);
    else if (/[|\\]$/.test(step.command) && step.output === '') step.command += `\n${line}`;
    else step.output += `${line}\n`;
  }
  return steps;
}

/** Replaces the outputs in a text by those of a run. */
export function withOutputs(markdown: string, outputs: readonly string[]): string {
  let next = 0;
  return markdown.replaceAll(BLOCK, (_, block: string) => {
    const text = stepsOf(block).map(({ command }) => `$ ${command}\n${outputs[next++]!}`);
    return `\`\`\`console\n${text.join('')}\`\`\``;
  });
}

/** Replaces what differs from run to run: ids, dates, times, keys, hashes, and sizes that depend on SQLite's version. */
export function normalized(output: string): string {
  return inFixedOrder(output)
    .replaceAll(/\d{4}-\d\d-\d\d-[0-9a-f]{12}/g, 'RELEASE')
    .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'INSTANT')
    .replaceAll(/\d{4}-\d\d-\d\d/g, 'DATE')
    .replaceAll(/\d\d:\d\d\b/g, 'TIME')
    .replaceAll(/\d+\.\d+ s\b/g, 'SECONDS')
    .replaceAll(/\d+ days\b/g, 'DAYS')
    .replaceAll(/about [\d.]+ % of IPv4 addresses/g, 'about SHARE of IPv4 addresses')
    .replaceAll(/[\d.]+ [kMG]?B\/s/g, 'SPEED')
    .replaceAll(/ipa_[\w-]{43}/g, 'KEY')
    .replaceAll(/\bkey [0-9a-f]{8}\b/g, 'key ID')
    .replaceAll(/^[0-9a-f]{8} {2}/gm, 'ID  ')
    .replaceAll(/sha256 [0-9a-f]{16}/g, 'SHA')
    .replaceAll(/(?<=bytes )\d+|\d+(?= bytes)|\d+\.\d(?= {2}user-country)/g, 'N')
    .replaceAll(/ {2,}/g, '  ');
}

/** Sorts the lines about single sources, which are fetched and read at the same time. */
function inFixedOrder(output: string): string {
  return output.replaceAll(
    /(^(source "[\w-]+"|[\w-]+): .*\n){2,}/gm,
    (lines) => `${lines.trimEnd().split('\n').sort().join('\n')}\n`,
  );
}

/** The port that the texts name; a run uses a free one in its place. */
const DOCUMENTED_PORT = '8080';

/** Starts the program as it was compiled. */
const PROCESS = `exec '${process.execPath}' '${packageFile('dist/src/cli/start.cjs')}' "$@"`;

/** Lets {@link CommandRunner} run a command, whose arguments and streams are files. A server needs a process of its own. */
const CALL = `[ "$1" = serve ] && ${PROCESS}
call=$(mktemp -d)
printf '%s\\0' "$@" > "$call/args"
cat > "$call/input"
curl -sS --unix-socket "$IPATLAS_RUNNER" "http://runner$call"
cat "$call/stdout"
cat "$call/stderr" >&2
exit "$(cat "$call/code")"`;

/** Runs the commands of a shell in this process, which takes a tenth of the time of a process for each. */
class CommandRunner {
  readonly #cwd: string;
  readonly #env: NodeJS.ProcessEnv;
  readonly #server = createServer((request, response) => {
    this.#run(request.url!).then(
      () => response.end(),
      (error: Error) => response.end(`${error.stack}\n`),
    );
  });

  /** @param socket the path of the socket where it takes calls */
  constructor(cwd: string, env: NodeJS.ProcessEnv, socket: string) {
    this.#cwd = cwd;
    this.#env = env;
    this.#server.listen(socket);
  }

  async #run(call: string): Promise<void> {
    const args = readFileSync(join(call, 'args'), 'utf8').split('\0').slice(0, -1);
    const input = readFileSync(join(call, 'input'));
    const { code, stdout, stderr } = await ipatlas(args, { input, cwd: this.#cwd, env: this.#env });
    for (const [name, text] of Object.entries({ code: String(code), stdout, stderr }))
      writeFileSync(join(call, name), text);
  }

  close(): void {
    this.#server.close();
  }
}

/**
 * Runs commands in one shell. One that ends with `&` continues in the background; the next waits until its server answers.
 *
 * @param cwd the working directory, with only the files that the commands need
 * @param inProcess runs all but servers in this process
 * @returns what each printed, standard output and error together
 */
export async function runSteps(steps: readonly Step[], cwd: string, inProcess = false): Promise<string[]> {
  const scratch = join(cwd, '.console');
  mkdirSync(join(scratch, 'bin'), { recursive: true });
  writeFileSync(join(scratch, 'bin', 'ipatlas'), `#!/bin/sh\n${inProcess ? CALL : PROCESS}\n`, { mode: 0o755 });
  const port = String(await freePort());
  const ready = `curl -sf --retry 120 --retry-connrefused --retry-delay 1 -o /dev/null http://localhost:${port}/readyz`;
  const script = steps.map(({ command }, index) => {
    const redirect = `> .console/${index} 2>&1`;
    const text = command.replaceAll(DOCUMENTED_PORT, port);
    return text.endsWith(' &')
      ? `${text.slice(0, -2)} > .console/log 2>&1 &\n: ${redirect}\n${ready}` // no braces: the signal is for the command
      : `{ ${text}\n} ${redirect}`;
  });
  script.push('jobs -p | xargs -r kill; wait');
  const user = { HOME: scratch, IPATLAS_DATA: undefined, XDG_DATA_HOME: undefined, LC_ALL: 'C.UTF-8' };
  const env = {
    ...process.env,
    ...user,
    PATH: [join(scratch, 'bin'), process.env.PATH].join(delimiter),
    IPATLAS_RUNNER: join(scratch, 'runner'),
  };
  const runner = inProcess ? new CommandRunner(cwd, user, env.IPATLAS_RUNNER) : undefined;
  await new Promise<void>((resolve, reject) => {
    const options = { cwd, env, timeout: 240_000 };
    const shell = execFile('bash', ['-c', script.join('\n')], options, (error, _, stderr) => {
      // The last command decides the exit code; the only condition is that the shell ended.
      if (error === null || error.killed !== true) resolve();
      else reject(new Error(`the commands did not end: ${stderr}`));
    });
    shell.stdin!.end();
  }).finally(() => runner?.close());
  return steps.map((_, index) => {
    const output = readFileSync(join(scratch, String(index)), 'utf8').replaceAll(port, DOCUMENTED_PORT);
    // In the text, the next command is on a new line.
    return output === '' || output.endsWith('\n') ? output : `${output}\n`;
  });
}
