/** Compares the answers of each record's own date with those of lookups in the answers of that day. */
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { formatAddress } from '../../src/address/format.js';
import { BinaryEngine } from '../../src/database/binary-engine.js';
import { Lookups } from '../../src/database/lookups.js';
import { DAY_MS, dayOf } from '../../src/day.js';
import { LineEnricher } from '../../src/enrich/enricher.js';
import { parseEnrichOptions, type RequestedOptions } from '../../src/enrich/options.js';
import { openArchive } from '../../src/history/archive.js';
import { openDay } from '../../src/history/day.js';
import { type AnswersOverTime, answersOverTime } from '../../src/history/over-time.js';
import { dayOfText } from '../support/date-twin.js';
import { randomFrom } from '../support/seed.js';
import { temporaryDir } from '../support/temporary.js';
import { SIZE } from '../support/tiny-space.js';
import { below, nightsAgainstCopies, type Random, SPACES, START } from './support.js';

const NIGHTS = 25;

let dataDir: string;
let answers: AnswersOverTime;
/** The lookups of each day that is known. */
const lookups = new Map<string, Lookups>();
beforeAll(() => {
  dataDir = temporaryDir();
  vi.spyOn(Date, 'now').mockReturnValue(START + NIGHTS * DAY_MS);
  const days = [...nightsAgainstCopies(dataDir, NIGHTS, randomFrom(7))];
  const archive = openArchive(dataDir);
  const today = dayOf(Date.now());
  for (const day of [...days.map(([each]) => each), today]) {
    if ('entry' in archive.at(day)) lookups.set(day, new Lookups(new BinaryEngine(openDay(archive, day).file)));
  }
  answers = answersOverTime(archive);
});
afterAll(() => {
  vi.restoreAllMocks();
});

/** Enriches bytes in one go. */
function enrich(input: string, requested: RequestedOptions): { output: string; counts: LineEnricher['counts'] } {
  const options = parseEnrichOptions(requested, (name) => name);
  const output: Buffer[] = [];
  const enricher = new LineEnricher(answers, options, (bytes) => output.push(Buffer.from(bytes)), undefined, {
    chunkBytes: 4096,
  });
  enricher.write(Buffer.from(input));
  enricher.end();
  return { output: Buffer.concat(output).toString(), counts: enricher.counts };
}

/** Returns an address of a tiny space, or text that is none. */
function randomAddress(random: Random): string {
  if (below(random, 20) === 0) return 'unknown';
  const family = below(random, 2) === 0 ? 4 : 6;
  return formatAddress(family, Uint32Array.from(SPACES[family].place(below(random, SIZE))));
}

/** Returns a date in any form, most of them of days that are kept. */
function randomDate(random: Random): string {
  const time = START + Math.floor((random() * 1.2 - 0.1) * NIGHTS * DAY_MS);
  const iso = new Date(time).toISOString();
  const [, month, year] = /^\w+, \d+ (\w+) (\d+)/.exec(new Date(time).toUTCString())!;
  const forms = [
    iso,
    iso.slice(0, 10),
    iso.replace('Z', '+02:00'),
    String(Math.floor(time / 1000)),
    (time / 1000).toFixed(3),
    String(time),
    `${time}000`,
    `${time}000000`,
    `${iso.slice(8, 10)}/${month}/${year}:${iso.slice(11, 19)} -0330`,
    'yesterday',
    '',
  ];
  return forms[below(random, forms.length)]!;
}

/** Returns what a record gets: undefined for no result. */
function expectedResult(ip: string, date: string, missing: string) {
  const day = dayOfText(date);
  const days = [...lookups.keys()];
  const wanted = day === undefined ? undefined : dayOf(DAY_MS * day);
  const stands = { null: undefined, first: days[0], now: days.at(-1) }[missing];
  const of = lookups.get(wanted ?? '') ?? lookups.get(stands ?? '');
  return of?.lookup(ip);
}

function randomRows(count: number): { ip: string; date: string }[] {
  const random = randomFrom(9);
  return Array.from({ length: count }, () => ({ ip: randomAddress(random), date: randomDate(random) }));
}

