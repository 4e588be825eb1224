/** The primary of several workers, with simulated workers. */
import { EventEmitter } from 'node:events';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { type FromWorker, type ToWorker, WorkerCluster, type WorkerProcess } from '../../src/api/cluster.js';
import { RETRY_MAX_MS, WORKER_HEARTBEAT_MS, WORKER_MISSED_HEARTBEATS, WORKER_RETRY_MS } from '../../src/limits.js';
import { keptLog } from '../support/api.js';

class PlayedWorker extends EventEmitter {
  readonly told: ToWorker[] = [];
  killed = false;
  readonly beat = setInterval(() => this.says({ type: 'alive' }), WORKER_HEARTBEAT_MS);
  readonly process = {
    kill: () => {
      this.killed = true;
      this.emit('exit', null, 'SIGKILL');
    },
  };

  isConnected(): boolean {
    return !this.killed;
  }

  send(message: ToWorker): boolean {
    this.told.push(message);
    return true;
  }

  says(message: FromWorker): void {
    this.emit('message', message);
  }
}

let workers: PlayedWorker[];
let log: ReturnType<typeof keptLog>;
let cluster: WorkerCluster;
beforeEach(() => {
  vi.useFakeTimers();
  workers = [];
  log = keptLog();
  cluster = new WorkerCluster(2, log, () => {
    const worker = new PlayedWorker();
    workers.push(worker);
    return worker as unknown as WorkerProcess;
  });
});
afterEach(() => {
  vi.useRealTimers();
});

const counted = (value: number) => [
  { name: 'n', help: 'h', type: 'counter', values: [{ value, labels: {} }], aggregator: 'sum' },
];

async function listening(): Promise<void> {
  const port = cluster.listen();
  for (const worker of workers) {
    worker.says({ type: 'ready' });
    worker.says({ type: 'listening', port: 8080 });
  }
  expect(await port).toBe(8080);
}

describe('a worker that ends', () => {
  it('is replaced; a replacement that fails is ended, and the wait before the next one grows', async () => {
    cluster.useRelease('/a/release');
    await listening();
    workers[0]!.emit('exit', 1, null);
    const waits: number[] = [];
    for (let failures = 0; failures < 12; failures++) {
      const before = workers.length;
      let waited = 0;
      while (workers.length === before) {
        await vi.advanceTimersByTimeAsync(100);
        waited += 100;
      }
      waits.push(waited);
      const replacement = workers.at(-1)!;
      replacement.says({ type: 'ready' });
      replacement.says({ type: 'failed', code: 'E_USAGE', message: 'cannot listen' });
      await vi.advanceTimersByTimeAsync(0);
      expect(replacement.killed).toBe(true);
    }
    expect(waits.slice(0, 4)).toEqual([1, 2, 4, 8].map((times) => times * WORKER_RETRY_MS));
    expect(waits.at(-1)).toBe(RETRY_MAX_MS);
    expect(workers.filter(({ killed }) => !killed)).toHaveLength(2); // the first one, which said so itself, and the second

    await vi.advanceTimersByTimeAsync(RETRY_MAX_MS);
    const good = workers.at(-1)!;
    good.says({ type: 'ready' });
    good.says({ type: 'listening', port: 8080 });
    await vi.advanceTimersByTimeAsync(RETRY_MAX_MS);
    expect(workers.at(-1)).toBe(good);
    expect(good.told).toEqual([
      { type: 'release', dir: '/a/release' },
      { type: 'listen', secret: expect.stringMatching(/^[\w+/]{43}=$/) },
    ]);
    // After a success, the waits start again at the shortest.
    good.emit('exit', 1, null);
    await vi.advanceTimersByTimeAsync(WORKER_RETRY_MS);
    expect(workers.at(-1)).not.toBe(good);
  });

  it('when the service starts makes the service fail', async () => {
    const port = cluster.listen();
    const failed = expect(port).rejects.toThrow('cannot listen');
    workers[0]!.says({ type: 'failed', code: 'E_USAGE', message: 'cannot listen' });
    await failed;
    expect(workers[0]!.killed).toBe(true);
  });
});

describe('a release that a worker cannot open', () => {
  it('is offered again with growing waits while it is current', async () => {
    await listening();
    cluster.useRelease('/first');
    const [worker] = workers;
    const offers = () => worker!.told.filter((message) => message.type === 'release').map(({ dir }) => dir);
    worker!.says({ type: 'release_failed', dir: '/first', message: 'EMFILE' });
    await vi.advanceTimersByTimeAsync(WORKER_RETRY_MS);
    expect(offers()).toEqual(['/first', '/first']);
    worker!.says({ type: 'release_failed', dir: '/first', message: 'EMFILE' });
    await vi.advanceTimersByTimeAsync(WORKER_RETRY_MS);
    expect(offers()).toHaveLength(2);
    await vi.advanceTimersByTimeAsync(WORKER_RETRY_MS);
    expect(offers()).toHaveLength(3);
    worker!.says({ type: 'release_failed', dir: '/first', message: 'EMFILE' });
    cluster.useRelease('/second');
    await vi.advanceTimersByTimeAsync(RETRY_MAX_MS);
    expect(offers()).toEqual(['/first', '/first', '/first', '/second']);
    expect(log.lines.filter(([, message]) => message.includes('could not open a release'))).toHaveLength(3);
  });
});

