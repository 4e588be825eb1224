/** Servers that close the connection at every byte of a response, and large downloads from servers that always close. */
import { expect, it } from 'vitest';
import { testWith } from '../export/tools.js';
import { BODY, CLOSING_SERVERS, expectCutsSurvived, RESPONSES } from '../pipeline/closing-servers.js';
import { runFetch, scratchDir, source, textsOf } from '../pipeline/fetch-support.js';
import { rounds } from '../support/seed.js';

it.each(Object.entries(RESPONSES))('%s, cut off at every byte', async (_name, response) => {
  await expectCutsSurvived(response, [...Array(response.bytes.length + 1).keys()]);
});

for (const [name, { missing, start }] of Object.entries(CLOSING_SERVERS)) {
  testWith(missing?.(), `${name}: hundreds of downloads`, async () => {
    const url = await start();
    for (let round = 0; round < rounds(500); round++) {
      const location = { kind: 'https' as const, urls: [url], files: [] };
      const { output } = await runFetch([source(location)], scratchDir());
      expect(textsOf(output[0]).a?.length).toBe(BODY.length);
    }
  });
}
