/** The dashboard and the alert rules in deploy/, compared with the metrics that a real server and a real worker have. */
import { spawnSync } from 'node:child_process';
import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { createKey } from '../../src/api/keys/key-store.js';
import { DEFAULT_MAX_AGE_DAYS } from '../../src/limits.js';
import { packageFile } from '../../src/package-root.js';
import { hasNatsServer, NatsServerProcess, publishAll, SKIPPED } from '../stream/nats.js';
import { finished, start } from '../support/cli.js';
import { ipatlas } from '../support/in-process.js';
import { hasRedis, REDIS_SKIPPED, RedisProcess } from '../support/redis.js';
import { publishBlocks, SMALL_WORLD, temporaryDir } from '../support/release.js';
import { serve, until } from '../support/serve.js';
import { writeSources } from '../support/sources.js';

const RULES = packageFile('deploy/prometheus/ipatlas-alerts.yaml');
const rules = readFileSync(RULES, 'utf8');

interface Panel {
  id: number;
  type: string;
  title: string;
  gridPos: { x: number; y: number; w: number; h: number };
  targets?: { expr: string }[];
}
const dashboard = JSON.parse(readFileSync(packageFile('deploy/grafana/ipatlas.json'), 'utf8')) as {
  panels: Panel[];
  templating: { list: { name: string; definition?: string }[] };
};

const { groups } = parse(rules) as { groups: { rules: { expr: string }[] }[] };
const ruleExpressions = groups.flatMap((group) => group.rules.map(({ expr }) => expr));
const panelExpressions = dashboard.panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr));
const variables = dashboard.templating.list.flatMap(({ definition }) => definition ?? []);

/** The names of metrics in an expression. */
function metricsIn(expression: string): string[] {
  return [...expression.matchAll(/\b(?:ipatlas|process|nodejs)_\w+/g)].map(([name]) => name);
}

/** The labels in an expression: in matchers and in groups, without those that a scrape adds. */
function labelsIn(expression: string): string[] {
  const matchers = [...expression.matchAll(/\{([^}]*)\}/g)].flatMap(
    ([, inner]) => inner!.match(/\w+(?=\s*=~?|\s*!)/g) ?? [],
  );
  const groups = [...expression.matchAll(/by \(([^)]*)\)/g)].flatMap(([, inner]) => inner!.split(/\s*,\s*/));
  return [...matchers, ...groups].filter((label) => !['job', 'instance', 'le'].includes(label));
}

