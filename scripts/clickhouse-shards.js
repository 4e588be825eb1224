#!/usr/bin/env node
// Joins addresses of both families that are sharded over two servers of ClickHouse, with the dictionaries of docs/warehouses.md on each,
// and compares the answers with those of "ipatlas enrich". Needs clickhouse-server and clickhouse-client of Debian (18.16), which knows
// dictionaries from XML only. Each family has a dictionary of its own: with both in one, this version compares IPv6 addresses with IPv4
// blocks.
// usage: node scripts/clickhouse-shards.js DATA [ADDRESSES [SEED]]   (default: 1,000,000 addresses)
import { execFileSync, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { randomWords } from '../bench/measure.js';
import { CLI } from '../bench/paths.js';
import { formatIPv4, formatIPv6 } from '../dist/src/address/format.js';
import { parseAddress } from '../dist/src/address/parse.js';

const [data, count = 1_000_000, seed = 1] = process.argv.slice(2);
/** Longest start of a server, in milliseconds. */
const PATIENCE_MS = 60_000;
const dir = mkdtempSync(join(tmpdir(), 'ipatlas-clickhouse-'));
const servers = [];
process.on('SIGTERM', () => process.exit(1));
process.on('exit', () => {
  for (const { child } of servers) child.kill('SIGKILL');
  rmSync(dir, { recursive: true, force: true });
});

async function freePorts(wanted) {
  const open = Array.from({ length: wanted }, () => createServer());
  const ports = [];
  for (const server of open) {
    await new Promise((done) => server.listen(0, '127.0.0.1', done));
    ports.push(server.address().port);
  }
  await Promise.all(open.map((server) => new Promise((done) => server.close(done))));
  return ports;
}

const attribute = (name) => `<attribute><name>${name}</name><type>String</type><null_value></null_value></attribute>`;
const FAMILIES = [4, 6];
const tableOf = (family) => join(dir, `networks${family}.csv`);
const dictionary = (family) => `<dictionary>
  <name>networks${family}</name>
  <source><file><path>${tableOf(family)}</path><format>CSVWithNames</format></file></source>
  <layout><ip_trie/></layout><lifetime>0</lifetime>
  <structure>
    <key><attribute><name>network</name><type>String</type></attribute></key>
    ${['country_code', 'country', 'is_eu'].map(attribute).join('')}
  </structure>
</dictionary>`;

const configOf = (home, [tcp, http, between], shards) => `<yandex>
  <logger><level>warning</level><log>${home}/log</log><errorlog>${home}/errors</errorlog></logger>
  <listen_host>127.0.0.1</listen_host>
  <tcp_port>${tcp}</tcp_port><http_port>${http}</http_port><interserver_http_port>${between}</interserver_http_port>
  <path>${home}/data/</path><tmp_path>${home}/tmp/</tmp_path><mark_cache_size>5368709120</mark_cache_size>
  <users_config>${dir}/users.xml</users_config><default_profile>default</default_profile>
  <default_database>default</default_database>
  <dictionaries_config>${dir}/networks_dictionary.xml</dictionaries_config>
  <remote_servers><both>${shards
    .map(([port]) => `<shard><replica><host>127.0.0.1</host><port>${port}</port></replica></shard>`)
    .join('')}</both></remote_servers>
</yandex>`;
const USERS = `<yandex><profiles><default/></profiles><quotas><default/></quotas><users><default><password></password>
  <networks><ip>127.0.0.1</ip></networks><profile>default</profile><quota>default</quota></default></users></yandex>`;

/** The addresses of Teredo, 2001::/32, are not in the tables of blocks. */
const TEREDO = 0x2001_0000;

/** Returns an address of a block of IPv6, given as a line of a table, or one of the block beside it, as often as not. */
function addressNear(line, next) {
  const [network, prefix] = line.slice(0, line.indexOf(',')).split('/');
  const words = new Uint32Array(4);
  parseAddress(network, words);
  const isBeside = next() % 2 === 0;
  for (let bit = 0; bit < 128; bit++) {
    const isFlipped = bit >= Number(prefix) ? next() % 2 === 1 : isBeside && bit === prefix - 1;
    if (isFlipped) words[bit >>> 5] ^= 1 << (31 - (bit & 31));
  }
  return words[0] === TEREDO ? addressNear(line, next) : formatIPv6(...words);
}

const ask = ([port], query, input = '') =>
  execFileSync('clickhouse-client', ['--host', '127.0.0.1', '--port', String(port), '--query', query], {
    ...{ input, encoding: 'utf8', maxBuffer: 2 ** 30, stdio: ['pipe', 'pipe', 'pipe'] },
  });

try {
  for (const family of FAMILIES) {
    const flags = ['--family', String(family), '--embedded', 'all', '--data', resolve(data), '-o', tableOf(family)];
    execFileSync(process.execPath, [CLI, 'export', 'cidr', ...flags], { stdio: 'pipe' });
  }
  writeFileSync(
    join(dir, 'networks_dictionary.xml'),
    `<dictionaries>${FAMILIES.map(dictionary).join('')}</dictionaries>`,
  );
  writeFileSync(join(dir, 'users.xml'), USERS);
  const ports = await freePorts(6);
  const shards = [ports.slice(0, 3), ports.slice(3)];
  for (const [index, own] of shards.entries()) {
    const home = join(dir, `server${index}`);
    mkdirSync(join(home, 'data'), { recursive: true });
    writeFileSync(join(home, 'config.xml'), configOf(home, own, shards));
    const child = spawn('clickhouse-server', [`--config-file=${home}/config.xml`], { cwd: home, stdio: 'ignore' });
    servers.push({ child, home });
    for (const begun = performance.now(); ; await sleep(200)) {
      try {
        ask(own, 'SELECT 1');
        break;
      } catch (error) {
        if (child.exitCode !== null || performance.now() - begun > PATIENCE_MS) {
          throw new Error(`a server does not start: ${readFileSync(join(home, 'errors'), 'utf8')}`, { cause: error });
        }
      }
    }
    ask(own, 'CREATE TABLE local (ip String) ENGINE = MergeTree() ORDER BY ip');
    ask(own, 'CREATE TABLE visits AS local ENGINE = Distributed(both, default, local, cityHash64(ip))');
  }
  const next = randomWords(Number(seed));
  const blocks6 = readFileSync(tableOf(6), 'utf8').trim().split('\n').slice(1);
  const addresses = new Set();
  for (let index = 0; index < count; index++) {
    addresses.add(index % 2 === 0 ? formatIPv4(next()) : addressNear(blocks6[next() % blocks6.length], next));
  }
  const list = `${[...addresses].join('\n')}\n`;
  ask(shards[0], 'INSERT INTO visits FORMAT TSV', list);
  const held = [];
  for (const begun = performance.now(); performance.now() - begun < PATIENCE_MS; await sleep(200)) {
    held.splice(0, 2, ...shards.map((own) => Number(ask(own, 'SELECT count() FROM local'))));
    if (held[0] + held[1] === addresses.size) break;
  }
  if (held.some((rows) => rows < addresses.size / 4)) throw new Error(`the shards hold ${held.join(' and ')} rows`);
  const codes = FAMILIES.map(
    (family) => `dictGetString('networks${family}', 'country_code', tuple(IPv${family}StringToNum(ip)))`,
  );
  const code = `if(position(ip, ':') = 0, ${codes[0]}, ${codes[1]})`;
  // A server reads a dictionary when it is first asked.
  for (const own of shards) ask(own, `SELECT ${code} FROM local LIMIT 1`);
  const begun = performance.now();
  const answers = ask(shards[1], `SELECT ip, ${code} FROM visits FORMAT TSV`);
  const seconds = (performance.now() - begun) / 1000;
  writeFileSync(join(dir, 'list'), list);
  const enriched = execFileSync(
    process.execPath,
    [...[CLI, 'enrich', '--format', 'list', '--add', 'country_code', '--data', resolve(data), join(dir, 'list')]],
    { encoding: 'utf8', maxBuffer: 2 ** 30, stdio: ['ignore', 'pipe', 'ignore'] },
  );
  const [actual, expected] = [answers, enriched].map((text) => text.replace(/\n$/, '').split('\n').sort());
  const wrong = actual.filter((line, index) => line !== expected[index]);
  if (actual.length !== expected.length || wrong.length > 0)
    throw new Error(`${actual.length} of ${expected.length} answers, ${wrong.length} differ: ${wrong.slice(0, 5)}`);
  const countries = actual.filter((line) => /[A-Z]{2}$/.test(line)).length;
  console.log(
    `${actual.length} addresses of both families on two shards (${held.join(', ')}): answers as enrich has them, in ${seconds.toFixed(1)} s; ${countries} have a country`,
  );
} catch (error) {
  console.error(error);
  process.exitCode = 1;
}
process.exit();
