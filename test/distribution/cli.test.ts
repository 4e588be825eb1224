/** The commands as a user runs them, and a server that follows a repository. */
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { rollBack } from '../../pipeline/operations/rollback.js';
import { createKey } from '../../src/api/keys/key-store.js';
import { parseCommandLine } from '../../src/cli/command-line.js';
import { loadCommand } from '../../src/cli/commands.js';
import { secondsToExpiry } from '../../src/database/pull-state.js';
import { type AtlasError, ERROR_TABLE } from '../../src/errors.js';
import { finished, ipatlas, shell, start } from '../support/cli.js';
import { ipatlas as inProcess } from '../support/in-process.js';
import { publishBlocks } from '../support/release.js';
import { type ServeProcess, serve, until } from '../support/serve.js';
import { Node, Origin, scratchDir, serveStatic, world } from './support.js';

let dir: string;
beforeEach(() => {
  dir = scratchDir();
});

describe('the commands', () => {
  it('make a repository, add a release, and pull it', async () => {
    const dataDir = join(dir, 'origin');
    const id = await publishBlocks(dataDir, world('AA'));
    const repo = join(dir, 'repo');
    const run = (...args: string[]) => inProcess(['repo', ...args, '--data', dataDir, '--json']);
    const made = await run('init', repo, '--threshold', 'root=1/2', '--expires', 'timestamp=9');
    expect(made, made.stderr).toMatchObject({ code: 0, stderr: expect.stringContaining(`give ${repo}/root.json`) });
    expect(JSON.parse(made.stdout)).toMatchObject({ release: null, roles: { root: { version: 1 } } });
    expect(readdirSync(join(dataDir, 'signing-keys'))).toHaveLength(5);
    expect(JSON.parse((await run('add', repo)).stdout)).toMatchObject({ release: id });

    const server = await serveStatic(repo);
    const node = new Node(dir);
    const pull = (...args: string[]) =>
      inProcess(['pull', ...args, '--data', node.dataDir, '--sources', node.sourcesFile, '--json']);
    const steps = [{ export: 'nginx', output: 'geo.conf' }, { run: ['bash', '-c', 'echo $IPATLAS_RELEASE > told'] }];
    writeFileSync(join(dir, 'steps.json'), JSON.stringify(steps));
    const after = ['--after', join(dir, 'steps.json')];
    const pulled = await pull(server.url, '--root', join(repo, 'root.json'), ...after);
    expect(pulled, pulled.stderr).toMatchObject({ code: 0 });
    expect(readFileSync(join(dir, 'told'), 'utf8')).toBe(`${id}\n`);
    expect(readFileSync(join(dir, 'geo.conf'), 'utf8')).toMatch(/^\S+ AA;$/m);
    expect(JSON.parse(pulled.stdout)).toEqual({ release: id, outcome: 'published' });
    expect(await inProcess(['verify', '--data', node.dataDir])).toMatchObject({ code: 0 });
    server.dir = join(dir, 'nothing');
    expect(await pull(server.url, '--root', join(repo, 'root.json'))).toMatchObject({
      code: 6,
      stdout: '',
      stderr: expect.stringMatching(/timestamp\.json: the server answered 404/),
    });
  });

  it('report a full disk as such at every step, and a later pull continues', async () => {
    const origin = new Origin(dir);
    let id = '';
    for (const code of ['AA', 'BB', 'CC', 'DD', 'EE']) id = await origin.add(world(code));
    const server = await serveStatic(origin.repo);
    const node = new Node(dir);
    // The limits are below the size of the root, and below that of the range file.
    expect(statSync(origin.metadataPath('1.root.json')).size).toBeGreaterThan(2048);
    for (const kilobytes of [2, 64]) {
      // A limit on the size of files, since a full disk cannot be had without privileges; see setrlimit(2).
      const args = `pull ${server.url} --root '${origin.repo}/root.json' --sources '${node.sourcesFile}'`;
      const command = `ulimit -f ${kilobytes}; exec "$NODE" "$MAIN" ${args} --data "$DATA"`;
      const { code, stderr } = await shell(command, { DATA: node.dataDir });
      expect(stderr).toMatch(/ipatlas: the data directory [^\n]* cannot be written [^\n]*free space/);
      expect(code).toBe(1);
      const state = JSON.parse(readFileSync(join(node.dataDir, 'pull', 'state.json'), 'utf8'));
      expect(state).toMatchObject({ problem: { code: 'E_DISK' }, succeeded: null });
    }
    expect(await node.pull(server.url, origin.root())).toMatchObject({ outcome: 'published' });
    expect(node.current()).toBe(id);
  });

  it.each<[string[], RegExp]>([
    [['repo', 'init'], /an argument is missing; write ".*"; see "ipatlas repo init --help"/],
    [['repo', 'make', 'DIR'], /use "repo init", "repo add"/],
    [['repo', 'init', 'DIR', 'MORE'], /unexpected argument/],
    [['repo', 'init', 'DIR', '--threshold', 'root=3/2'], /--threshold "root=3\/2" is not valid/],
    [['repo', 'init', 'DIR', '--threshold', 'root=0/2'], /is not valid/],
    [['repo', 'init', 'DIR', '--threshold', 'page=1/2'], /"page" is not a role/],
    [['repo', 'init', 'DIR', '--expires', 'root=0'], /--expires "root=0" is not valid/],
    [['repo', 'init', 'DIR', '--role', 'root'], /--role does not go with "repo init"/],
    [['repo', 'rotate', 'DIR'], /name the roles/],
    [['repo', 'rotate', 'DIR', '--role', 'root,x'], /"x" is not a role/],
    [['repo', 'add', 'DIR', '--threshold', 'root=1/1'], /does not go with "repo add"/],
    [['repo', 'refresh', 'DIR'], /there is no repository in .*DIR/],
    [['pull', 'http://127.0.0.1:9'], /--root is missing/],
    [['pull', 'ftp://127.0.0.1/', '--root', 'FILE'], /is not the address of a repository/],
    [['pull', 'rubbish', '--root', 'FILE'], /is not the address of a repository/],
    [['pull', 'http://127.0.0.1/?a=b', '--root', 'FILE'], /no query/],
    [['pull', 'http://127.0.0.1/', '--root', 'nowhere.json'], /--root nowhere\.json cannot be read/],
    [['pull', 'http://127.0.0.1/', '--root', 'FILE', '--jitter', '1'], /--jitter goes with --schedule/],
    [['pull', 'http://127.0.0.1/', '--root', 'FILE', '--force', '--schedule', '* * * * *'], /--force does not go/],
    [['pull', 'http://127.0.0.1/', '--root', 'FILE', '--schedule', 'often'], /is not a cron pattern/],
  ])('%j: exit code 2', async (args, message) => {
    writeFileSync(join(dir, 'FILE'), '{}');
    // DIR and FILE are in the folder of the test.
    const [name = '', ...rest] = args.map((text) => (/^(DIR|FILE)$/.test(text) ? join(dir, text) : text));
    const { command } = await loadCommand(name);
    const run = async () =>
      command.run({ dataDir: join(dir, 'data'), seed: 'never', ...(await parseCommandLine(name, command, rest)) });
    const { code, message: said } = (await run().catch((error: unknown) => error)) as AtlasError;
    expect([ERROR_TABLE[code].exit, said]).toEqual([2, expect.stringMatching(message)]);
  });
});

