/** Free text, access logs and lists in the line engine, compared with regular expressions and ipaddr.js. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { CountryResult } from '../../src/database/engine.js';
import { emptyCounts } from '../../src/enrich/counts.js';
import type { LineRequest } from '../../src/enrich/enrich-lines.js';
import type { Addable } from '../../src/enrich/members.js';
import { type AddressPick, PICKS, parseFields } from '../../src/enrich/options.js';
import { CountrySummary, type Filter } from '../../src/enrich/query.js';
import { parseAdd } from '../support/add.js';
import { chunkedSource } from '../support/chunks.js';
import { findAddress } from '../support/lenient-twin.js';
import { DECORATED_LIST } from '../support/nasty-addresses.js';
import { releaseForTests } from '../support/open-release.js';
import { runEngine } from '../support/run-engine.js';
import { addressesIn, TEXT } from '../support/text-twin.js';

type AddressResult = CountryResult & { address?: string };

const RUNS = Number(process.env.FUZZ_RUNS ?? 30);

const release = releaseForTests();

type Kind = 'text' | 'combined' | 'list';
type Settings = Partial<LineRequest> & { cuts?: number[]; add?: string; lenient?: boolean; pick?: AddressPick };

async function run(kind: Kind, input: string, settings: Settings = {}, query?: LineRequest['options']['query']) {
  const { cuts, add, lenient, pick, ...request } = settings;
  const { output, counts, error } = await runEngine({
    inputs: [chunkedSource('input', Buffer.from(input, 'latin1'), cuts)],
    openFile: () => release.file,
    options: {
      input: { kind },
      fields: parseFields([]),
      add: query === undefined ? parseAdd(add) : [],
      onInvalid: 'keep',
      lenient,
      pick,
      query,
    },
    ...request,
  });
  expect(error).toBeUndefined();
  return { output, counts };
}

/** The result of a line: undefined if it has no address. */
function resultOf(
  kind: Kind,
  line: string,
  { lenient, pick }: Pick<Settings, 'lenient' | 'pick'>,
): { isMissing: boolean; result: AddressResult | undefined } {
  const lookUp = (address: string): AddressResult | undefined => {
    const result = release.database.lookupWithReason(address);
    return result && { ...result, address };
  };
  if (kind !== 'text') {
    const value = kind === 'combined' ? line.split(' ')[0]! : line;
    const address = lenient ? findAddress(value) : value;
    return { isMissing: false, result: address === undefined ? undefined : lookUp(address) };
  }
  const results = addressesIn(line).map((address) => lookUp(address)!);
  return {
    isMissing: results.length === 0,
    result:
      pick === 'last'
        ? results.at(-1)
        : (results.find(({ country_code }) => country_code !== null || pick === 'first') ?? results[0]),
  };
}

function partsOf(kind: Kind, result: AddressResult | undefined, add: readonly Addable[]): string {
  const values = add.map((part) => (result as Record<string, unknown> | undefined)?.[part]);
  const text =
    kind === 'combined' ? values.map((value) => ` "${value ?? '-'}"`) : values.map((value) => `\t${value ?? ''}`);
  return Buffer.from(text.join('')).toString('latin1');
}

/** Each line with its ending, and its text. */
function linesOf(input: string): { line: string; text: string; isBlank: boolean }[] {
  return (input.match(/[^\n]*\n|[^\n]+$/g) ?? []).map((line) => {
    const text = line.replace(/\r?\n$|\r$/, '');
    return { line, text, isBlank: /^[\t\v\f\r ]*$/.test(text) };
  });
}

function expectedOutput(kind: Kind, input: string, add: readonly Addable[], settings: Settings): string {
  return linesOf(input)
    .map(({ line, text, isBlank }) =>
      isBlank ? line : text + partsOf(kind, resultOf(kind, text, settings).result, add) + line.slice(text.length),
    )
    .join('');
}

/** Lines that begin with an address in other text. */
const DECORATED_LINES = fc
  .array(fc.tuple(DECORATED_LIST, fc.constantFrom('', '', ' ', ' - x'), fc.constantFrom('\n', '\n', '\r\n')), {
    maxLength: 20,
  })
  .map((lines) => lines.map((parts) => parts.join('')).join(''));
const ANY_BYTES = fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes).toString('latin1'));
const SETTINGS = fc.record({
  cuts: fc.array(fc.nat(), { maxLength: 4 }),
  jobs: fc.constantFrom(1, 1, 1, 2),
  chunkBytes: fc.integer({ min: 1, max: 300 }),
  lenient: fc.boolean(),
  pick: fc.constantFrom(...PICKS),
});

