/**
 * The seed that "npm run build" made from the CSV packages. test/build/package-seed.test.ts makes it a release again, and
 * test/soak/compact.test.ts compares it with what the pipeline makes now.
 */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { packRelease } from '../../pipeline/compact-release.js';
import { CompactCountries } from '../../src/compact/countries.js';
import { MANIFEST_SECTION, manifestOf, partitionFileOf } from '../../src/database/compact.js';
import { readManifest, releaseDir } from '../../src/database/release.js';
import { openReleaseRanges } from '../../src/database/release-files.js';
import { openSeed } from '../../src/database/seed.js';
import { packageRoot } from '../../src/package-root.js';
import { COUNTRIES } from '../../src/rangefile/partitions.js';
import { seedRelease } from '../support/built-release.js';
import { replaceSection } from '../support/compact.js';
import { smallRelease } from '../support/release.js';

describe('the seed', () => {
  it('is opened as a release is, in memory of the caller', async () => {
    const allocated: Buffer[] = [];
    const { manifest, file } = openSeed((bytes) => {
      allocated.push(Buffer.from(new SharedArrayBuffer(bytes)));
      return allocated[0]!;
    });
    expect(file.bytes.buffer).toBe(allocated[0]!.buffer);
    expect(file.asOf).toBe(manifest.as_of);
    const release = openReleaseRanges(releaseDir((await seedRelease()).dataDir)).file;
    const startsOf = ({ start4 }: typeof file) => Buffer.from(start4.buffer, start4.byteOffset, start4.byteLength);
    expect(startsOf(file).equals(startsOf(release))).toBe(true);
  });

  it('says that it is for clones and tests, and npm does not publish it', () => {
    const { manifest } = openSeed();
    expect(manifest.not_for_publication).toMatch(/for clones and tests/);
    const { prepublishOnly } = JSON.parse(readFileSync(join(packageRoot(), 'package.json'), 'utf8')).scripts;
    // Without the build before it, which would replace what other tests use.
    const [, check] = /^npm run build && (node [\w/.-]+)$/.exec(prepublishOnly)!;
    const publish = () => execFileSync('sh', ['-c', check!], { cwd: packageRoot(), encoding: 'utf8', stdio: 'pipe' });
    expect(publish).toThrow(/not published: the seed is made of CSV packages/);
  });
});

describe('a compact form of a whole release', () => {
  it('is refused if its range file is not that of its manifest, or its manifest is not valid', async () => {
    const dir = await smallRelease();
    const packed = packRelease(releaseDir(dir));
    const manifest = readManifest(releaseDir(dir));
    const opened = (changed: object): unknown => {
      const compact = new CompactCountries(replaceSection(packed, MANIFEST_SECTION, JSON.stringify(changed)), 'x');
      return partitionFileOf(COUNTRIES, compact, manifestOf(compact, 'x'), 'x');
    };
    const [rangeFile, mirror] = manifest.outputs;
    const damaged = expect.objectContaining({ code: 'E_DAMAGED' });
    const other = { ...rangeFile!, sha256: '0'.repeat(64) };
    expect(() => opened({ ...manifest, outputs: [other, mirror] })).toThrow(damaged);
    expect(() => opened({ ...manifest, outputs: [mirror, mirror] })).toThrow(damaged);
    expect(() => opened({ ...manifest, id: 'x' })).toThrow(damaged);
    expect(opened(manifest)).toMatchObject({ asOf: manifest.as_of });
  });
});