describe('a server whose node pulls on a schedule', () => {
  it('answers from each release that the origin adds or goes back to, without a failed request', {
    timeout: 240_000,
  }, async () => {
    const origin = new Origin(dir);
    const first = await origin.add(world('AA'));
    const web = await serveStatic(origin.repo);
    const node = new Node(dir);
    expect(await node.pull(web.url, origin.root())).toMatchObject({ outcome: 'published' });
    const key = createKey(node.dataDir).key;
    const server: ServeProcess = await serve(node.dataDir, '--metrics-port', '0');
    const puller = start([
      ...['pull', web.url, '--root', join(origin.repo, 'root.json'), '--schedule', '* * * * * *', '--jitter', '0'],
      ...['--data', node.dataDir, '--sources', node.sourcesFile],
    ]);
    const pulling = finished(puller);
    try {
      const statuses = new Set<number>();
      const release = async (): Promise<string | null> => {
        const response = await fetch(`${server.url}/api/lookup/80.0.0.1?apikey=${key}`);
        statuses.add(response.status);
        await response.text();
        return response.headers.get('x-database-release');
      };
      expect(await release()).toBe(first);
      const second = await origin.add(world('BB'));
      await until(async () => (await release()) === second, 'the second release');
      rollBack(origin.dataDir, undefined);
      expect(
        await ipatlas(['repo', 'add', origin.repo, '--keys', origin.keys, '--data', origin.dataDir]),
      ).toMatchObject({ code: 0, stdout: expect.stringContaining(first) });
      await until(async () => (await release()) === first, 'the first release again');
      expect([...statuses]).toEqual([200]);

      const { url } = await server.logged('metrics');
      const metrics = async (): Promise<string> => (await fetch(String(url))).text();
      expect(await metrics()).toMatch(/^ipatlas_pull_failed 0$/m);
      expect(await metrics()).toMatch(/^ipatlas_release_signature_expires_seconds 1\d{5}/m);
      // The origin is replaced by one whose timestamp has expired.
      const old = join(dir, 'old');
      origin.refresh({ now: new Date(Date.now() - 3 * 86_400_000) });
      cpSync(origin.repo, old, { recursive: true });
      web.dir = old;
      await until(async () => /^ipatlas_pull_failed 1$/m.test(await metrics()), 'the failed pull');
      expect(await release()).toBe(first);
      expect(await metrics()).toMatch(/^ipatlas_pull_success_age_seconds \d/m);
      puller.kill('SIGTERM');
      const { code, stderr } = await pulling;
      expect(code).toBe(0);
      expect(stderr).toMatch(/next pull at/);
      expect(stderr).toMatch(/the timestamp metadata of .* has expired/);

      // Later, the signatures that this node has seen have expired as well.
      const path = join(node.dataDir, 'pull', 'state.json');
      const state = JSON.parse(readFileSync(path, 'utf8'));
      expect(secondsToExpiry(state, Date.now() + 3 * 86_400_000)).toBeLessThan(0);
      const expired = { ...state, expires: { ...state.expires, timestamp: '2020-01-01T00:00:00Z' } };
      writeFileSync(path, JSON.stringify(expired));
      expect(await metrics()).toMatch(/^ipatlas_release_signature_expires_seconds -\d+/m);
      for (const rubbish of ['', '{', 'null', '[]', '{}']) {
        writeFileSync(path, rubbish);
        expect(await metrics()).toContain('ipatlas_release_info');
      }
      rmSync(path);
      mkdirSync(path);
      expect(await metrics()).not.toMatch(/^ipatlas_pull_failed \d/m);
    } finally {
      puller.kill('SIGTERM');
      await server.stop();
    }
  });
});