describe('each record has the answers of its own date', () => {
  it.each(['null', 'first', 'now'] as const)('in lines of JSON; without a date: %s', (atMissing) => {
    const rows = randomRows(3000);
    const isNumber = (date: string): boolean => /^[1-9][\d.]*$/.test(date);
    const lines = rows.map(({ ip, date }, index) => {
      const value =
        isNumber(date) && index % 2 === 0 ? date : JSON.stringify(date).replaceAll('/', index % 3 ? '/' : '\\/');
      // Stretches with the same keys in the same order, and others.
      if (index % 1000 < 800) return `{"t":${value},"n":${index},"ip":"${ip}"}`;
      return index % 7 === 0 ? `{"ip":"${ip}"}` : `{"ip":"${ip}","x":{"t":1},"t":${value}}`;
    });
    const { output, counts } = enrich(`${lines.join('\n')}\n`, { atField: 't', atMissing });
    const results = output
      .trimEnd()
      .split('\n')
      .map((line) => (JSON.parse(line) as { geo: unknown }).geo);
    const expected = rows.map(({ ip, date }, index) => {
      const hasDate = index % 1000 < 800 || index % 7 !== 0;
      const found = expectedResult(ip, hasDate ? date : '', atMissing);
      return found === undefined
        ? null
        : { country: found.country, country_code: found.country_code, is_eu: found.is_eu };
    });
    expect(results).toEqual(expected);
    const withAddress = rows.filter(({ ip }) => ip !== 'unknown').length;
    expect(counts.found + counts.no_country + counts.missing_date).toBe(withAddress);
    expect(counts.missing_date === 0).toBe(atMissing !== 'null');
  });

  it('in tables, also for several addresses and quoted cells', () => {
    const rows = randomRows(2000);
    const random = randomFrom(10);
    const others = rows.map(() => randomAddress(random));
    const cell = (text: string, index: number): string => (index % 3 === 0 ? `"${text}"` : text);
    const lines = rows.map(({ ip, date }, index) => `${ip},${cell(date, index)},${others[index]}`);
    const { output } = enrich(`a,when,b\n${lines.join('\n')}\n`, {
      format: 'csv',
      field: ['a=a', 'b=b'],
      atField: 'when',
      add: ['country_code', 'is_eu'],
    });
    const cells = (ip: string, date: string): string[] => {
      const found = expectedResult(ip, date, 'null');
      return found === undefined ? ['', ''] : [found.country_code ?? '', String(found.is_eu)];
    };
    const expected = rows.map(({ ip, date }, index) =>
      [lines[index], ...cells(ip, date), ...cells(others[index]!, date)].join(','),
    );
    expect(output.trimEnd().split('\n').slice(1)).toEqual(expected);
  });

  it('names the flag of a column that is not there', () => {
    const table = (requested: RequestedOptions) => () => enrich('a,when\n', { format: 'csv', ...requested });
    expect(table({ field: 'a', atField: 'day' })).toThrow(
      /no column "day"; its columns are a, when. Choose one with --at-field/,
    );
    expect(table({ field: 'ip', atField: 'when' })).toThrow(/no column "ip".* Choose one with --field/);
  });

  it('in documents and arrays, where the first address with a country on that day counts', () => {
    const random = randomFrom(11);
    const rows = randomRows(500).map(({ date }) => ({ date, hops: [0, 1, 2].map(() => randomAddress(random)) }));
    const { output } = enrich(JSON.stringify(rows), {
      format: 'json',
      field: 'hops[]',
      atField: 'date',
      add: ['country_code'],
    });
    const expected = rows.map(({ date, hops }) => {
      const found = hops.map((ip) => expectedResult(ip, date, 'null')).filter((each) => each !== undefined);
      const best = found.find(({ country_code }) => country_code !== null) ?? found[0];
      return best === undefined ? null : { country_code: best.country_code };
    });
    expect((JSON.parse(output) as { geo: unknown }[]).map(({ geo }) => geo)).toEqual(expected);
  });

  it('in lines of keys and values', () => {
    const rows = randomRows(1000).filter(({ date }) => !date.includes('/'));
    const lines = rows.map(({ ip, date }, index) => (index % 2 ? `t="${date}" ip=${ip}` : `ip=${ip} x=1 t=${date}`));
    const { output } = enrich(lines.map((line) => `${line}\n`).join(''), {
      format: 'logfmt',
      atField: 't',
      add: ['country_code'],
    });
    const expected = rows.map(({ ip, date }) => expectedResult(ip, date, 'null')?.country_code ?? '-');
    const results = output.trimEnd().split('\n');
    expect(results.map((line) => /ip_country_code=(\S+)$/.exec(line)?.[1] ?? '-')).toEqual(expected);
  });

  it('in access logs', () => {
    const rows = randomRows(2000).filter(({ date }) => date.includes('/'));
    const lines = rows.map(
      ({ ip, date }, index) => `${ip} - ${index % 2 ? '-' : '[me]'} [${date}] "GET / HTTP/1.1" 200 1`,
    );
    const { output } = enrich(lines.map((line) => `${line}\n`).join(''), {
      format: 'combined',
      atField: 'time',
      add: ['country_code'],
    });
    const expected = rows.map(({ ip, date }, index) => {
      const code = expectedResult(ip, date, 'null')?.country_code;
      return `${lines[index]} "${code ?? '-'}"`;
    });
    expect(output.trimEnd().split('\n')).toEqual(expected);
  });

  it('with the day whose answers they are', () => {
    const rows = randomRows(500);
    const input = rows.map((row) => `${JSON.stringify(row)}\n`).join('');
    const { output } = enrich(input, { atField: 'date', add: ['release_date', 'country_code'] });
    const archive = openArchive(dataDir);
    const expected = rows.map(({ ip, date }) => {
      const found = expectedResult(ip, date, 'null');
      if (found === undefined) return null;
      const coverage = archive.at(dayOf(DAY_MS * dayOfText(date)!));
      return {
        release_date: 'entry' in coverage ? dayOf(coverage.entry.time) : undefined,
        country_code: found.country_code,
      };
    });
    const results = output.trimEnd().split('\n');
    expect(results.map((line) => (JSON.parse(line) as { geo: unknown }).geo)).toEqual(expected);
  });

  it('when records are selected or counted', () => {
    const rows = randomRows(2000);
    const input = rows.map((row) => `${JSON.stringify(row)}\n`).join('');
    const requested: RequestedOptions = { atField: 'date' };
    const options = { ...parseEnrichOptions(requested, (name) => name), add: [], onInvalid: 'drop' as const };
    const query = { kind: 'filter', countries: new Set(['DE']), selectsEu: false, isInverted: false } as const;
    const output: string[] = [];
    const enricher = new LineEnricher(answers, { ...options, query }, (bytes) =>
      output.push(Buffer.from(bytes).toString()),
    );
    enricher.write(Buffer.from(input));
    enricher.end();
    const expected = rows.filter(({ ip, date }) => expectedResult(ip, date, 'null')?.country_code === 'DE');
    expect(output.join('')).toBe(expected.map((row) => `${JSON.stringify(row)}\n`).join(''));
  });

  it.each<[RequestedOptions, RegExp]>([
    [{ atField: 'x', at: '2026-01-01' }, /at and atField exclude each other/],
    [{ atMissing: 'first' }, /atMissing requires atField/],
    [{ atField: 'x', atMissing: 'last' as never }, /atMissing is "last"; it can be null, first, now/],
    [{ atField: 'x', format: 'list' }, /atField cannot be used with format list/],
    [{ atField: 'x', format: 'text' }, /atField cannot be used with format text/],
    [{ atField: 'x', format: 'combined' }, /with format combined it is time/],
    [{ atField: 'x[0]' }, /the date cannot be in an array/],
    [{ atField: '' }, /atField must be a field/],
    [{ at: '2026-02-30' }, /at "2026-02-30" is not a date/],
    [{ at: '2026-01-01', add: ['confidence'] }, /history has no confidence/],
    [{ atField: 'x', add: ['network'] }, /network is not known for each day/],
    [{ atField: 'x', add: ['as_name'] }, /as_name is not known for each day/],
    [{ add: ['release_date'] }, /release_date requires at or atField/],
  ])('%j is refused', (requested, message) => {
    expect(() => parseEnrichOptions(requested, (name) => name)).toThrow(message);
  });
});
