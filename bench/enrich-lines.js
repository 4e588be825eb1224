// Generates the lines that the enrichment benchmarks read: about 200 bytes each, one address in five IPv6.
import { closeSync, openSync, writeSync } from 'node:fs';
import { randomWords } from './measure.js';

const PATHS = ['/index.html', '/api/v1/items', '/static/app.js', '/login', '/search?q=shoes', '/cart/checkout'];
const AGENTS = [
  'Mozilla/5.0 (X11; Linux x86_64)',
  'curl/8.5.0',
  'Mozilla/5.0 (Windows NT 10.0; Win64; x64)',
  'okhttp/4.12.0',
];
/** The first 16 bits of the blocks that most IPv6 addresses lie in. */
const BLOCKS6 = [
  '2001',
  '2400',
  '2404',
  '2600',
  '2604',
  '2607',
  '2800',
  '2804',
  '2a00',
  '2a02',
  '2a03',
  '2a0d',
  '2c0f',
];

/** Writes `count` lines; the same ones every time. Returns their bytes. */
export function writeLines(path, count) {
  const random = randomWords(20_261_121);
  const below = (limit) => random() % limit;
  const hex = () => below(65_536).toString(16);
  const file = openSync(path, 'w');
  let bytes = 0;
  let lines = [];
  for (let i = 0; i < count; i++) {
    const ip =
      i % 5 === 4
        ? `${BLOCKS6[below(BLOCKS6.length)]}:${hex()}:${hex()}:${hex()}::${hex()}`
        : `${1 + below(223)}.${below(256)}.${below(256)}.${below(256)}`;
    lines.push(
      JSON.stringify({
        time: new Date(1_760_000_000_000 + 37 * i).toISOString(),
        level: i % 50 === 0 ? 'warn' : 'info',
        ip,
        method: i % 7 === 0 ? 'POST' : 'GET',
        path: `${PATHS[i % PATHS.length]}/${below(100_000)}`,
        status: i % 11 === 0 ? 404 : 200,
        bytes: below(100_000),
        ms: below(50_000) / 100,
        agent: AGENTS[below(AGENTS.length)],
        referrer: null,
      }),
    );
    if (lines.length === 10_000 || i === count - 1) {
      bytes += writeSync(file, `${lines.join('\n')}\n`);
      lines = [];
    }
  }
  closeSync(file);
  return bytes;
}
