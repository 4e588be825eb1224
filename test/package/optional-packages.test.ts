/** Packages that are not installed with ipatlas. */
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { withPackages } from '../../src/optional-packages.js';
import { packageFile } from '../../src/package-root.js';

type Command = Parameters<typeof withPackages>[0];

const { peerDependencies, peerDependenciesMeta } = JSON.parse(readFileSync(packageFile('package.json'), 'utf8')) as {
  peerDependencies: Record<string, string>;
  peerDependenciesMeta: Record<string, unknown>;
};

/** Returns what Node throws for a package that is not installed. */
async function missing(name: string): Promise<never> {
  const code = `import(${JSON.stringify(name)})`;
  throw Object.assign(new Error(`Cannot find package '${name}' imported from /x.js (${code})`), {
    code: 'ERR_MODULE_NOT_FOUND',
  });
}

describe('an optional package that is missing', () => {
  it.each<[Command, string[]]>([
    ['pull', ['tuf-js']],
    ['export parquet', ['hyparquet-writer']],
    ['serve --redis', ['@redis/client']],
    ['stream', ['@nats-io/jetstream', '@nats-io/transport-node']],
    ['stream --server kafka://', ['@platformatic/kafka']],
  ])('of "ipatlas %s" is named, with its version', async (command, names) => {
    const install = `npm install ${names.map((name) => `${name}@${peerDependencies[name]}`).join(' ')}`;
    for (const name of names) {
      await expect(withPackages(command, () => missing(name))).rejects.toMatchObject({
        code: 'E_INSTALL',
        message: expect.stringContaining(install),
      });
    }
  });

  it('is optional for npm', () => {
    const optional = Object.fromEntries(Object.keys(peerDependencies).map((name) => [name, { optional: true }]));
    expect(peerDependenciesMeta).toEqual(optional);
  });

  it('of another name stays the error that it is: the installation is damaged', async () => {
    await expect(withPackages('pull', () => missing('yauzl'))).rejects.toMatchObject({ code: 'ERR_MODULE_NOT_FOUND' });
  });
});
