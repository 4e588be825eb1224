/** The enrichers as a library: messages, options, and types. */
import fc from 'fast-check';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { createBlockEnricher } from '../../src/enrich/block-enricher.js';
import { createEnricher, createEnricherStream, type EnricherOptions } from '../../src/enrich/enricher.js';
import { parseFields } from '../../src/enrich/options.js';
import { parseAdd } from '../support/add.js';
import { expectLines } from '../support/line-oracle.js';
import { ANY_INPUT } from '../support/nasty-lines.js';
import { releaseForTests } from '../support/open-release.js';

const release = releaseForTests();

const RUNS = Math.ceil(Number(process.env.FUZZ_RUNS ?? 80) / 8);

describe('enrichBlock', () => {
  it('returns one message for each message, as the oracle does', () => {
    const options = { fields: parseFields([]), add: parseAdd('country_code'), onInvalid: 'keep' } as const;
    const { enrichBlock } = createBlockEnricher(release.database, { add: ['country_code'] });
    fc.assert(
      fc.property(fc.array(ANY_INPUT, { maxLength: 5 }), (messages) => {
        for (const message of messages) {
          const expected = expectLines(release.database, message, { ...options, fields: [...options.fields] });
          expect(Buffer.from(enrichBlock(message)).toString('latin1')).toBe(expected.output.toString('latin1'));
        }
      }),
      { numRuns: RUNS },
    );
  });

  it('never joins a message without a final newline to the next', () => {
    const enricher = createBlockEnricher(release.database, { add: ['country_code'] });
    const half = Buffer.from('{"ip":"8.8.8.8"');
    expect(Buffer.from(enricher.enrichBlock(half)).toString()).toBe(half.toString());
    expect(Buffer.from(enricher.enrichBlock(Buffer.from('}'))).toString()).toBe('}');
    expect(Buffer.from(enricher.enrichBlock(Buffer.from('{"ip":"8.8.8.8"}'))).toString()).toBe(
      '{"ip":"8.8.8.8","geo":{"country_code":"US"}}',
    );
    expect(enricher.enrichBlock(Buffer.alloc(0))).toHaveLength(0);
    expect(enricher.counts).toMatchObject({ lines: 3, invalid_line: 2, found: 1 });
  });

  it('returns memory of its own, also for messages larger than a block', () => {
    const { enrichBlock } = createBlockEnricher(release.database, { add: ['country_code'] });
    const line = '{"ip":"8.8.8.8"}\n';
    const enriched = '{"ip":"8.8.8.8","geo":{"country_code":"US"}}\n';
    const first = enrichBlock(Buffer.from(line));
    const large = enrichBlock(Buffer.from(line.repeat(100_000)));
    enrichBlock(Buffer.from('{"a":1}\n'));
    expect(Buffer.from(first).toString()).toBe(enriched);
    expect(Buffer.from(large).toString() === enriched.repeat(100_000)).toBe(true);
  });

  it('returns the same after any message before it, in memory not much larger than the result', () => {
    const { enrichBlock } = createBlockEnricher(release.database, { add: ['country_code'] });
    // Output of 2.6 times the input, of about the same size, and of no bytes, in every order.
    const kinds: [line: string, enriched: string][] = [
      ['{"ip":"8.8.8.8"}\n', '{"ip":"8.8.8.8","geo":{"country_code":"US"}}\n'],
      [`${'x'.repeat(3_000)}\n`, `${'x'.repeat(3_000)}\n`],
      ['', ''],
    ];
    const message = fc.tuple(fc.nat(kinds.length - 1), fc.integer({ min: 1, max: 400 }));
    fc.assert(
      fc.property(fc.array(message, { maxLength: 6 }), (messages) => {
        const results = messages.map(([kind, count]) => enrichBlock(Buffer.from(kinds[kind]![0].repeat(count))));
        for (const [index, result] of results.entries()) {
          const [kind, count] = messages[index]!;
          expect(Buffer.from(result).toString() === kinds[kind]![1].repeat(count)).toBe(true);
          expect(result.buffer.byteLength).toBeLessThanOrEqual(Math.max(8_192, 2 * result.length));
        }
      }),
      { numRuns: 60 },
    );
  });

  it('allocates at most six times the size of a message, also after one whose output was ten times as long', () => {
    const field = Array.from({ length: 10 }, (_, i) => `ip=geo${i}`);
    const { enrichBlock } = createBlockEnricher(release.database, { field });
    const line = Buffer.from('{"ip":"8.8.8.8"}\n');
    expect(enrichBlock(line).length).toBeGreaterThan(10 * line.length);
    const allocated = vi.spyOn(Buffer, 'allocUnsafeSlow');
    onTestFinished(() => allocated.mockRestore());
    const long = Buffer.from(`${'x'.repeat(999)}\n`.repeat(2_000));
    expect(enrichBlock(long).length).toBe(long.length);
    expect(Math.max(...allocated.mock.calls.map(([bytes]) => bytes))).toBeLessThan(6 * long.length);
  });

  it('fails under the policy fail, and processes the next message normally', () => {
    const rejected: string[] = [];
    const { enrichBlock } = createBlockEnricher(release.database, {
      onInvalid: 'fail',
      onReject: (lines) => rejected.push(Buffer.from(lines).toString()),
    });
    const bad = Buffer.from(`{}\nx\n${'{}\n'.repeat(100_000)}{"half"`);
    for (let i = 0; i < 3; i++) {
      expect(() => enrichBlock(bad)).toThrow(expect.objectContaining({ code: 'E_BAD_INPUT' }));
      expect(() => enrichBlock(bad)).toThrow('line 2 is not a JSON object');
      expect(Buffer.from(enrichBlock(Buffer.from('{}'))).toString()).toBe('{"geo":null}');
    }
    expect(rejected).toEqual(Array(6).fill('x\n'));
  });

  it('fails with a TypeError if the message is not a Uint8Array', () => {
    const { enrichBlock } = createBlockEnricher(release.database);
    expect(() => enrichBlock('{}' as unknown as Uint8Array)).toThrow(TypeError);
  });
});

describe('options that are not valid are refused', () => {
  it.each<[what: string, options: unknown, message: string]>([
    ['an unknown name', { fields: ['ip'] }, 'there is no option "fields"; the options are field, add, schema, lenient'],
    ['a field of another type', { field: 5 }, 'field must be'],
    ['fields of another type', { field: ['ip', null] }, 'field must be'],
    [
      'an unknown member',
      { add: ['planet'] },
      'choose from country, country_code, is_eu, is_eea, continent, asn, as_name, anycast, kind, operator, network, reason, confidence',
    ],
    ['members as text', { add: 'country' }, 'add must be an array'],
    ['no members', { add: [] }, 'choose from'],
    ['two members in one', { add: ['country,is_eu'] }, 'choose from'],
    ['an unknown policy', { onInvalid: 'ignore' }, 'onInvalid is "ignore"; it can be keep, drop, fail'],
    ['a reject handler of another type', { onReject: true }, 'onReject must be a function'],
  ])('%s', (_, options, message) => {
    for (const create of [createEnricher, createEnricherStream, createBlockEnricher]) {
      expect(() => create(release.database, options as EnricherOptions)).toThrow(
        expect.objectContaining({ code: 'E_USAGE', message: expect.stringContaining(message) }),
      );
    }
  });

  it('undefined options are accepted', () => {
    const options = { field: undefined, add: undefined, onInvalid: undefined } as unknown as EnricherOptions;
    expect(() => createEnricher(release.database, options)).not.toThrow();
  });
});
