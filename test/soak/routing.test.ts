import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Routing, testRouting } from '../routing/routed-nodes.js';
import { GDNSD_SKIPPED, hasGdnsd } from '../support/gdnsd.js';
import { serve } from '../support/serve.js';

const available = hasGdnsd();
if (!available) console.warn(GDNSD_SKIPPED);

describe.skipIf(!available)('gdnsd with a release and four servers', { timeout: 300_000 }, () => {
  const routing = new Routing({
    addresses: ({ address }) => [address],
    async start({ name, country, eu, address }, port, dataDir) {
      const region = ['--region', name, '--country', country, ...(eu ? ['--eu'] : [])];
      const server = await serve(dataDir, '--host', address, '--port', `${port}`, ...region);
      return () => server.stop('SIGKILL').then(() => {});
    },
  });

  beforeAll(() => routing.open(), 300_000);
  afterAll(() => routing.close());

  testRouting(routing);

  it('gives clients with IPv6 no address of a node that has none', () => {
    expect(routing.gdnsd.ask('api.geo.example', '80.7.42.0/24', 'AAAA')).toEqual([]);
  });
});
