/** The worker as a process: its flags, its release, its metrics and health, how it stops, and how it connects. */
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdirSync, readFileSync, renameSync, symlinkSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { dirname, join } from 'node:path';
import { type NatsConnection, nkeys } from '@nats-io/transport-node';
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import type { Log } from '../../src/api/log.js';
import { pullStatePath } from '../../src/database/pull-state.js';
import { HEADER } from '../../src/stream/jetstream/headers.js';
import { Operations } from '../../src/stream/operations.js';
import { finished, start } from '../support/cli.js';
import { ipatlas } from '../support/in-process.js';
import { country, publishBlocks, SMALL_WORLD, temporaryDir } from '../support/release.js';
import { until } from '../support/serve.js';
import { makeCertificates, makeCredentials } from './credentials.js';
import { hasNatsServer, managerOf, messagesOf, NatsServerProcess, publishAll, SKIPPED } from './nats.js';

const LINE = '{"ip":"8.8.8.8"}\n';

/** Makes a release current whose range file has one wrong byte. Returns its id. */
async function publishDamaged(dataDir: string): Promise<string> {
  const otherDataDir = temporaryDir();
  const id = await publishBlocks(otherDataDir, [['8.0.0.0/8', country('DE', 'Damaged')]]);
  const dir = join(dataDir, 'releases', id);
  cpSync(join(otherDataDir, 'releases', id), dir, { recursive: true });
  const file = join(dir, 'ranges.ipr');
  const bytes = readFileSync(file);
  bytes[bytes.length - 1]! ^= 1;
  writeFileSync(file, bytes);
  symlinkSync(join('releases', id), join(dataDir, 'next'));
  renameSync(join(dataDir, 'next'), join(dataDir, 'current'));
  return id;
}

if (!hasNatsServer()) it(SKIPPED, ({ skip }) => skip(SKIPPED));

