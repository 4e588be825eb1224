import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Ajv2020 } from 'ajv/dist/2020.js';
import fc from 'fast-check';
import { beforeEach, describe, expect, it } from 'vitest';
import { openDatabase } from '../../src/database/database.js';
import { type Manifest, readManifest, releaseDir, releaseId } from '../../src/database/release.js';
import { type Schema, schemaViolation } from '../../src/database/schema.js';
import { verifyRelease } from '../../src/database/verify.js';
import { AtlasError } from '../../src/errors.js';
import { packageFile } from '../../src/package-root.js';
import { smallRelease } from '../support/release.js';

const SCHEMA = JSON.parse(readFileSync(packageFile('schemas/manifest.schema.json'), 'utf8')) as Schema;
const isValid = new Ajv2020({ allowUnionTypes: true }).compile(SCHEMA);

let dataDir: string;
let release: string;
let path: string;
let text: string;
let manifest: Manifest;
beforeEach(async () => {
  dataDir = await smallRelease();
  release = releaseDir(dataDir);
  path = join(release, 'manifest.json');
  manifest = readManifest(release);
  manifest.inputs = [
    {
      ...{ id: 'one', version: '1', license: 'CC0-1.0', attribution: 'someone', rows: 1, rejected: 0, format: 'x' },
      files: [{ name: 'a.csv', bytes: 1, sha256: '0'.repeat(64) }],
    },
  ];
  manifest.forced = { by: 'me', at: '2026-01-01T00:00:00.000Z', refusals: [{ gate: 'g', message: 'm' }] };
  text = JSON.stringify(manifest);
  writeFileSync(path, text);
});

/** Reads and uses the release in all ways; returns the error of the first that fails, or undefined. */
function useRelease(): unknown {
  try {
    for (const engine of ['binary', 'sqlite'] as const) {
      using database = openDatabase(dataDir, { engine });
      expect(database.lookup('8.8.8.8')?.country_code).toBe('US');
      expect(new Headers({ 'x-release': database.manifest.id }).get('x-release')).toBe(manifest.id);
    }
    verifyRelease(release);
    return undefined;
  } catch (error) {
    return error;
  }
}

/** All paths to values in a JSON document. */
function pathsOf(value: unknown, at: (string | number)[] = []): (string | number)[][] {
  if (typeof value !== 'object' || value === null) return [at];
  return [at, ...Object.entries(value).flatMap(([key, member]) => pathsOf(member, [...at, key]))];
}

const ODD_VALUES = [null, true, 0, -1, 1.5, 1e300, '', 'x', '\n', '\u{1F4A9}', [], [null], {}, { a: 1 }, '2026-02-30'];

/** A copy of the manifest in which one value is replaced or removed, or gets a member. */
const mutation = (): fc.Arbitrary<unknown> =>
  fc
    .record({
      at: fc.constantFrom(...pathsOf(manifest).slice(1)),
      change: fc.oneof(
        fc.constantFrom(...ODD_VALUES).map((value) => ({ value })),
        fc.constantFrom('remove', 'extend'),
      ),
    })
    .map(({ at, change }) => {
      const copy = structuredClone(manifest) as unknown as Record<string | number, unknown>;
      // biome-ignore lint/suspicious/noExplicitAny: any JSON value
      const parent = at.slice(0, -1).reduce((value: any, key) => value[key], copy);
      const key = at.at(-1)!;
      if (change === 'remove') delete parent[key];
      else if (change === 'extend') parent.unexpected = 1;
      else parent[key] = (change as { value: unknown }).value;
      return copy;
    });

describe('a manifest', () => {
  it('is valid when published', () => {
    expect(isValid(manifest)).toBe(true);
    expect(useRelease()).toBeUndefined();
  });

  it('is refused with E_DAMAGED, and no other error, if any value has another form', () => {
    fc.assert(
      fc.property(mutation(), (mutated) => {
        writeFileSync(path, JSON.stringify(mutated));
        const error = useRelease();
        if (error !== undefined) expect((error as AtlasError).code, String(error)).toBe('E_DAMAGED');
        if (!isValid(mutated)) expect(error).toBeInstanceOf(AtlasError);
      }),
      { numRuns: 500 },
    );
  });

  it('is refused or still right if a bit is flipped or the file is cut off', () => {
    const bytes = Buffer.from(text);
    fc.assert(
      fc.property(fc.nat(bytes.length - 1), fc.nat(7), fc.boolean(), (index, bit, isCut) => {
        const damaged = isCut ? bytes.subarray(0, index) : Buffer.from(bytes);
        if (!isCut) damaged[index]! ^= 1 << bit;
        writeFileSync(path, damaged);
        const error = useRelease();
        if (error !== undefined) expect((error as AtlasError).code, String(error)).toBe('E_DAMAGED');
      }),
      { numRuns: 500 },
    );
  });

  it('is refused if any bit of the id differs', () => {
    const at = text.indexOf(manifest.id);
    for (let index = at; index < at + manifest.id.length; index++) {
      for (let bit = 0; bit < 8; bit++) {
        const damaged = Buffer.from(text);
        damaged[index]! ^= 1 << bit;
        writeFileSync(path, damaged);
        expect(() => verifyRelease(release)).toThrow(/manifest/);
      }
    }
  });

  it('must belong to its directory', () => {
    const hash = 'f'.repeat(64);
    const other = { ...manifest, input_hash: hash, id: releaseId(manifest.as_of, hash) };
    writeFileSync(path, JSON.stringify(other));
    expect(() => verifyRelease(release)).toThrow(`id is ${other.id}, but its directory is ${manifest.id}`);
  });

  it('must have a valid date', () => {
    const other = { ...manifest, as_of: '2026-02-30', id: releaseId('2026-02-30', manifest.input_hash) };
    writeFileSync(path, JSON.stringify(other));
    expect(() => readManifest(release)).toThrow('as_of is 2026-02-30, which is not a date');
  });
});

describe('the schema validator', () => {
  it('agrees with ajv', () => {
    fc.assert(
      fc.property(mutation(), mutation(), (one, two) => {
        for (const value of [one, { ...(one as object), ...(two as object) }]) {
          expect(schemaViolation(SCHEMA, value) === undefined).toBe(isValid(value));
        }
      }),
      { numRuns: 1000 },
    );
    for (const value of [...ODD_VALUES, [[]], manifest]) {
      expect(schemaViolation(SCHEMA, value) === undefined).toBe(isValid(value));
    }
  });

  it('refuses keywords that it does not support', () => {
    expect(() => schemaViolation({ maximum: 1 } as Schema, 1)).toThrow('keyword maximum is not supported');
    expect(() => schemaViolation({ $ref: '#/$defs/none' }, 1)).toThrow('#/$defs/none has no target');
  });
});