describe.each<Kind>(['text', 'combined', 'list'])('%s', (kind) => {
  it('equals the naive twin for all texts, chunks, blocks and jobs', async () => {
    await fc.assert(
      fc.asyncProperty(fc.oneof(TEXT, DECORATED_LINES, ANY_BYTES), SETTINGS, async (input, settings) => {
        const { output, counts } = await run(kind, input, { ...settings, add: 'country,address,reason' });
        expect(output).toBe(expectedOutput(kind, input, ['country', 'address', 'reason'], settings));
        const results = linesOf(input)
          .filter(({ isBlank }) => !isBlank)
          .map(({ text }) => resultOf(kind, text, settings));
        expect(counts).toEqual({
          ...emptyCounts(),
          lines: linesOf(input).length,
          bytes: input.length,
          found: results.filter(({ result }) => result?.country_code != null).length,
          no_country: results.filter(({ result }) => result?.country_code === null).length,
          missing_field: results.filter(({ isMissing }) => isMissing).length,
          invalid_address: results.filter(({ isMissing, result }) => !isMissing && result === undefined).length,
        });
      }),
      { numRuns: RUNS },
    );
  });

  it('is filtered and summarized as by the naive twin', async () => {
    await fc.assert(
      fc.asyncProperty(fc.oneof(TEXT, DECORATED_LINES), SETTINGS, fc.boolean(), async (input, settings, isInverted) => {
        const filter: Filter = { kind: 'filter', countries: new Set(['US']), selectsEu: true, isInverted };
        const { output } = await run(kind, input, settings, filter);
        const expected = linesOf(input).filter(({ text, isBlank }) => {
          const { result } = resultOf(kind, text, settings);
          return (!isBlank && (result?.is_eu === true || result?.country_code === 'US')) !== isInverted;
        });
        expect(output).toBe(expected.map(({ line }) => line).join(''));

        const summary = new CountrySummary();
        await run(kind, input, settings, { kind: 'summarize', summary });
        const counts: Record<string, number> = {};
        for (const { text, isBlank } of linesOf(input)) {
          const code = isBlank ? null : resultOf(kind, text, settings).result?.country_code;
          if (code != null) counts[code] = (counts[code] ?? 0) + 1;
        }
        const actual = summary.byCountry().map(({ country_code, count }) => [country_code, count]);
        expect(Object.fromEntries(actual)).toEqual(counts);
      }),
      { numRuns: Math.ceil(RUNS / 2) },
    );
  });
});

describe('the address of a line of text', () => {
  it.each([
    ['sshd[811]: Failed password for root from 193.0.6.139 port 22 ssh2', 'NL'],
    ['Nov 22 06:13:03 10.0.0.1 %ASA-6-302013: Built inbound TCP from outside:8.8.8.8/443', 'US'],
    ['2026/11/22 06:13:03 [error] 7#7: *1 open() failed, client: 8.8.8.8, server: _', 'US'],
    ['kernel: IN=eth0 MAC=00:1a:2b:3c:4d:5e:00:1a:2b:3c:4d:5e:08:00 SRC=10.0.0.1 DST=193.0.0.1', 'NL'],
    ['from=<a@[8.8.8.8]>', 'US'],
    // Java: InetSocketAddress.toString().
    ['No Route to Host from  MININT-FNANLI5/8.8.8.8 to msra-sa-41:9000', 'US'],
    ['Accepted socket connection from 0.0.0.0/0.0.0.0:2181 and /193.0.6.139:50001', 'NL'],
    // Asterisk.
    ['SecurityEvent="FailedACL",RemoteAddress="IPV4/UDP/193.0.6.139/5060"', 'NL'],
    // tcpdump and Dante.
    ['06:13:03.123456 IP 10.0.0.1.50550 > 193.0.6.139.53: 4242+ A? example.org. (29)', 'NL'],
    ['info: block(1): tcp/accept ]: 193.0.6.139.50550 0.0.0.0.1080: error', 'NL'],
    // RFC 5321, section 4.1.3.
    ['HELO [IPv6:2001:4860:4860::8888]', 'US'],
    ['login attempt for nonexistent user from ::ffff:193.0.6.139:60495', 'NL'],
    ['network changed: v4(en0+:10.105.162.138) v6(en0:2001:4860:4860::8888) DNS', 'US'],
    ['the address \xe2\x80\x9c8.8.8.8\xe2\x80\x9d', 'US'],
    ['Package_for_KB3004375~31bf3856ad364e35~amd64~~8.8.8.8, lib-8.8.8.8.jar', ''],
    ['GET /files/8.8.8.8/setup.exe v8.8.8.8', ''],
    ['rhost=8.8.8.8.dynamic.example.net 8.8.8.8.in-addr.arpa', ''],
    ['Mozilla/5.0 Chrome/90.0.0.1 Safari/537.36', ''],
    ['nothing at 12:34:56, 3.14 or 1.2.3', ''],
    ['::', ''],
  ])('%s', async (line, code) => {
    const { output } = await run('text', `${line}\n`, { add: 'country_code' });
    expect(output).toBe(`${line}\t${code}\n`);
  });

  it.each<Kind>(['text', 'list', 'combined'])('%s: a last line that ends in a carriage return', async (kind) => {
    const { output } = await run(kind, '8.8.8.8\r\n8.8.8.8\r', { add: 'country_code' });
    const cell = kind === 'combined' ? ' "US"' : '\tUS';
    expect(output).toBe(`8.8.8.8${cell}\r\n8.8.8.8${cell}\r`);
  });
});
