import { getEventListeners } from 'node:events';
import { afterEach, expect, it, vi } from 'vitest';
import { lookUpBatch } from '../../src/page/service.js';

afterEach(() => vi.unstubAllGlobals());

it('leaves no listener on the signal of a batch, however often it has to wait', async () => {
  const { signal } = new AbortController();
  let asked = 0;
  vi.stubGlobal('fetch', async (url: string) => {
    if (url === 'page/key') return Response.json({ key: 'k', rate: 5 });
    if (++asked <= 20) return Response.json({ error: 'rate' }, { status: 429, headers: { 'retry-after': '0' } });
    return Response.json({ '8.8.8.8': { error: 'x' } });
  });
  await lookUpBatch(['8.8.8.8'], signal, () => {});
  expect([asked, getEventListeners(signal, 'abort')]).toEqual([21, []]);
});
