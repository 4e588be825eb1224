/** What JSONTestSuite's files are to the kernel: a JSON object if and only if they are one to JSON.parse. */
import { beforeAll, describe, expect, it } from 'vitest';
import { createMessageEnricher } from '../../src/enrich/block-enricher.js';
import { emptyCounts } from '../../src/enrich/counts.js';
import { type EnrichOptions, parseFields } from '../../src/enrich/options.js';
import { parseAdd } from '../support/add.js';
import { chunkedSource, cut, everyByte, stream } from '../support/chunks.js';
import { documentAt, engineFormat } from '../support/engine-format.js';
import { jsonTestSuite, type SuiteFile } from '../support/json-test-suite.js';
import { expectLines } from '../support/line-oracle.js';
import { releaseForTests } from '../support/open-release.js';
import { runEngine } from '../support/run-engine.js';

const release = releaseForTests();
let files: SuiteFile[];
beforeAll(async () => {
  files = await jsonTestSuite();
});

const options: EnrichOptions = { fields: parseFields(['ip']), add: parseAdd('country_code'), onInvalid: 'keep' };

/** The placements of a text in a line: as the line, as a value before and after the address, and in arrays and objects. */
const PLACEMENTS: [name: string, place: (text: string) => string][] = [
  ['as the line', (text) => text],
  ['after the address', (text) => `{"ip":"8.8.8.8","a":${text}}`],
  ['before the address', (text) => `{"a":${text},"ip":"8.8.8.8"}`],
  ['inside arrays and objects', (text) => `{"a":[{"b":${text}},${text}],"ip":"8.8.8.8"}`],
];

/**
 * Returns a text as a part of a line. A carriage return is white space where a newline is, and is not allowed in strings
 * either, so the text stays as valid as it was.
 */
const asLine = (text: string): string => text.replaceAll('\n', '\r');

/** Returns whether JSON.parse accepts a text of bytes. */
function isJson(text: string): boolean {
  try {
    JSON.parse(Buffer.from(text, 'latin1').toString());
    return true;
  } catch {
    return false;
  }
}

it('has all files, and JSON.parse accepts and refuses those that a parser must', () => {
  const parsing = files.filter(({ folder }) => folder === 'test_parsing');
  expect(parsing.length).toBe(318);
  expect(files.length).toBe(340);
  for (const { name, text } of parsing) {
    if (!name.startsWith('i_')) expect({ name, isJson: isJson(text) }).toEqual({ name, isJson: name.startsWith('y_') });
    expect({ name, isJson: isJson(asLine(text)) }).toEqual({ name, isJson: isJson(text) });
  }
});

describe.each(PLACEMENTS)('a file %s', (_, place) => {
  /** Compares the engine with the oracle, which JSON.parse decides for. */
  async function expectSame(lines: string[], jobs: number, chunkBytes?: number): Promise<void> {
    const input = Buffer.from(lines.map((line) => `${line}\n`).join(''), 'latin1');
    const inputs = [chunkedSource('input', input, [1000, 20_000, 300_000])];
    const actual = await runEngine({ inputs, options, openFile: () => release.file, jobs, chunkBytes });
    const expected = expectLines(release.database, input, options);
    expect(actual.error).toBeUndefined();
    expect(actual.counts).toEqual(expected.counts);
    expect(actual.rejects === expected.rejects.toString('latin1'), 'the same rejects').toBe(true);
    expect(actual.output === expected.output.toString('latin1'), 'the same output').toBe(true);
  }

  it('is accepted or refused as by JSON.parse, each by itself', () => {
    const { enrichBlock } = createMessageEnricher(release.database, options);
    for (const { name, text } of files) {
      const line = Buffer.from(place(asLine(text)), 'latin1');
      const isSame = Buffer.compare(enrichBlock(line), expectLines(release.database, line, options).output) === 0;
      expect({ name, isSame }).toEqual({ name, isSame: true });
    }
  });

  it.each([1, 2])('is accepted or refused as by JSON.parse between the others, with %i jobs', async (jobs) => {
    const lines = files.map(({ text }) => place(asLine(text)));
    await expectSame(lines, jobs);
    await expectSame([...lines].reverse(), jobs, 1000);
    // Lines that are accepted between others that are, as in a log.
    await expectSame([...lines.filter(isJson), ...lines.filter(isJson).reverse()], jobs, 5000);
  });
});

describe('a file in an item of a JSON document', () => {
  it('is accepted or refused as by JSON.parse', async () => {
    const context = { database: release.database, options, counts: emptyCounts(), reject: () => {} };
    // The longest file has a hundred thousand characters.
    const format = engineFormat(context, documentAt(), { maxLineBytes: 500_000 });

    /** Returns the output; undefined if the document is not JSON. */
    async function run(document: string, cuts: readonly number[]): Promise<string | undefined> {
      const output: Uint8Array[] = [];
      try {
        for await (const part of format.enrich('input', stream(cut(Buffer.from(document, 'latin1'), cuts)))) {
          output.push(Uint8Array.from(part));
        }
      } catch (error) {
        expect(error).toMatchObject({ code: 'E_BAD_INPUT' });
        return undefined;
      }
      return Buffer.concat(output).toString('latin1');
    }

    for (const { name, text } of files) {
      const document = `[{"a":${text},"ip":"8.8.8.8"},\n{"ip":"x"}]`;
      const expected = `[{"a":${text},"ip":"8.8.8.8","geo":{"country_code":"US"}},\n{"ip":"x","geo":null}]`;
      for (const cuts of [[], text.length < 200 ? everyByte(document) : [1, 1000, 100_000]]) {
        const output = await run(document, cuts);
        expect({ name, isAccepted: output !== undefined }).toEqual({ name, isAccepted: isJson(document) });
        if (output !== undefined) expect(output === expected, name).toBe(true);
      }
    }
  });
});
