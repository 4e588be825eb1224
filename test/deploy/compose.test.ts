import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { parse } from 'yaml';
import { allFlags } from '../../src/cli/command-line.js';
import { loadCommands } from '../../src/cli/commands.js';
import { packageFile } from '../../src/package-root.js';
import { ipatlas } from '../support/in-process.js';
import { country, publishBlocks, SMALL_WORLD, temporaryDir } from '../support/release.js';

const compose = readFileSync(packageFile('deploy/compose/nodes.yaml'), 'utf8');
const streams = ['streams', 'kafka'].map((name) => readFileSync(packageFile(`deploy/compose/${name}.yaml`), 'utf8'));
const nodesFile = packageFile('deploy/compose/nodes.json');

it('the examples call commands and flags that exist', async () => {
  const commands = new Map((await loadCommands()).map(({ name, command }) => [name, command]));
  const calls = [...[compose, ...streams].join('\n').matchAll(/ipatlas ([a-z]+)((?: +[^\s;&|]+)*)/g)].filter(
    ([, name]) => commands.has(name!),
  );
  expect(new Set(calls.map(([, name]) => name))).toEqual(
    new Set(['build', 'export', 'keys', 'pull', 'repo', 'serve', 'stream']),
  );
  for (const [call, name, rest] of calls) {
    const known = Object.keys(allFlags(commands.get(name!)!));
    for (const [, flag] of rest!.matchAll(/--([a-z-]+)/g)) expect(known, call).toContain(flag);
  }
});

it('the nodes of the example are those that DNS routes to', async () => {
  interface Service {
    command?: string[];
    networks?: { default: { ipv4_address: string } };
  }
  const { services } = parse(compose, { merge: true }) as { services: Record<string, Service> };
  const servers = Object.values(services).flatMap(({ command: [, name, flags] = [], networks }) => {
    const [, country, eu] = /^--country ([A-Z]{2})( --eu)?$/.exec(flags ?? '') ?? [];
    if (country === undefined) return [];
    return [{ name, country, ...(eu ? { eu: true } : {}), addresses: [networks!.default.ipv4_address] }];
  });
  const { nodes } = JSON.parse(readFileSync(nodesFile, 'utf8')) as { nodes: unknown[] };
  expect(servers).toEqual(nodes);

  const dataDir = temporaryDir();
  const blocks = [
    ...SMALL_WORLD,
    ['91.0.0.0/8', country('IE', 'Ireland', true)],
    ['101.0.0.0/8', country('SG', 'Singapore')],
  ];
  await publishBlocks(dataDir, blocks as typeof SMALL_WORLD);
  const exported = await ipatlas([
    'export',
    'gdnsd',
    '--data',
    dataDir,
    '--nodes',
    nodesFile,
    '-o',
    join(dataDir, 'etc'),
  ]);
  expect(exported, exported.stderr).toMatchObject({ code: 0 });
});
