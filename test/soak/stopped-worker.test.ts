/** A worker process that hangs, by SIGSTOP: the metrics come without it, and another one replaces it. */
import { execFileSync } from 'node:child_process';
import { expect, it } from 'vitest';
import { createKey } from '../../src/api/keys/key-store.js';
import { smallRelease } from '../support/release.js';
import { serve, until } from '../support/serve.js';

it('a worker that is stopped is counted as silent, killed and replaced', async () => {
  const dataDir = await smallRelease();
  const { key } = createKey(dataDir);
  const server = await serve(dataDir, '--workers', '2', '--metrics-port', '0');
  try {
    const workers = () =>
      execFileSync('ps', ['-o', 'pid=', '--ppid', String(server.child.pid)], { encoding: 'utf8' })
        .trim()
        .split(/\s+/);
    const metricsUrl = String((await server.logged('metrics')).url);
    const metrics = async () => (await fetch(metricsUrl)).text();
    expect(await metrics()).toMatch(/^ipatlas_workers_silent 0$/m);
    const [stopped] = workers();
    process.kill(Number(stopped), 'SIGSTOP');
    expect(await metrics()).toMatch(/^ipatlas_workers_silent 1$/m);
    await until(() => workers().length === 2 && !workers().includes(stopped!), 'another worker');
    await until(async () => /^ipatlas_workers_silent 0$/m.test(await metrics()), 'its metrics');
    const headers = { 'x-api-key': key, connection: 'close' };
    const answers = Array.from({ length: 16 }, () => fetch(`${server.url}/api/lookup/8.8.8.8`, { headers }));
    for (const answer of await Promise.all(answers)) expect(answer.status).toBe(200);
  } finally {
    await server.stop('SIGKILL');
  }
});
