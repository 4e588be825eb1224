/** The Containerfile, as far as it can be checked without a container. */
import { spawn, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, it } from 'vitest';
import { packageFile } from '../../src/package-root.js';
import { finished } from '../support/cli.js';

const containerfile = readFileSync(packageFile('Containerfile'), 'utf8');

it('has the newest version of better-sqlite3 that package.json names', () => {
  const { dependencies } = JSON.parse(readFileSync(packageFile('package.json'), 'utf8'));
  const newest = dependencies['better-sqlite3'].split(' || ').at(-1).slice(1);
  const versions = [...containerfile.matchAll(/better-sqlite3@([\d.]+)/g)].map(([, version]) => version);
  expect(versions).toEqual([newest, newest]);
});

it('answers from the seed until its first build, and compose.yaml lets visitors of its page look addresses up', () => {
  const [, command] = /^CMD (\[.*\])$/m.exec(containerfile)!;
  expect(JSON.parse(command!)).toEqual(['serve', '--seed']);
  const [, composed] = /command: \[('serve'.*)\]/.exec(readFileSync(packageFile('compose.yaml'), 'utf8'))!;
  const args = composed!.split(', ').map((text) => text.slice(1, -1));
  expect(args).toEqual(expect.arrayContaining(['--seed', '--keyless']));
});

it('copies nothing that the image does not need', () => {
  const ignored = spawnSync('git', [
    'check-ignore',
    '--no-index',
    'node_modules',
    'dist',
    'data/cache',
    'data/keys.sqlite',
  ]);
  const inImage = readFileSync(packageFile('.dockerignore'), 'utf8').split('\n');
  for (const name of String(ignored.stdout).trim().split('\n')) {
    expect(
      inImage.some((pattern) => pattern.replace('*', '') === name),
      name,
    ).toBe(true);
  }
});

it.each([
  [200, 0],
  [503, 1],
])('its health check of a server that answers %d exits with %d', async (status, code) => {
  const [, check] = /^HEALTHCHECK .*?CMD (\[.*\])$/m.exec(containerfile)!;
  const server = createServer((request, response) =>
    response.writeHead(request.url === '/readyz' ? status : 404).end(),
  );
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const [, ...args] = JSON.parse(check!.replace(':8080', `:${port}`)) as string[];
  expect(await finished(spawn(process.execPath, args))).toMatchObject({ code, stderr: '' });
  server.closeAllConnections();
  server.close();
});
