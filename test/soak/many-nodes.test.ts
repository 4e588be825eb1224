/** One origin and three nodes: a release and a key reach all of them while they are asked without a pause. */
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it, onTestFinished } from 'vitest';
import { readKeyFile, writeKeyFile } from '../../src/api/keys/key-file.js';
import { createKey, exportKeys, importKeys, revokeKey } from '../../src/api/keys/key-store.js';
import { Node, OPEN_GATES, Origin, scratchDir, serveStatic, world } from '../distribution/support.js';
import { start } from '../support/cli.js';
import { type Block, country } from '../support/release.js';
import { type ServeProcess, serve, until } from '../support/serve.js';

/** Milliseconds for a machine that does much else: the test starts six processes. */
const TIMEOUT = 300_000;

/** Gates that refuse a release in which more IPv4 addresses change their country than a tenth of a /4. */
const GATES = { ...OPEN_GATES, maxChangedShareIPv4: 0.1 };

/** The world with all large countries exchanged. */
const wrongWorld: Block[] = [
  ...world('CC'),
  ['8.0.0.0/8', country('ZZ', 'Nowhere')],
  ['80.0.0.0/8', country('ZZ', 'Nowhere')],
  ['81.0.0.0/8', country('ZZ', 'Nowhere')],
];

it(
  'three nodes follow the origin without a failed request, and each refuses a release that changes too much',
  async () => {
    const dir = scratchDir();
    const origin = new Origin(dir);
    const first = await origin.add(world('AA'));
    const web = await serveStatic(origin.repo);
    const nodes = ['one', 'two', 'three'].map((name) => new Node(dir, name, GATES));
    for (const node of nodes) expect(await node.pull(web.url, origin.root())).toMatchObject({ outcome: 'published' });

    // The keys come from the origin, too.
    const bringKeys = (): void => {
      const file = writeKeyFile(exportKeys(origin.dataDir));
      for (const { dataDir } of nodes) importKeys(dataDir, readKeyFile(file), false);
    };
    const { key } = createKey(origin.dataDir);
    const leaked = createKey(origin.dataDir);
    bringKeys();

    const children = nodes.map(({ dataDir, sourcesFile }) =>
      start([
        ...['pull', web.url, '--root', join(origin.repo, 'root.json'), '--schedule', '*/2 * * * * *', '--jitter', '0'],
        ...['--data', dataDir, '--sources', sourcesFile],
      ]),
    );
    const messages = children.map(() => '');
    children.forEach((child, index) => {
      child.stderr!.setEncoding('utf8').on('data', (chunk: string) => {
        messages[index] += chunk;
      });
    });
    const servers: ServeProcess[] = await Promise.all(nodes.map(({ dataDir }) => serve(dataDir)));
    let isLoaded = true;
    onTestFinished(async () => {
      isLoaded = false;
      for (const child of children) child.kill('SIGKILL');
      await Promise.all(servers.map((server) => server.stop('SIGKILL')));
    });

    const status = async ({ url }: ServeProcess, presented: string): Promise<number> =>
      (await fetch(`${url}/api/lookup/80.0.0.1`, { headers: { 'x-api-key': presented } })).status;
    for (const server of servers)
      await until(async () => (await status(server, key)) === 200, 'the arrival of the key');

    const releases = servers.map(() => '');
    const failures: unknown[] = [];
    let requests = 0;
    const load = servers.map(async ({ url }, index) => {
      while (isLoaded) {
        try {
          const response = await fetch(`${url}/api/lookup/80.0.0.1`, { headers: { 'x-api-key': key } });
          requests++;
          if (response.status !== 200) failures.push(response.status);
          await response.text();
          releases[index] = response.headers.get('x-database-release')!;
        } catch (error) {
          failures.push(error);
        }
        await sleep(2);
      }
    });
    await until(() => releases.every((release) => release === first), 'the first release on all nodes');
    const second = await origin.add(world('BB'));
    await until(() => releases.every((release) => release === second), 'the second release on all nodes');

    await origin.add(wrongWorld);
    const refusals = () => messages.filter((text) => text.includes('pull again with --force')).length;
    await until(() => refusals() === nodes.length, 'the refusal of each node');
    expect(releases).toEqual([second, second, second]);
    for (const node of nodes) expect(node.current()).toBe(second);

    revokeKey(origin.dataDir, leaked.id);
    bringKeys();
    for (const server of servers) {
      await until(async () => (await status(server, leaked.key)) === 403, 'the arrival of the revocation');
    }
    isLoaded = false;
    await Promise.all(load);
    expect(failures).toEqual([]);
    expect(requests).toBeGreaterThan(100);
  },
  TIMEOUT,
);
