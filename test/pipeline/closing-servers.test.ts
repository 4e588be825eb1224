/** Downloads from servers that close connections; `make soak` closes them at every byte. */
import { type AddressInfo, createServer } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { fetchKeyFile } from '../../src/api/keys/key-file.js';
import { testWith } from '../export/tools.js';
import { BODY, CLOSING_SERVERS, expectCutsSurvived, RESPONSES } from './closing-servers.js';
import { atlasError, runFetch, scratchDir, source, textsOf } from './fetch-support.js';

describe('a server that closes each connection', () => {
  for (const [name, { missing, start }] of Object.entries(CLOSING_SERVERS)) {
    testWith(missing?.(), `${name}: every download is whole`, async () => {
      const url = await start();
      for (let round = 0; round < 20; round++) {
        const location = { kind: 'https' as const, urls: [url], files: [] };
        const { output, waits } = await runFetch([source(location)], scratchDir());
        expect([textsOf(output[0]).a?.length, waits]).toEqual([BODY.length, []]);
      }
    });
  }

  it('is asked as often as there are attempts, also if it is a proxy', async () => {
    let connections = 0;
    const server = createServer((socket) => {
      connections++;
      socket.on('error', () => {}).destroy();
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void server.close());
    const proxy = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const env = { http_proxy: proxy, https_proxy: proxy };
    for (const url of ['http://data.invalid/a', 'https://data.invalid/a']) {
      await expect(fetchKeyFile(url.replace('http:', 'https:'), '', env)).rejects.toMatchObject({ code: 'E_FETCH' });
      const location = { kind: 'https' as const, urls: [url], files: [] };
      await atlasError(runFetch([source(location)], scratchDir(), { env, limits: { retries: 3 } }));
      expect(connections).toBe(5);
      connections = 0;
    }
  });

  it('gives keys, too', async () => {
    const url = await CLOSING_SERVERS["Node's server"]!.start();
    for (let round = 0; round < 20; round++) expect((await fetchKeyFile(url))?.bytes.length).toBe(BODY.length);
  });
});

it.each(Object.entries(RESPONSES))(
  'a response with %s that is cut off is never taken for whole',
  async (_name, response) => {
    const { length } = response.bytes;
    await expectCutsSurvived(response, [0, 8, 20, response.bytes.indexOf('\r\n\r\n') + 4, length - 1, length]);
  },
);
