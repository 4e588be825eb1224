/** DNS routing by a real gdnsd, with servers that answer its health checks as `serve` does; with real ones: test/soak/routing.test.ts. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { GDNSD_SKIPPED, hasGdnsd } from '../support/gdnsd.js';
import { NODES, type NodeServers, PATIENCE, Routing, SUBNETS, testRouting } from './routed-nodes.js';

const available = hasGdnsd();
if (!available) console.warn(GDNSD_SKIPPED);

/** The only address of IPv6: that of iad. */
const IPV6_ADDRESS = '::1';

const healthServers: NodeServers = {
  addresses: ({ name, address }) => [address, ...(name === 'iad' ? [IPV6_ADDRESS] : [])],
  async start(node, port) {
    const started = this.addresses(node).map((host) => {
      const server = createServer((request, response) => {
        const isReady = request.url === '/readyz' || (request.url === '/readyz?eu' && node.eu);
        response.writeHead(isReady ? 200 : 503, { connection: 'close' }).end();
      });
      return server.listen(port, host);
    });
    await Promise.all(started.map((server) => once(server, 'listening')));
    return async () => {
      for (const server of started) {
        server.closeAllConnections();
        await new Promise((resolve) => server.close(resolve));
      }
    };
  },
};

describe.skipIf(!available)('gdnsd with a release and four servers', { timeout: 300_000 }, () => {
  const routing = new Routing(healthServers);
  beforeAll(() => routing.open(), 300_000);
  afterAll(() => routing.close());

  testRouting(routing);

  it('gives clients with IPv6 only the addresses of the next region that has some', async () => {
    const ask = () => routing.gdnsd.askAll('api.geo.example', SUBNETS, 'AAAA');
    await expect.poll(ask, PATIENCE).toEqual(SUBNETS.map(() => [IPV6_ADDRESS]));
    // No node of the European Union has any.
    expect(routing.gdnsd.ask('eu.geo.example', SUBNETS[0]!, 'AAAA')).toEqual([]);
    // Without them, the clients with IPv4 are led as before.
    await routing.kill('iad');
    const others = NODES.filter(({ name }) => name !== 'iad');
    await expect.poll(() => routing.asked('api'), PATIENCE).toEqual(routing.expected(others));
    await expect.poll(ask, PATIENCE).toEqual(SUBNETS.map(() => []));
    await routing.start(routing.node('iad'));
    await expect.poll(ask, PATIENCE).toEqual(SUBNETS.map(() => [IPV6_ADDRESS]));
  });
});