describe('a worker that stopped listening', () => {
  const freed = () => workers.map(({ told }) => told.some(({ type }) => type === 'port_free'));

  it('closes its connections only when no other one listens, if all stop', async () => {
    await listening();
    const stopped = cluster.stop();
    workers[0]!.says({ type: 'stopped_listening' });
    expect(freed()).toEqual([false, false]);
    workers[1]!.says({ type: 'stopped_listening' });
    expect(freed()).toEqual([true, true]);
    for (const worker of workers) worker.emit('exit', 0, null);
    expect(await stopped).toBe(true);
  });

  it('does not wait for one that ended', async () => {
    await listening();
    void cluster.stop();
    workers[0]!.says({ type: 'stopped_listening' });
    workers[1]!.emit('exit', 1, null);
    expect(freed()).toEqual([true, false]);
  });

  it('closes its connections at once if it is the only one to stop, and the others do not wait for it later', async () => {
    await listening();
    workers[0]!.says({ type: 'stopped_listening' });
    expect(freed()).toEqual([true, false]);
    void cluster.stop();
    workers[1]!.says({ type: 'stopped_listening' });
    expect(freed()).toEqual([true, true]);
  });
});

it('a worker that is silent is ended and replaced; one that says that it is alive is not', async () => {
  await listening();
  const [silent, alive] = workers;
  clearInterval(silent!.beat);
  await vi.advanceTimersByTimeAsync(WORKER_MISSED_HEARTBEATS * WORKER_HEARTBEAT_MS);
  expect(silent!.killed).toBe(false);
  await vi.advanceTimersByTimeAsync(2 * WORKER_HEARTBEAT_MS);
  expect([silent!.killed, alive!.killed]).toEqual([true, false]);
  await vi.advanceTimersByTimeAsync(WORKER_RETRY_MS);
  expect(workers).toHaveLength(3);
});

it('the metrics come within five seconds without those of a worker that is silent, and say so', async () => {
  await listening();
  const text = cluster.metrics();
  workers[0]!.says({ type: 'metrics', values: counted(3) as never });
  await vi.advanceTimersByTimeAsync(5_000);
  expect(await Promise.race([text, 'nothing'])).toMatch(/^n 3$[\s\S]*^ipatlas_workers_silent 1$/m);
  const both = cluster.metrics();
  for (const worker of workers) worker.says({ type: 'metrics', values: counted(3) as never });
  expect(await both).toMatch(/^n 6$[\s\S]*^ipatlas_workers_silent 0$/m);
});

it('workers share one count of a key', async () => {
  await listening();
  const [one, other] = workers;
  const ask = (worker: PlayedWorker, request: number, needed: number) =>
    worker.says({ type: 'ask', request, question: { do: 'reserve', keyId: 'k', limit: 10, needed, upTo: needed } });
  ask(one!, 1, 4);
  ask(other!, 1, 7);
  ask(other!, 2, 6);
  await vi.advanceTimersByTimeAsync(0);
  // The other one learns what is left, so that its answers do not show more than those of this one.
  expect(other!.told).toContainEqual({ type: 'used', keyId: 'k', used: 4 });
  const grants = (worker: PlayedWorker) =>
    worker.told.flatMap((message) =>
      message.type === 'answer' && 'reserved' in message.answer ? [[message.request, message.answer.reserved]] : [],
    );
  expect([grants(one!), grants(other!)]).toEqual([
    [[1, 4]],
    [
      [1, 0],
      [2, 6],
    ],
  ]);
});

it('the metrics are those of the workers that can answer: not of one that starts, nor of one that ends meanwhile', async () => {
  await listening();
  workers[1]!.emit('exit', 1, null);
  await vi.advanceTimersByTimeAsync(WORKER_RETRY_MS);
  expect(workers).toHaveLength(3); // the third one has said nothing yet
  const text = cluster.metrics();
  workers[0]!.says({ type: 'metrics', values: counted(3) as never });
  expect(await text).toContain('n 3');
  const nobody = cluster.metrics();
  workers[0]!.emit('exit', 1, null);
  expect(await nobody).not.toContain('n 3');
});
