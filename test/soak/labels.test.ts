/** A million rows of labels: built, verified, looked up and added to lines. */
import { createWriteStream } from 'node:fs';
import { join } from 'node:path';
import { finished } from 'node:stream/promises';
import { expect, it } from 'vitest';
import { openDatabase } from '../../src/database/database.js';
import { createBlockEnricher } from '../../src/enrich/block-enricher.js';
import { MAX_LABEL_ROWS } from '../../src/limits.js';
import { temporaryDir } from '../support/release.js';
import { randomFrom, SEED } from '../support/seed.js';
import { buildOnce, manifestOf, writeSources } from '../support/sources.js';

const ROWS = Math.round(MAX_LABEL_ROWS * Math.min(1, Number(process.env.SOAK_SCALE ?? 1)));
/** Of the rows, those of a /16 around 256 others. */
const WIDE = Math.floor(ROWS / 257);

const text = (address: number): string => [24, 16, 8, 0].map((bits) => (address >>> bits) & 255).join('.');

/** Row `i` of the narrow ones is 16.0.0.0/24 plus `i` blocks, but every third ends in the middle, and then the wide row shows. */
const narrowEnd = (i: number): number => (i % 3 === 0 ? 127 : 255);

it('a million rows are as their file says', async () => {
  const dir = temporaryDir();
  const narrow = ROWS - WIDE;
  const file = createWriteStream(join(dir, 'labels.csv'));
  file.write('range,site,owner\n');
  for (let i = 0; i < WIDE; i++) file.write(`${text((4096 + i) * 65536)}/16,wide ${i},\n`);
  for (let i = 0; i < narrow; i++) {
    const first = (16 * 65536 + i) * 256;
    file.write(`${text(first)}-${text(first + narrowEnd(i))},site ${i},owner ${i % 100}\n`);
  }
  file.end();
  await finished(file);
  const more = { labels: 'labels.csv', gates: { maxWrongSentinels: 999 } };
  const sources = writeSources(dir, { countries: ['0.0.0.0,223.255.255.255,US'] }, more);
  const dataDir = join(dir, 'data');
  expect(await buildOnce(dataDir, sources, { asOf: '2026-01-01' })).toMatchObject({ outcome: 'published' });
  expect(manifestOf(dataDir).labels!.rows).toBe(ROWS);

  using database = openDatabase(dataDir);
  const find = database.fields(['site', 'owner', 'network']);
  const { enrichBlock } = createBlockEnricher(database, { add: ['site', 'owner', 'network'] });
  const random = randomFrom(SEED);
  const lines: string[] = [];
  const expected: string[] = [];
  for (let trial = 0; trial < 100_000; trial++) {
    const i = Math.floor(random() * narrow);
    const last = Math.floor(random() * 256);
    const ip = text((16 * 65536 + i) * 256 + last);
    const wide = i >> 8 < WIDE ? `wide ${i >> 8}` : null;
    const own = last <= narrowEnd(i);
    const { ip: _ip, ...found } = find(ip)!;
    expect(found).toMatchObject({ site: own ? `site ${i}` : wide, owner: own ? `owner ${i % 100}` : null });
    lines.push(`{"ip":"${ip}"}\n`);
    expected.push(`{"ip":"${ip}","geo":${JSON.stringify(found)}}\n`);
  }
  expect(Buffer.from(enrichBlock(Buffer.from(lines.join(''))) as Uint8Array).toString() === expected.join('')).toBe(
    true,
  );
});