/** The names and labels of a text of metrics. A histogram has three names. */
function namesOf(text: string): { names: Set<string>; labels: Set<string> } {
  const names = new Set<string>();
  for (const [, name, type] of text.matchAll(/^# TYPE (\S+) (\S+)$/gm)) {
    names.add(name!);
    if (type === 'histogram') for (const suffix of ['bucket', 'sum', 'count']) names.add(`${name}_${suffix}`);
  }
  return { names, labels: new Set([...text.matchAll(/[{,](\w+)="/g)].map(([, label]) => label!)) };
}

it('rules and panels have expressions, which name metrics', () => {
  expect(ruleExpressions.length).toBeGreaterThan(10);
  expect(panelExpressions.length).toBeGreaterThan(25);
  for (const expression of panelExpressions) expect(metricsIn(expression)).not.toEqual([]);
});

it('the panels of the dashboard have ids of their own, and do not overlap', () => {
  const { panels } = dashboard;
  expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
  for (const [index, { gridPos: a }] of panels.entries()) {
    expect(a.x + a.w).toBeLessThanOrEqual(24);
    for (const { gridPos: b } of panels.slice(index + 1)) {
      const apart = a.x + a.w <= b.x || b.x + b.w <= a.x || a.y + a.h <= b.y || b.y + b.h <= a.y;
      expect(apart).toBe(true);
    }
  }
});

it('the rule for old data has the default age', () => {
  expect(rules).toContain(`ipatlas_release_age_seconds > ${DEFAULT_MAX_AGE_DAYS} * 86400`);
});

const promtool = (...args: string[]) => spawnSync('promtool', args, { encoding: 'utf8' });

it('promtool accepts the rules, their unit tests pass, and fail for a rule that is wrong', ({ skip }) => {
  if (promtool('--version').error !== undefined)
    skip(
      'SKIPPED: promtool (Debian: prometheus) is not installed; the alert rules are not checked by Prometheus itself',
    );
  expect(promtool('check', 'rules', RULES)).toMatchObject({ status: 0 });
  const dir = temporaryDir();
  cpSync(packageFile('deploy/prometheus'), dir, { recursive: true });
  const [test, ofRuns] = ['ipatlas-alerts', 'ipatlas-runs'].map((name) => join(dir, `${name}.test.yaml`));
  expect(promtool('test', 'rules', test!, ofRuns!)).toMatchObject({ status: 0 });
  for (const [tests, right, wrong] of [
    [test!, '> 35 * 86400', '> 36 * 86400'],
    [ofRuns!, '> 26 * 3600', '> 25 * 3600'],
    [ofRuns!, '> 47 * 3600', '> 23 * 3600'],
  ] as const) {
    writeFileSync(join(dir, 'ipatlas-alerts.yaml'), rules.replace(right, wrong));
    expect(promtool('test', 'rules', tests).status).not.toBe(0);
  }
});

const missing = [...(hasNatsServer() ? [] : [SKIPPED]), ...(hasRedis() ? [] : [REDIS_SKIPPED])];
for (const reason of missing) it(reason, ({ skip }) => skip(reason));

describe.skipIf(missing.length > 0)('each metric and label of the rules and the dashboard', () => {
  const dir = temporaryDir();
  const closers: (() => Promise<unknown>)[] = [];
  let text: string;
  let metrics: ReturnType<typeof namesOf>;

  beforeAll(async () => {
    await publishBlocks(dir, SMALL_WORLD);
    const redis = await RedisProcess.start();
    closers.push(async () => redis.signal('SIGKILL'));
    const server = await serve(dir, '--metrics-port', '0', '--redis', redis.url);
    closers.push(() => server.stop());
    const { url } = await server.logged('metrics');
    const headers = { 'x-api-key': createKey(dir).key };
    // The server sees a new key at its next check.
    await until(async () => (await fetch(`${server.url}/api/lookup/8.8.8.8`, { headers })).ok, 'the lookup');

    const nats = await NatsServerProcess.start();
    closers.push(() => nats.remove());
    const args = [
      '--from',
      'IN',
      '--to',
      'OUT',
      '--init',
      '--max-bytes',
      '100000000',
      '--metrics-port',
      '0',
      '--on-invalid',
      'drop',
    ];
    const worker = start(['stream', '--server', nats.url, ...args, '--data', dir]);
    const ended = finished(worker);
    closers.push(async () => {
      worker.kill('SIGTERM');
      await ended;
    });
    let log = '';
    worker.stderr!.on('data', (chunk) => {
      log += String(chunk);
    });
    const workerPort = await until(() => /"port":(\d+)/.exec(log)?.[1], 'the port of the worker');
    const connection = await nats.connect();
    await publishAll(connection, 'in.x', ['{"ip":"8.8.8.8"}\n', 'not JSON\n']);
    const workerUrl = `http://127.0.0.1:${workerPort}/metrics`;
    const textOf = async (from: unknown): Promise<string> => (await fetch(String(from))).text();
    // A metric has no labels before it has counted.
    await until(async () => (await textOf(workerUrl)).includes('ipatlas_stream_messages_total 2'), 'the messages');
    const runFile = join(dir, 'runs.prom');
    await ipatlas(['build', '--offline', '--sources', writeSources(dir, {}), '--data', dir, '--metrics', runFile]);
    text = (await textOf(url)) + (await textOf(workerUrl)) + readFileSync(runFile, 'utf8');
    metrics = namesOf(text);
    await connection.close();
  });
  afterAll(async () => {
    for (const close of closers.reverse()) await close();
  });

  it.each([...new Set([...ruleExpressions, ...panelExpressions, ...variables])])('exists: %s', (expression) => {
    expect([...metrics.names]).toEqual(expect.arrayContaining(metricsIn(expression)));
    expect([...metrics.labels]).toEqual(expect.arrayContaining(labelsIn(expression)));
  });

  it('ends in _total if and only if it counts', () => {
    const types = [...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)];
    expect(types.length).toBeGreaterThan(30);
    for (const [line, name, type] of types)
      expect([line, name!.endsWith('_total')]).toEqual([line, type === 'counter']);
  });
});
