import { Validator } from '@seriousme/openapi-schema-validator';
import { describe, expect, it } from 'vitest';
import { openApiDocument } from '../../src/api/openapi.js';
import { allowedMethods } from '../../src/api/routes.js';
import { type Manifest, readManifest, releaseDir } from '../../src/database/release.js';
import { WIRE_ERRORS } from '../../src/errors.js';
import { MAX_BATCH } from '../../src/limits.js';
import { testApp } from '../support/api.js';
import { smallRelease } from '../support/release.js';

interface Document {
  servers: { url: string }[];
  paths: Record<string, Record<string, { responses: Record<string, { description: string }> }>>;
  components: { schemas: Record<string, { maxItems?: number }> };
}

const document = (baseUrls = {}, manifest?: Manifest) => openApiDocument(baseUrls, manifest) as Document;

const dataDir = await smallRelease();

describe('the OpenAPI document', () => {
  it('is served without a key and is valid OpenAPI 3.1', async () => {
    const app = testApp(dataDir);
    const response = await app.inject('/openapi.json');
    expect(response.statusCode).toBe(200);
    expect(response.headers['content-type']).toMatch(/^application\/json/);
    expect(response.json()).toEqual(JSON.parse(JSON.stringify(document({}, readManifest(releaseDir(dataDir))))));
    const validator = new Validator();
    const result = await validator.validate(response.json() as Record<string, unknown>);
    expect([result.errors, result.valid, validator.version]).toEqual([undefined, true, '3.1']);
    await app.close();
  });

  it('is found invalid if a mistake is put into it', async () => {
    const { paths: _, ...broken } = document();
    expect((await new Validator().validate({ ...broken, paths: [] })).valid).toBe(false);
  });

  it('lists the base addresses that are configured', () => {
    const urls = (baseUrls: object) => document(baseUrls).servers.map(({ url }) => url);
    expect(urls({})).toEqual(['/']);
    expect(urls({ default: 'https://ip.example', eu: 'https://eu.ip.example/api/' })).toEqual([
      'https://ip.example',
      'https://eu.ip.example',
    ]);
    expect(urls({ eu: 'https://eu.ip.example/v/api' })).toEqual(['/', 'https://eu.ip.example/v']);
  });

  it('describes every route with all its errors', () => {
    const { paths, components } = document();
    for (const [path, operations] of Object.entries(paths)) {
      // Only servers with rules have it.
      if (path.startsWith('/forward-auth/')) continue;
      const allowed = allowedMethods(path.replace('{ip}', '8.8.8.8'))!.toLowerCase();
      for (const method of Object.keys(operations)) expect(allowed).toContain(method);
    }
    const described = Object.values(paths)
      .flatMap((operations) => Object.values(operations))
      .flatMap(({ responses }) => Object.entries(responses))
      .map(([status, { description }]) => `${status} ${description}`);
    // Of the page, which the document leaves out.
    const page = ['keyless_off'];
    const transport = ['bad_request', 'timeout', 'expectation', 'headers_too_large', 'not_found', 'method_not_allowed'];
    for (const [name, { status, message }] of Object.entries(WIRE_ERRORS)) {
      if ([...transport, ...page].includes(name)) continue;
      expect(
        described.some((text) => text.startsWith(`${status} `) && text.includes(message)),
        name,
      ).toBe(true);
    }
    expect(components.schemas.BatchRequest?.maxItems).toBe(MAX_BATCH);
  });
});
