/** A worker on a real broker of Apache Kafka, without failures: kafka-kills.test.ts has those. .ci/run runs both. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { packageFile } from '../../src/package-root.js';
import { makeCertificates } from '../stream/credentials.js';
import { KafkaCluster, missingKafka, recordErrors, testRecord, USER } from '../stream/kafka.js';
import { ipatlas } from '../support/in-process.js';
import { publishBlocks, SMALL_WORLD, smallRelease, temporaryDir } from '../support/release.js';

const missing = missingKafka();
if (missing) it(missing, ({ skip }) => skip(missing));

describe.skipIf(missing)('a worker on Kafka', { concurrent: true }, () => {
  let cluster: KafkaCluster;
  let dataDir: string;
  const certificates = temporaryDir();

  beforeAll(async () => {
    dataDir = await smallRelease();
    makeCertificates(certificates);
    cluster = await KafkaCluster.start(1, certificates);
    await cluster.produce([
      { create: ['c3'], partitions: 3, replicas: 1 },
      { create: ['c1', 'c1b', 'secured'], partitions: 1, replicas: 1 },
      ...records('secured', 5, 1),
    ]);
  }, 300_000);
  afterAll(async () => {
    await cluster?.remove();
  });

  const records = (topic: string, count: number, partitions: number, first = 0): object[] =>
    Array.from({ length: count }, (_, at) => testRecord(topic, first + at, partitions));
  const flags = (from: string, to: string, ...more: string[]): string[] => [
    '--from',
    from,
    '--to',
    to,
    '--data',
    dataDir,
    ...more,
  ];

  it('writes each committed record once, with its key, headers, time and partition, from where the group is', async () => {
    await cluster.produce(
      [{ create: ['a'], partitions: 3, replicas: 1 }, ...records('a', 600, 3), { abort: 'x', in: 'a' }],
      'zstd',
    );
    const first = await cluster.work(...flags('a', 'a-geo', '--init', '--once'));
    expect([first.code, first.stderr]).toEqual([
      0,
      expect.stringContaining('created the topic a-geo-rejects, 3 partitions'),
    ]);
    expect(await recordErrors(cluster, 'a', 'a-geo', dataDir)).toEqual({ errors: [], records: 600 });
    await cluster.produce(
      [...records('a', 300, 3, 600), { abort: 'x2', in: 'a' }, ...records('a', 10, 3, 900)],
      'gzip',
    );
    expect((await cluster.work(...flags('a', 'a-geo', '--once'))).code).toBe(0);
    expect(await recordErrors(cluster, 'a', 'a-geo', dataDir)).toEqual({ errors: [], records: 910 });
    // There is nothing left to do.
    expect((await cluster.work(...flags('a', 'a-geo', '--once'))).code).toBe(0);
    expect((await cluster.read('a-geo')).length).toBe(910);
    expect(await cluster.read('a-geo-rejects')).toEqual([]);
  });

  it('goes on after records that expired, says how many, and is done if all did', async () => {
    await cluster.produce([
      { create: ['e'], partitions: 1, replicas: 1 },
      ...records('e', 20, 1),
      { expire: 'e', upTo: 20 },
    ]);
    expect((await cluster.work(...flags('e', 'e-geo', '--init', '--once'))).code).toBe(0);
    await cluster.produce([...records('e', 20, 1, 20), { expire: 'e', upTo: 30 }]);
    const { code, stderr } = await cluster.work(...flags('e', 'e-geo', '--once'));
    expect([code, stderr]).toEqual([0, expect.stringContaining('"offset":20,"records":10')]);
    expect(await recordErrors(cluster, 'e', 'e-geo', dataDir)).toEqual({ errors: [], records: 10 });
  });

  it('rejects what cannot be in the output, with the reason, and does the rest', async () => {
    const limit = [
      { name: 'max.message.bytes', value: '4000' },
      { name: 'message.timestamp.after.max.ms', value: '3600000' },
    ];
    const plain = { topic: 'b', partition: 0, key: 'k', headers: [['h', '1']], timestamp: 1_700_000_000_000 };
    const values = [
      '{"ip":"8.8.8.8"}',
      'broken',
      '{"ip":"8.8.8.8","n":2}\nbroken\n',
      `{"ip":"8.8.8.8","t":"${'x'.repeat(5_000)}"}`,
      '{"n":4}',
    ];
    const future = { ...plain, value: '{"ip":"8.8.8.8","n":5}', timestamp: Date.now() + 864_000_000 };
    await cluster.produce([
      {
        create: ['b'],
        partitions: 1,
        replicas: 1,
        configs: [{ name: 'message.timestamp.after.max.ms', value: '9000000000000' }],
      },
      { create: ['b-geo', 'b-no'], partitions: 1, replicas: 1, configs: limit },
      ...values.map((value) => ({ ...plain, value })),
      future,
      { ...plain, value: '{"n":6}' },
    ]);
    const { code, stderr } = await cluster.work(
      ...flags('b', 'b-geo', '--rejects', 'b-no', '--on-invalid', 'drop', '--once'),
    );
    expect(code, stderr).toBe(0);
    const output = await cluster.read('b-geo');
    expect(output.map(({ value }) => (JSON.parse(value!) as { n?: number }).n)).toEqual([undefined, 2, 4, 6]);
    const rejects = await cluster.read('b-no');
    const reasons = rejects.map(({ headers, value }) => [
      /ipatlas-source=b 0 (\d+),ipatlas-rejected=(\w+)/.exec(headers)?.slice(1).join(' '),
      value?.length ?? null,
    ]);
    expect(reasons).toEqual([
      ['1 invalid_line', 6],
      ['2 invalid_line', 7],
      ['3 too_large', null],
      ['5 refused_by_broker', future.value.length],
    ]);
    expect(rejects.map(({ key, headers }) => [key, headers.startsWith('h=1,')])).toEqual(
      rejects.map(() => ['k', true]),
    );
  });

  it('hides addresses as `enrich --redact` does, in the rejects, too', async () => {
    const values = [
      '{"ip":"8.8.8.8","m":"from 193.0.0.1"}',
      'broken 193.0.0.2',
      '{"hops":["2a00:1::1"],"ip":"10.0.0.1"}',
    ];
    const record = { topic: 'r', partition: 0, key: 'k', headers: [], timestamp: 1_700_000_000_000 };
    await cluster.produce([
      { create: ['r'], partitions: 1, replicas: 1 },
      ...values.map((value) => ({ ...record, value })),
    ]);
    const redact = ['--redact', 'truncate', '--redact-all', '--on-invalid', 'drop', '--add', 'country_code'];
    const { code, stderr } = await cluster.work(...flags('r', 'r-geo', '--init', '--once', '--keep-keys', ...redact));
    expect(code, stderr).toBe(0);
    const lines = await ipatlas(['enrich', '--format', 'jsonl', '--data', dataDir, ...redact], {
      input: values.join('\n'),
    });
    const output = (await cluster.read('r-geo')).map(({ value }) => value).join('\n');
    expect(output).toBe(lines.stdout);
    const rejects = (await cluster.read('r-geo-rejects')).map(({ value }) => value);
    expect(rejects).toEqual(['broken 193.0.0.0']);
    expect(output).not.toMatch(/8\.8\.8\.8|193\.0\.0\.1|2a00:1::1/);
  });

  it.each([
    [['--from', 'c3', '--to', 'c1', '--rejects', 'c1b'], /c3 has 3 partitions and c1 has 1: .*give --by-key/],
    [['--from', 'c3', '--to', 'none', '--rejects', 'c1b'], /there is no topic none; --init creates it/],
  ])('refuses topics that do not fit: %j', async (names, message) => {
    const { code, stderr } = await cluster.work(...names, '--data', dataDir, '--once');
    expect([code, stderr]).toEqual([2, expect.stringMatching(message)]);
  });

  it('chooses partitions by keys as other producers do, and keeps the order of each key', async () => {
    await cluster.produce([
      { create: ['k'], partitions: 4, replicas: 1 },
      { create: ['k-geo', 'k-no', 'k-other'], partitions: 3, replicas: 1 },
      ...records('k', 300, 4),
    ]);
    const { code, stderr } = await cluster.work(...flags('k', 'k-geo', '--rejects', 'k-no', '--by-key', '--once'));
    expect(code, stderr).toBe(0);
    const source = await cluster.read('k');
    const output = await cluster.read('k-geo');
    await cluster.produceByKey(
      'k-other',
      source.flatMap(({ key }) => key ?? []),
    );
    const partitions = new Map((await cluster.read('k-other')).map(({ key, partition }) => [key, partition]));
    const keyed = output.filter(({ key }) => key !== null);
    expect(keyed.map(({ partition }) => partition)).toEqual(keyed.map(({ key }) => partitions.get(key)));
    expect(new Set(output.map(({ key, partition }) => key === null && partition))).toEqual(new Set([false, 0, 1, 2]));
    expect(output).toHaveLength(300);
  });

  const { name, password } = USER;
  const user = `${name}:${encodeURIComponent(password)}@`;
  const token = [{ alg: 'none' }, { sub: name, iat: Date.now() / 1000, exp: Date.now() / 1000 + 3600 }]
    .map((part) => `${Buffer.from(JSON.stringify(part)).toString('base64url')}.`)
    .join('');
  const file = (of: string): string => join(certificates, of);
  const [ca, own] = [
    ['--tls-ca', file('ca.pem')],
    ['--tls-cert', file('client.pem'), '--tls-key', file('client.key')],
  ] as const;
  it.each([
    { what: 'plain', listener: 'sasl', at: `kafka://${user}`, more: [] },
    { what: 'scram-256', listener: 'sasl', at: 'kafka://', more: ['--sasl', 'scram-sha-256'], isInEnvironment: true },
    {
      what: 'scram-512 over TLS',
      listener: 'both',
      at: `kafka+tls://${user}`,
      more: ['--sasl', 'scram-sha-512', ...ca],
    },
    { what: 'a token', listener: 'sasl', at: 'kafka://', more: ['--sasl', 'oauthbearer', '--token', file('token')] },
    { what: 'a certificate', listener: 'tls', at: 'kafka+tls://', more: [...ca, ...own] },
    {
      what: 'a wrong password',
      listener: 'sasl',
      at: `kafka://${name}:no@`,
      more: [],
      problem: /check user and password/,
    },
    { what: 'no certificate', listener: 'tls', at: 'kafka+tls://', more: ca, problem: /--tls-cert/ },
    { what: 'no authority', listener: 'both', at: `kafka+tls://${user}`, more: [], problem: /certificate/ },
  ] as const)('connects to a secured broker: $what', async ({ what, listener, at, more, ...rest }) => {
    writeFileSync(file('token'), token);
    const output = `geo-${what.replaceAll(/[^a-z0-9]/g, '-')}`;
    const server = `${at}127.0.0.1:${cluster.secured[listener]}`;
    const variables = 'isInEnvironment' in rest ? { IPATLAS_KAFKA_USER: name, IPATLAS_KAFKA_PASSWORD: password } : {};
    const names = flags('secured', output, '--init', '--once', ...more);
    const { code, stderr } = await cluster.workAt(server, variables, ...names);
    if ('problem' in rest) {
      expect([code, stderr]).toEqual([2, expect.stringMatching(rest.problem)]);
    } else {
      expect(code, stderr).toBe(0);
      expect(await recordErrors(cluster, 'secured', output, dataDir)).toEqual({ errors: [], records: 5 });
    }
  });
});

it.skipIf(missing)('deploy/compose/kafka.yaml has a broker and a worker that work together', async () => {
  const { services } = parse(readFileSync(packageFile('deploy/compose/kafka.yaml'), 'utf8'));
  const [, flags] = /^npx .* ipatlas stream --server kafka:\/\/kafka:9092 (.*)$/.exec(services.worker.command)!;
  const [dataDir, cluster] = [temporaryDir(), await KafkaCluster.startAsIn(services.kafka.environment, 'kafka')];
  try {
    await publishBlocks(dataDir, SMALL_WORLD);
    const { code, stderr } = await cluster.work(...flags!.split(' '), '--data', dataDir, '--once');
    expect([code, stderr]).toEqual([0, expect.stringContaining('created the topic logs-geo, 6 partitions')]);
    await cluster.produce(Array.from({ length: 60 }, (_, at) => testRecord('logs', at, 6)));
    expect((await cluster.work(...flags!.split(' '), '--data', dataDir, '--once')).code).toBe(0);
    expect(await recordErrors(cluster, 'logs', 'logs-geo', dataDir)).toEqual({ errors: [], records: 60 });
  } finally {
    await cluster.remove();
  }
});
