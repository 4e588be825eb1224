/** The places of the addresses of records: against the twin of text, the addresses that `enrich` adds, and every split of the input. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isPublicAddress } from '../../src/address/parse.js';
import { JsonDocument } from '../../src/enrich/formats/document.js';
import { AddressLocator, type LocatedRecord } from '../../src/enrich/locate.js';
import { type InputOptions, parseEnrichOptions, type RequestedOptions } from '../../src/enrich/options.js';
import { publicRanges } from '../../src/enrich/public-ranges.js';
import { cut } from '../support/chunks.js';
import { logSamples } from '../support/log-samples.js';
import { releaseForTests } from '../support/open-release.js';
import { runEngine } from '../support/run-engine.js';
import { addressesIn, TEXT } from '../support/text-twin.js';

const RUNS = Number(process.env.FUZZ_RUNS ?? 30);
const release = releaseForTests();
const parse = (requested: RequestedOptions): InputOptions => parseEnrichOptions(requested, (name) => name);

function locate(input: Buffer, options: InputOptions, cuts: number[] = [], chunkBytes = 500): LocatedRecord[] {
  const records: LocatedRecord[] = [];
  const settings = { documents: JsonDocument, chunkBytes, maxLineBytes: 100_000 };
  const locator = new AddressLocator(publicRanges(), options, (some) => records.push(...some), settings);
  for (const piece of cut(input, cuts)) locator.write(piece);
  locator.end();
  return records;
}

/** Returns the texts of addresses, without the escapes of JSON. */
function textsOf(input: Buffer, { addresses }: LocatedRecord): string[] {
  return addresses.map(({ from, to }) => JSON.parse(`"${input.toString('latin1', from, to)}"`) as string);
}

describe('located addresses', () => {
  it('are in text those of the twin, at their places, for every split', () => {
    const options = parse({ format: 'text' });
    fc.assert(
      fc.property(TEXT, fc.array(fc.nat(), { maxLength: 5 }), fc.integer({ min: 1, max: 300 }), (text, cuts, size) => {
        const input = Buffer.from(text, 'latin1');
        const found = locate(input, options, cuts, size);
        const lines = text.split('\n');
        for (const record of found) expect(textsOf(input, record)).toEqual(addressesIn(lines[record.line - 1]!));
        const hasText = (line: string): boolean => /[^ \t\r\n]/.test(line);
        expect(found.map(({ line }) => line)).toEqual(lines.flatMap((line, at) => (hasText(line) ? [at + 1] : [])));
      }),
      { numRuns: RUNS },
    );
  });

  it('are in values those that are looked up, also in escapes and doubled quotes', () => {
    const [a, b, c] = ['8.8.8.8', '2a00:1::1', '10.0.0.1'];
    const cases: [RequestedOptions, string, string[]][] = [
      [
        { field: ['ip|x', 'hops[]'], lenient: true },
        `{"hops":["${c}","${a}, ${b}"],"ip":"\\u00e9","x":"\\u0038.8.8\\u002e8:443, [${b}]:1"}\n`,
        [a, a],
      ],
      [{ field: 'm', inText: true }, `{"m":"\\ud83d\\ude00 \\"${c}\\" client=${a} \\u00e9${a}-${c}"}\n`, [a]],
      [{ field: 'm[]', inText: true }, `{"m":["to ${b}","src=${c}","client=${a}",5,"at ${b}"]}\n{"m":[]}\n`, [a]],
      [{ format: 'list', lenient: true }, `${c},${a},x,${b}\n`, [c]],
      [{ format: 'csv', lenient: true }, `ip,b\n"x ""${c}"", ${b}",\n"${a}",${c}\n`, [b, a]],
      [{ format: 'csv', field: 'm', inText: true }, `m\n"a ""q"" ${c} ""${a}"" z"\n`, [a]],
      [{ format: 'json', items: 'r' }, `{"r":[{"ip":"${c}"},5,{"ip":"\\/"},\n{"ip":"${b}"}]}`, [c, b]],
    ];
    for (const [requested, text, counting] of cases) {
      const input = Buffer.from(text, 'latin1');
      const records = locate(input, parse(requested));
      expect(records.flatMap((record) => textsOf(input, record))).toEqual(counting);
      expect(records.flatMap(({ addresses }) => addresses).every(({ counts }) => counts)).toBe(true);
    }
  });

  it('count where `enrich` looks them up, in each log by name', async () => {
    for (const { name, input } of logSamples()) {
      const options = parse({ log: name, add: ['address'] });
      const bytes = Buffer.from(input);
      const enriched = await runEngine({
        inputs: [{ name, size: undefined, bytesRead: 0, read: readerOf(bytes), close: async () => {} }],
        options,
        openFile: () => publicRanges(),
      });
      const chosen = locate(bytes, options).flatMap(({ addresses }) => addresses.filter(({ counts }) => counts));
      expect(enriched.counts.found + enriched.counts.no_country, name).toBe(chosen.length);
      const texts = chosen.map(({ from, to }) => input.slice(from, to));
      const times = (text: string, part: string): number => text.split(part).length - 1;
      for (const text of texts) {
        const added = times(enriched.output, text) - times(input, text);
        expect([text, added]).toEqual([text, texts.filter((one) => one === text).length]);
      }
    }
  });
});

function readerOf(bytes: Buffer): (target: Uint8Array) => Promise<number> {
  let at = 0;
  return async (target) => {
    const length = bytes.copy(target, 0, at);
    at += length;
    return length;
  };
}

it('public ranges say what isPublicAddress says', async () => {
  const addresses = fc.oneof(fc.ipV4(), fc.ipV6(), fc.constantFrom('100.64.0.0', '100.127.255.255', '172.32.0.0'));
  const texts = fc.sample(addresses, { numRuns: 2000, seed: 1 });
  const options = parse({ format: 'list', add: ['country_code', 'address'] });
  const input = Buffer.from(texts.map((text) => `${text}\n`).join(''));
  const inputs = [{ name: 'list', size: undefined, bytesRead: 0, read: readerOf(input), close: async () => {} }];
  const { output } = await runEngine({ inputs, options, openFile: () => publicRanges() });
  expect(output).toBe(texts.map((text) => `${text}\t${isPublicAddress(text) ? 'ZZ' : ''}\t${text}\n`).join(''));
  expect(release.file.count4).toBeGreaterThan(0);
});
