/** The OpenAPI document under the recommended rules of two linters. */
import { createConfig, lintFromString } from '@redocly/openapi-core';
import spectralCore from '@stoplight/spectral-core';
import { oas } from '@stoplight/spectral-rulesets';
import { beforeAll, describe, expect, it } from 'vitest';
import { openApiDocument } from '../../src/api/openapi.js';
import { type Manifest, readManifest, releaseDir } from '../../src/database/release.js';
import { smallRelease } from '../support/release.js';

const { Spectral } = spectralCore;

let dataDir: string;
let manifest: Manifest;
beforeAll(async () => {
  dataDir = await smallRelease();
  const published = readManifest(releaseDir(dataDir));
  const source = { rows: 1, rejected: 0, format: 'csv', files: [] };
  const hostile = {
    id: 'a',
    version: '1',
    license: 'X',
    attribution: '<script>eval("1")</script> [a](http://a.example)',
  };
  manifest = { ...published, inputs: [{ ...hostile, ...source }] };
});

/** Returns what Redocly's linter finds, as rule, place and message. */
async function redocly(document: object): Promise<string[]> {
  const config = await createConfig({ extends: ['recommended-strict'] });
  const problems = await lintFromString({ source: JSON.stringify(document), config });
  return problems.map(({ ruleId, message, location }) => `${ruleId} ${location[0]?.pointer}: ${message}`);
}

/** Returns what Spectral's linter finds. */
async function spectral(document: object): Promise<string[]> {
  const linter = new Spectral();
  linter.setRuleset({ extends: [[oas, 'recommended']] } as never);
  const problems = await linter.run(JSON.parse(JSON.stringify(document)));
  return problems.map(({ code, message, path }) => `${code} ${path.join('/')}: ${message}`);
}

const BASES = { default: 'https://ip.example', eu: 'https://eu.ip.example/api/' };

describe.each([
  ['Redocly', redocly],
  ['Spectral', spectral],
] as const)('%s', (_, lint) => {
  it('finds nothing in the document with base addresses and sources', async () => {
    expect(await lint(openApiDocument(BASES, manifest))).toEqual([]);
  });

  it('finds nothing in the document without them', async () => {
    expect(await lint(openApiDocument({}))).toEqual([]);
  });

  it('finds a mistake', async () => {
    const { paths: _, ...broken } = openApiDocument(BASES) as { paths: object };
    expect(await lint(broken)).not.toEqual([]);
  });
});
