import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createKey } from '../../src/api/keys/key-store.js';
import { NODES, PATIENCE, Routing, testRouting } from '../routing/routed-nodes.js';
import { GDNSD_SKIPPED, hasGdnsd } from '../support/gdnsd.js';
import { hasRedis, REDIS_SKIPPED, RedisProcess } from '../support/redis.js';
import { type ServeProcess, serve } from '../support/serve.js';

const available = hasGdnsd() && hasRedis();
if (!available) console.warn(hasGdnsd() ? REDIS_SKIPPED : GDNSD_SKIPPED);

describe.skipIf(!available)('gdnsd with a release and four servers', { timeout: 300_000 }, () => {
  let redis: RedisProcess;
  const servers: ServeProcess[] = [];
  const routing = new Routing({
    addresses: ({ address }) => [address],
    async start({ name, country, eu, address }, port, dataDir) {
      const region = ['--region', name, '--country', country, ...(eu ? ['--eu'] : [])];
      const server = await serve(dataDir, '--host', address, '--port', `${port}`, '--redis', redis.url, ...region);
      servers.push(server);
      return () => server.stop('SIGKILL').then(() => {});
    },
  });

  beforeAll(async () => {
    redis = await RedisProcess.start();
    await routing.open();
  }, 300_000);
  afterAll(async () => {
    await routing.close();
    await redis?.remove();
  });

  testRouting(routing);

  it('gives clients with IPv6 no address of a node that has none', () => {
    expect(routing.gdnsd.ask('api.geo.example', '80.7.42.0/24', 'AAAA')).toEqual([]);
  });

  it('counts the rate of a key over all nodes', async () => {
    const key = createKey(routing.dataDir, { rate: 80 }).key;
    const ask = async (address: string): Promise<number> =>
      (await fetch(`http://${address}:${routing.port}/api/lookup/80.7.42.1`, { headers: { 'x-api-key': key } })).status;
    // A node that has just started may answer before it knows the key, or 503: then nothing is counted.
    for (const { address } of NODES) await expect.poll(() => ask(address), PATIENCE).toBe(200);
    const statuses: number[] = [];
    for (let i = 0; i < 120; i++) statuses.push(await ask(NODES[i % NODES.length]!.address));
    const answered = NODES.length + statuses.filter((status) => status === 200).length;
    if (answered > 80) {
      // A busy machine may not run Redis for 50 ms. Then a node counts by itself, at most its share more, and says so.
      const saysSo = () => servers.some((server) => /Redis does not answer/.test(server.stderr()));
      await expect.poll(saysSo, PATIENCE).toBe(true);
      expect(answered).toBeLessThanOrEqual(160);
    }
    expect(statuses.at(-1)).toBe(429);
  });
});
