/** The Kubernetes examples: their arguments are those of the command line, and their probes ask where the worker answers. */
import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { parseCommandLine } from '../../src/cli/command-line.js';
import { command } from '../../src/cli/stream.js';
import { packageFile } from '../../src/package-root.js';

it.each([
  ['stream', { from: 'LOGS', to: 'ENRICHED' }],
  ['stream-kafka', { from: 'logs', to: 'logs-geo', sasl: 'scram-sha-512' }],
])('%s.yaml gives the worker flags that exist, and probes the port of its metrics', async (file, flags) => {
  const documents = parseAllDocuments(readFileSync(packageFile(`deploy/kubernetes/${file}.yaml`), 'utf8'));
  const { spec } = documents.map((one) => one.toJS()).find(({ kind }) => kind === 'Deployment');
  const [worker] = spec.template.spec.containers;
  const [name, ...args] = worker.args;
  expect(name).toBe('stream');
  const { values } = await parseCommandLine('stream', command, args);
  expect(values).toMatchObject({ ...flags, init: true, 'metrics-host': '::' });
  expect(worker.ports).toEqual([{ name: 'metrics', containerPort: Number(values['metrics-port']) }]);
  const probes = [worker.livenessProbe, worker.readinessProbe].map(({ httpGet }) => httpGet);
  expect(probes).toEqual(['/healthz', '/readyz'].map((path) => ({ path, port: 'metrics' })));
});
