/** Damage in the history: every command that processes records says so, and answers all other days. */
import { readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { DAY_MS, dayOf } from '../../src/day.js';
import { openDatabase } from '../../src/history/open.js';
import { ipatlas } from '../support/in-process.js';
import { type Block, country, publishBlocks, temporaryDir } from '../support/release.js';

const FIRST = Date.parse('2026-03-01T01:00:00Z');
const DAYS = Array.from({ length: 12 }, (_, index) => dayOf(FIRST + index * DAY_MS));
const ip = '193.0.0.1';
/** So many that a base has the bytes of several changes. */
const OTHERS = Array.from({ length: 1500 }, (_, index): Block => {
  return [
    `${11 + (index >> 4)}.${16 * (index % 16)}.${(index * index * 89) % 256}.0/24`,
    (index * index) % 7 < 3 ? country('US', 'United States') : country('FR', 'France', true),
  ];
});

let dataDir: string;
let folder: string;
/** The bytes of each file of the history. */
let files: Map<string, Buffer>;
/** A file of changes in the middle, which another one follows before the next base, and its day. */
let victim: string;
let day: string;
beforeAll(async () => {
  dataDir = temporaryDir();
  const clock = vi.spyOn(Date, 'now');
  for (const [index, date] of DAYS.entries()) {
    clock.mockReturnValue(FIRST + index * DAY_MS);
    const record = index % 2 === 0 ? country('GB', 'United Kingdom') : country('DE', 'Germany', true);
    await publishBlocks(dataDir, [...OTHERS, ['193.0.0.0/21', record]], date, 730);
  }
  clock.mockRestore();
  folder = join(dataDir, 'history');
  const names = readdirSync(folder).sort();
  files = new Map(names.map((name) => [name, readFileSync(join(folder, name))]));
  const kinds = names.map((name) => name.includes('_changes'));
  const place = kinds.findIndex((isChange, index) => index > 1 && isChange && kinds[index + 1] === true);
  victim = join(folder, names[place] ?? expect.fail(`no changes after changes: ${names.join(' ')}`));
  day = DAYS[place]!;
  vi.spyOn(Date, 'now').mockReturnValue(FIRST + (DAYS.length - 1) * DAY_MS);
});
afterEach(() => {
  for (const [name, bytes] of files) writeFileSync(join(folder, name), bytes);
});
afterAll(() => {
  vi.restoreAllMocks();
});

/** Returns the country of the address on a day, as a look-up of that day alone has it; undefined if that is refused. */
function answerOf(each: string): string | undefined {
  try {
    return openDatabase(dataDir, { at: each }).country(ip)?.country_code ?? undefined;
  } catch {
    return undefined;
  }
}

function flipBit(): void {
  const bytes = readFileSync(victim);
  bytes[bytes.length - 5]! ^= 1;
  writeFileSync(victim, bytes);
}

describe.each<[string, () => void]>([
  ['a bit flipped', flipBit],
  ['a file cut off', () => truncateSync(victim, 40)],
  ['a file removed from the middle', () => rmSync(victim)],
])('%s', (_, damage) => {
  const lines = (rows: readonly string[]): string => rows.map((row) => `${row}\n`).join('');
  const FORMATS: [format: string, input: string][] = [
    ['jsonl', lines(DAYS.map((t) => JSON.stringify({ ip, t })))],
    ['csv', lines(['ip,t', ...DAYS.map((t) => `${ip},${t}`)])],
  ];
  const flags = ['--at-field', 't', '--at-missing', 'now', '--data'];

  it.each(FORMATS.flatMap(([format, input]) => ['1', '3'].map((jobs) => [format, jobs, input] as const)))(
    'in %s, with %s jobs',
    async (format, jobs, input) => {
      damage();
      const answers = DAYS.map(answerOf);
      const lost = answers.filter((answer) => answer === undefined).length;
      expect(lost).toBeGreaterThan(0);
      expect(lost).toBeLessThan(DAYS.length);
      const run = (command: string[]) =>
        ipatlas([...command, '--format', format, '--jobs', jobs, ...flags, dataDir], { input });
      const said = {
        code: 5,
        stderr: expect.stringMatching(
          new RegExp(`E_DAMAGED: ${lost} address.* history[\\s\\S]*${day}.*: .*${dataDir}`),
        ),
      };

      const stats = join(dataDir, 'stats.json');
      const enriched = await run(['enrich', '--add', 'country_code', '--stats', stats]);
      expect(enriched).toMatchObject(said);
      const found =
        format === 'csv'
          ? DAYS.map((t, index) => `${ip},${t},${answers[index] ?? ''}`)
          : DAYS.map((t, index) => {
              const geo = answers[index] === undefined ? null : { country_code: answers[index] };
              return JSON.stringify({ ip, t, geo });
            });
      expect(enriched.stdout.trimEnd().split('\n').slice(-DAYS.length)).toEqual(found);
      expect(JSON.parse(readFileSync(stats, 'utf8'))).toMatchObject({
        found: DAYS.length - lost,
        missing_date: 0,
        damaged_history: lost,
      });

      const filtered = await run(['filter', '--country', 'GB']);
      expect(filtered).toMatchObject(said);
      const selected = DAYS.filter((_each, index) => answers[index] === 'GB');
      expect(filtered.stdout.match(/2026-\d\d-\d\d/g)).toEqual(selected);

      const summarized = await run(['summarize', '--by', 'eu', '--json']);
      expect(summarized).toMatchObject(said);
      const eu = answers.filter((answer) => answer === 'DE').length;
      expect(JSON.parse(summarized.stdout)).toMatchObject({ eu, damaged_history: lost, missing_date: 0 });
    },
  );
});
