/** The Kubernetes examples: their arguments are those of the command line, and their probes ask where the worker answers. */
import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { parseCommandLine } from '../../src/cli/command-line.js';
import { command } from '../../src/cli/stream.js';
import { packageFile } from '../../src/package-root.js';

it.each([
  ['stream', { from: 'LOGS', to: 'ENRICHED' }],
  ['stream-kafka', { from: 'logs', to: 'logs-geo', sasl: 'scram-sha-512' }],
])('%s.yaml gives the worker flags that exist, and probes the port of its metrics', async (file, flags) => {
  const example = readFileSync(packageFile(`deploy/kubernetes/${file}.yaml`), 'utf8');
  const [name, ...args] = [...example.matchAll(/^ {12}- (\S+)$/gm)].map(([, argument]) => argument!);
  expect(name).toBe('stream');
  const { values } = await parseCommandLine('stream', command, args);
  expect(values).toMatchObject({ ...flags, init: true, 'metrics-host': '::' });
  expect(example).toContain(`containerPort: ${values['metrics-port']} `);
  const probes = [...example.matchAll(/httpGet: \{ path: (\S+), port: metrics \}/g)].map(([, path]) => path);
  expect(probes).toEqual(['/healthz', '/readyz']);
});
