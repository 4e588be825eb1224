/** Loads code that needs packages which most installations do without: optional peer dependencies in package.json. */
import { readFileSync } from 'node:fs';
import { AtlasError, messageOf, systemErrorCode } from './errors.js';
import { packageFile } from './package-root.js';

/** The packages by the command that needs them. */
const PACKAGES = {
  'export parquet': ['hyparquet-writer'],
  pull: ['tuf-js'],
  'serve --redis': ['@redis/client'],
  stream: ['@nats-io/jetstream', '@nats-io/transport-node'],
  'stream --server kafka://': ['@platformatic/kafka'],
} as const;

/** Returns the packages with the versions that fit, as arguments of npm. */
function withVersions(names: readonly string[]): string {
  const { peerDependencies } = JSON.parse(readFileSync(packageFile('package.json'), 'utf8')) as {
    peerDependencies: Record<string, string>;
  };
  return names.map((name) => `${name}@${peerDependencies[name]}`).join(' ');
}

/**
 * Loads code that needs packages.
 *
 * @param command that needs them
 * @param load imports the code
 * @throws AtlasError E_INSTALL if a package of the command is not installed; it names the packages
 */
export async function withPackages<Code>(command: keyof typeof PACKAGES, load: () => Promise<Code>): Promise<Code> {
  try {
    return await load();
  } catch (error) {
    const names = PACKAGES[command];
    const isMissing = names.some((name) => messageOf(error).includes(`'${name}'`));
    if (systemErrorCode(error) !== 'ERR_MODULE_NOT_FOUND' || !isMissing) throw error;
    throw new AtlasError(
      'E_INSTALL',
      `"ipatlas ${command}" needs what few installations need, so it is not installed with ipatlas: npm install ${withVersions(names)} (with --global if ipatlas was installed so)`,
      { cause: error },
    );
  }
}
