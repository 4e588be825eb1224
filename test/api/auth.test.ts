/** The key in a query string, against the parser of Node. */
import { parse } from 'node:querystring';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { queryParameters } from '../../src/api/include.js';

const pieces = ['apikey', 'APIKEY', 'apikey=', 'ipa_a-B', '=', '&', '%', '%41', '%zz', '+', ';', 'ä', '?', 'eu', ' '];

describe('the key in a query string', () => {
  it.each<[string, string | string[] | undefined]>([
    ['', undefined],
    ['apikey=', ''],
    ['apikey=ipa_a-B', 'ipa_a-B'],
    ['apikey=a=b', 'a=b'],
    ['apikey=%69pa', 'ipa'],
    ['apikey=a+b', 'a b'],
    ['apikey=a&apikey=b', ['a', 'b']],
    ['eu&apikey=a', 'a'],
    ['apikeys=a', undefined],
    ['ApiKey=a', undefined],
  ])('%j: %j', (query, expected) => {
    expect(queryParameters(query).apikey).toEqual(expected);
  });

  it('is what the parser of Node finds', () => {
    const query = fc.array(fc.constantFrom(...pieces), { maxLength: 8 }).map((parts) => parts.join(''));
    fc.assert(
      fc.property(query, (text) => {
        expect(queryParameters(text).apikey).toEqual(parse(text).apikey);
      }),
      { numRuns: 2000 },
    );
  });
});