describe.skipIf(!hasNatsServer())('ipatlas stream', () => {
  let dataDir: string;
  let server: NatsServerProcess;
  let connection: NatsConnection;

  beforeAll(async () => {
    dataDir = temporaryDir();
    await publishBlocks(dataDir, SMALL_WORLD, undefined, 0, [], [['8.8.8.0/24', { site: 'cloud' }]]);
    server = await NatsServerProcess.start();
    connection = await server.connect();
  });
  afterAll(async () => {
    await connection.close();
    await server.remove();
  });

  /** The arguments for streams that end in a suffix. */
  const args = (suffix: string, ...more: string[]): string[] => [
    ...['stream', '--server', server.url, '--from', `IN${suffix}`, '--to', `OUT${suffix}`],
    ...['--max-bytes', '100000000', '--data', dataDir, ...more],
  ];
  const outputOf = async (suffix: string): Promise<string[]> =>
    (await messagesOf(connection, `OUT${suffix}`)).map(({ data }) => Buffer.from(data).toString());

  it('follows the current release, shows metrics and health, and stops when told to', async () => {
    const ownDataDir = temporaryDir();
    const first = await publishBlocks(ownDataDir, SMALL_WORLD);
    const child = start([
      ...args('A', '--init', '--metrics-host', '127.0.0.2', '--metrics-port', '0'),
      '--data',
      ownDataDir,
    ]);
    onTestFinished(() => void child.kill('SIGKILL'));
    let log = '';
    child.stderr!.setEncoding('utf8').on('data', (chunk: string) => {
      log += chunk;
    });
    const ended = finished(child);
    const port = await until(() => /"port":(\d+)/.exec(log)?.[1], 'the port of the metrics');
    const get = async (path: string) => {
      const response = await fetch(`http://127.0.0.2:${port}${path}`);
      return { status: response.status, text: await response.text() };
    };
    const metric = async (name: string): Promise<number> =>
      Number(new RegExp(`^ipatlas_${name} (\\S+)$`, 'm').exec((await get('/metrics')).text)?.[1]);

    await publishAll(connection, 'ina.x', [LINE, LINE]);
    await until(async () => (await metric('stream_messages_total')) >= 2, 'two messages');
    expect(await get('/healthz')).toMatchObject({ status: 200 });
    expect(await get('/readyz')).toMatchObject({ status: 200 });
    expect(await get('/other')).toMatchObject({ status: 404 });
    expect(await metric('stream_lag_messages')).toBe(0);
    expect(await metric('stream_input_bytes_total')).toBe(2 * LINE.length);
    expect(await metric('release_age_seconds')).toBeGreaterThan(0);
    expect(await metric('pull_failed')).toBeNaN(); // no pull yet
    const state = { url: 'https://origin.example/', checked: '2026-01-01T00:00:00Z', succeeded: null, expires: {} };
    mkdirSync(dirname(pullStatePath(ownDataDir)));
    writeFileSync(pullStatePath(ownDataDir), JSON.stringify({ ...state, problem: { code: 'E_FETCH', message: '' } }));
    expect(await metric('pull_failed')).toBe(1);

    const second = await publishBlocks(ownDataDir, [['8.0.0.0/8', country('XK', 'Elsewhere')]]);
    await until(() => log.includes(second), 'the second release');
    await publishAll(connection, 'ina.x', [LINE]);
    await until(async () => (await metric('stream_messages_total')) >= 3, 'the third message');
    const messages = await messagesOf(connection, 'OUTA');
    expect(messages.map(({ header }) => header.get(HEADER.release))).toEqual([first, first, second]);
    expect(messages.map(({ data }) => /"country_code":"(..)"/.exec(Buffer.from(data).toString())![1])).toEqual([
      ...['US', 'US', 'XK'],
    ]);
    expect(messages[2]!.subject).toBe('outa.3');
    expect(messages[2]!.header.get(HEADER.source)).toMatch(/^INA 3 \d{19}$/);

    const damaged = await publishDamaged(ownDataDir);
    await until(() => log.includes('the new release is not used'), 'the refusal of a damaged release');
    expect(log).toMatch(new RegExp(`${damaged}/ranges\\.ipr does not match the SHA-256 in its manifest`));
    await publishAll(connection, 'ina.x', [LINE]);
    await until(async () => (await metric('stream_messages_total')) >= 4, 'the fourth message');
    expect((await messagesOf(connection, 'OUTA'))[3]!.header.get(HEADER.release)).toBe(second);

    await server.kill();
    await until(async () => (await get('/readyz')).status === 503, 'the loss of the server');
    expect(await get('/healthz')).toMatchObject({ status: 200 });
    expect(await metric('stream_connected')).toBe(0);
    expect(await metric('stream_lag_messages')).toBeNaN(); // not there
    await server.resume();
    await until(async () => (await get('/readyz')).status === 200, 'the return of the server');
    await publishAll(connection, 'ina.x', [LINE]);
    // The server may have forgotten the last acknowledgments, and deliver and count those messages again.
    await until(async () => (await metric('stream_messages_total')) >= 5, 'the fifth message');
    await until(async () => (await outputOf('A')).length >= 5, 'the output of the fifth message');
    expect((await messagesOf(connection, 'OUTA')).map(({ subject }) => subject)).toEqual([
      ...['outa.1', 'outa.2', 'outa.3', 'outa.4', 'outa.5'],
    ]);

    child.kill('SIGTERM');
    expect(await ended).toMatchObject({ code: 0 });
    expect(log).toContain('"msg":"stopped"');
    // Nothing that a message holds.
    expect(log).not.toContain('8.8.8.8');
  });

  it('says what --init creates, and creates nothing a second time', async () => {
    const first = await ipatlas(args('B', '--init', '--once'));
    expect(first.code, first.stderr).toBe(0);
    expect(first.stderr.match(/created the (stream|consumer) \w+/g)).toEqual([
      ...['created the stream INB', 'created the stream OUTB', 'created the stream OUTB_REJECTS'],
      'created the consumer ipatlas_OUTB',
    ]);
    const second = await ipatlas(args('B', '--init', '--once'));
    expect(second).toMatchObject({ code: 0, stderr: expect.not.stringContaining('created') });
  });

  it('begins at a sequence or at a time', async () => {
    const manager = await managerOf(connection);
    await manager.streams.add({ name: 'INC', subjects: ['inc.>'] });
    await publishAll(connection, 'inc.x', ['{"n":1}\n', '{"n":2}\n', '{"n":3}\n', '{"n":4}\n']);
    const fromSequence = [...args('C', '--init', '--once', '--from-seq', '3')];
    expect(await ipatlas(fromSequence)).toMatchObject({ code: 0 });
    expect(await outputOf('C')).toEqual(['{"n":3,"geo":null}\n', '{"n":4,"geo":null}\n']);
    const read = await ipatlas(args('C', '--read', '--once', '--from-seq', '4'));
    expect(read).toMatchObject({ code: 0, stdout: '{"n":4,"geo":null}\n' });

    const { time } = (await manager.streams.getMessage('INC', { seq: 2 }))!;
    const other = ['--to', 'OUTC2', '--init', '--once', '--from-time', time.toISOString()];
    expect(await ipatlas(args('C', ...other))).toMatchObject({ code: 0 });
    // The time is cut to milliseconds, in which the first message may have come as well.
    expect((await outputOf('C2')).slice(-3)).toEqual([2, 3, 4].map((n) => `{"n":${n},"geo":null}\n`));

    const another = await ipatlas(args('C', '--once', '--from-seq', '2'));
    expect(another).toMatchObject({ code: 2, stderr: expect.stringContaining('began at another message') });
  });

  it('keeps the order of the source with --ordered, and does not mix the two kinds of workers', async () => {
    expect(await ipatlas(args('K', '--ordered', '--init', '--once'))).toMatchObject({ code: 0 });
    await publishAll(connection, 'ink.x', ['{"n":1}\n', '{"n":2}\n', '{"n":3}']);
    expect(await ipatlas(args('K', '--ordered', '--once'))).toMatchObject({ code: 0 });
    expect(await outputOf('K')).toEqual(['{"n":1,"geo":null}\n', '{"n":2,"geo":null}\n', '{"n":3,"geo":null}']);
    const read = await ipatlas(args('K', '--ordered', '--read', '--once', '--from-seq', '2'));
    expect(read).toMatchObject({ code: 0, stdout: '{"n":2,"geo":null}\n{"n":3,"geo":null}' });
    const unordered = await ipatlas(args('K', '--read', '--once'));
    expect(unordered).toMatchObject({ code: 2, stderr: expect.stringContaining('add --ordered; if not, name') });
    expect(unordered.stderr).not.toContain('--init');
    expect(await ipatlas(args('K', '--init', '--once'))).toMatchObject({ code: 0 });
    const mixed = await ipatlas(args('K', '--ordered', '--once'));
    expect(mixed).toMatchObject({ code: 2, stderr: expect.stringContaining('OUTK has workers without --ordered') });
  });

  it('takes the flags of enrich, and labels', async () => {
    await ipatlas(args('D', '--init', '--once'));
    await publishAll(connection, 'ind.x', ['{"client":{"ip":"8.8.8.8"}}\nbroken\n']);
    const flags = ['--field', 'client.ip=place', '--add', 'country_code,site', '--on-invalid', 'drop', '--once'];
    expect(await ipatlas(args('D', ...flags))).toMatchObject({ code: 0 });
    expect(await outputOf('D')).toEqual(['{"client":{"ip":"8.8.8.8"},"place":{"country_code":"US","site":"cloud"}}\n']);
  });

  it('takes the name of a log, and keeps subjects', async () => {
    await ipatlas(args('N', '--init', '--once', '--keep-subjects'));
    const line = 'Jan  1 00:00:00 fw kernel: IN=eth0 OUT= SRC=8.8.8.8 DST=10.0.0.1 LEN=52';
    await publishAll(connection, 'inn.fw.eu', [`${line}\n`]);
    const flags = ['--log', 'iptables', '--add', 'country_code', '--once'];
    expect(await ipatlas(args('N', ...flags, '--keep-subjects'))).toMatchObject({ code: 0 });
    const [{ subject, data } = expect.fail('no output')] = await messagesOf(connection, 'OUTN');
    expect(subject).toBe('outn.1.inn.fw.eu');
    expect(Buffer.from(data).toString()).toBe(`${line} SRC_country_code=US DST_country_code=\n`);
    expect(await ipatlas(args('N', '--read', '--once'))).toMatchObject({
      code: 0,
      stdout: Buffer.from(data).toString(),
    });
  });

  it('takes the formats of enrich, each message a document of its own', async () => {
    await ipatlas(args('G', '--init', '--once'));
    await publishAll(connection, 'ing.x', ['name,ip\na,8.8.8.8\n', 'ip\n10.0.0.1', 'ip\n8.8.8.8,too,many\n']);
    const flags = ['--format', 'csv', '--add', 'country_code', '--on-invalid', 'fail', '--once'];
    expect(await ipatlas(args('G', ...flags))).toMatchObject({ code: 0 });
    const output = (await outputOf('G')).sort();
    expect(output).toEqual(['', 'ip,geo_country_code\n10.0.0.1,', 'name,ip,geo_country_code\na,8.8.8.8,US\n']);
    const split = await ipatlas(args('G', '--format', 'csv', '--on-oversize', 'split'));
    expect(split).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('goes with --format jsonl, '),
    });
  });

  it.each([
    [['--server', 'http://localhost'], /--server must be an address such as/],
    [['--server', 'nats://user:a%zz@localhost'], /in its user and password, "%" is written as %25/],
    [['--to', 'IN'], /must name different streams/],
    [['--to', 'a.b'], /--to "a.b" is not a name/],
    [['--from-seq', '0', '--init'], /--from-seq is "0"; write a whole number from 1/],
    [['--from-seq', '1', '--from-time', '2026-01-01'], /not both/],
    [['--from-time', 'yesterday'], /--from-time "yesterday" is not a time/],
    [['--on-oversize', 'cut'], /--on-oversize is "cut"; it can be split, reject/],
    [['--on-invalid', 'cut'], /--on-invalid is "cut"; it can be keep, drop, fail/],
    [['--creds', '/nowhere/creds'], /--creds \/nowhere\/creds cannot be read/],
    [['--add', 'city'], /city/],
    [['--format', 'json', '--items', 'a..b'], /--items "a\.\.b" has an empty key/],
    [['--items', 'a'], /--items requires --format json/],
    [['--replay-rejects', '--ordered'], /--replay-rejects is not for --ordered/],
    [['--metrics-host', '::'], /--metrics-host needs --metrics-port/],
    [['--filter', 'logs.>.web'], /--filter "logs\.>\.web" is not a subject such as/],
    [['--nkey', '/nowhere/seed'], /--nkey \/nowhere\/seed cannot be read/],
    [['--ordered', '--ack-wait', '5'], /--ack-wait is for workers with acknowledgments/],
    [[], /there is no stream IN on the server; --init creates it/],
  ])('refuses %j', async (flags, message) => {
    const result = await ipatlas(args('', ...flags));
    expect(result).toMatchObject({ code: 2, stdout: '', stderr: expect.stringMatching(message) });
  });

  it('says that a release is missing, and that a server cannot be reached', async () => {
    const empty = temporaryDir();
    const noRelease = await ipatlas([...args('E', '--init', '--once'), '--data', empty]);
    expect(noRelease).toMatchObject({ code: 5 });
    // Nothing was created for a worker that could not begin.
    const { streams } = await managerOf(connection);
    await expect(streams.info('OUTE')).rejects.toThrow('stream not found');

    // A server that accepts connections and says nothing. The client library leaves the connection open.
    const silentUrl = async (connected = (): void => {}): Promise<string> => {
      const silent = createServer(connected).listen(0, '127.0.0.1');
      onTestFinished(() => void silent.close());
      await once(silent, 'listening');
      return `nats://127.0.0.1:${(silent.address() as AddressInfo).port}`;
    };
    const waited = finished(start(args('E', '--server', await silentUrl())));
    let isConnected = false;
    const connected = (): void => {
      isConnected = true;
    };
    const stopped = start(args('E', '--server', await silentUrl(connected)));
    await until(() => isConnected, 'the connection');
    stopped.kill('SIGTERM');
    expect(await finished(stopped)).toMatchObject({ code: 0, signal: null });

    const noServer = await ipatlas(args('E', '--server', 'nats://user:secret@localhost.invalid:1'));
    expect(await waited).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('cannot connect to the NATS server'),
    });
    expect(noServer).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('cannot connect to the NATS server at'),
    });
    expect(noServer.stderr).not.toContain('secret');
  });

  it('says what the size of streams has to do with room on the server', async () => {
    const large = args('L', '--init', '--once', '--max-bytes', String(2 ** 45));
    const result = await ipatlas(large);
    expect(result).toMatchObject({ code: 2, stderr: expect.stringMatching(/cannot create INL: .*--max-bytes/) });
  });

  it('is not ready if a problem lasts, says which, and is ready again after it', async () => {
    let now = 0;
    const silent = { info: () => {}, warn: () => {} } as unknown as Log;
    const operations = new Operations(dataDir, silent, () => now);
    const { events } = operations;
    events.retried('the output is full');
    now = 9_999;
    events.retried('still full', { sequence: 1 });
    expect(operations.lastingProblem).toBeUndefined();
    now = 10_000;
    const server = await operations.serve({ host: '::1', port: 0 }, () => true);
    onTestFinished(() => void server.close());
    const ready = async () => {
      const response = await fetch(`http://[::1]:${(server.address() as AddressInfo).port}/readyz`);
      return [response.status, await response.text()];
    };
    expect(await ready()).toEqual([503, 'still full\n']);
    events.done(1, 0);
    expect(await ready()).toEqual([200, 'ready\n']);
  });

  it('logs its progress each minute', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    onTestFinished(() => void vi.useRealTimers());
    const lines: unknown[] = [];
    const log = { info: (...line: unknown[]) => lines.push(line) } as unknown as Log;
    const operations = new Operations(dataDir, log);
    const end = operations.logProgress();
    operations.events.done(1, 0);
    vi.advanceTimersByTime(60_000);
    end();
    await until(() => lines.length > 0, 'the line');
    expect(lines).toEqual([[expect.objectContaining({ messages: 1, rejects: 0 }), 'progress']]);
  });

  it('rejects a table without the column', async () => {
    await ipatlas(args('N', '--init', '--once'));
    await publishAll(connection, 'inn.x', ['name\na\n']);
    expect(await ipatlas(args('N', '--format', 'csv', '--once'))).toMatchObject({ code: 0 });
    // And not "internal_error", which is for bugs.
    const [reject] = await messagesOf(connection, 'OUTN_REJECTS');
    expect(reject!.header.get(HEADER.rejected)).toBe('invalid_line');
  });

  it('connects with a token, an NKey, and the credentials of a NATS user', async () => {
    const dir = temporaryDir();
    const user = nkeys.createUser();
    writeFileSync(join(dir, 'token'), 'a/token\n');
    writeFileSync(join(dir, 'seed'), `${Buffer.from(user.getSeed()).toString()}\n`);
    const credentials = makeCredentials();
    writeFileSync(join(dir, 'creds'), credentials.creds);
    writeFileSync(join(dir, 'others'), makeCredentials().creds);
    const cases = [
      ['--token', 'token', 'authorization { token: "a/token" }'],
      ['--nkey', 'seed', `authorization { users: [ { nkey: ${user.getPublicKey()} } ] }`],
      ['--creds', 'creds', credentials.config],
    ] as const;
    for (const [flag, file, config] of cases) {
      const guarded = await NatsServerProcess.start({ config });
      onTestFinished(() => guarded.remove());
      const flags = ['--server', guarded.url, '--init', '--once'];
      expect(await ipatlas(args('H', ...flags, flag, join(dir, file)))).toMatchObject({ code: 0 });
      const others = flag === '--creds' ? [flag, join(dir, 'others')] : [];
      const refused = await ipatlas(args('H', ...flags, ...others));
      expect(refused).toMatchObject({ code: 2, stderr: expect.stringMatching(/authorization/i) });
    }
  });

  it('connects with a password over TLS, with its own certificate', async ({ skip }) => {
    if (spawnSync('openssl', ['version']).error !== undefined)
      skip('SKIPPED: openssl is not installed; TLS is NOT tested');
    const dir = temporaryDir();
    const file = (name: string): string => join(dir, name);
    makeCertificates(dir);
    const tls = `tls { cert_file: "${file('server.pem')}", key_file: "${file('server.key')}", ca_file: "${file('ca.pem')}", verify: true }`;
    const secure = await NatsServerProcess.start({
      config: `${tls}\nauthorization { user: ann, password: "s3cret/x" }`,
    });
    onTestFinished(() => secure.remove());
    const url = secure.url.replace('tls://', 'tls://ann:s3cret%2Fx@');
    const certificates = [
      '--tls-ca',
      file('ca.pem'),
      '--tls-cert',
      file('client.pem'),
      '--tls-key',
      file('client.key'),
    ];
    const done = await ipatlas(args('F', '--server', url, '--init', '--once', ...certificates));
    expect(done.code, done.stderr).toBe(0);
    const wrong = await ipatlas(args('F', '--server', url.replace('s3cret', 'wrong'), '--once', ...certificates));
    expect(wrong).toMatchObject({ code: 2, stderr: expect.stringMatching(/cannot connect .*authorization/i) });
    const untrusted = await ipatlas(args('F', '--server', url, '--once'));
    expect(untrusted).toMatchObject({ code: 2, stderr: expect.stringMatching(/cannot connect .*certificate/i) });
  });
});
