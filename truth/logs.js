// `node truth/logs.js DATA`: how often `enrich --log NAME` takes the address that the pipeline tests of elastic/integrations
// expect as `source.ip`. Fetches their samples, which are not part of this repository. DATA is a data directory with a release.
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const MAIN = fileURLToPath(new URL('../dist/src/cli/main.js', import.meta.url));
const REPOSITORY = 'https://github.com/elastic/integrations';
const CHECKOUT = fileURLToPath(new URL('node_modules/.integrations', import.meta.url));

/** Folders of the repository, each with the name of its logs. W3C logs are left out: their samples have no header. */
const SAMPLES = {
  'nginx/data_stream/access': 'nginx',
  'nginx/data_stream/error': 'nginx-error',
  'apache/data_stream/access': 'apache',
  'apache/data_stream/error': 'apache-error',
  'aws/data_stream/elb_logs': 'alb',
  'aws/data_stream/s3access': 's3',
  'aws/data_stream/vpcflow': 'vpc-flow',
  'aws/data_stream/cloudtrail': 'cloudtrail-lines',
  'aws/data_stream/waf': 'waf',
  'cloudflare_logpush/data_stream/http_request': 'cloudflare',
  'akamai/data_stream/siem': 'akamai',
  'haproxy/data_stream/log': 'haproxy',
  'iptables/data_stream/log': 'iptables',
  'squid/data_stream/log': 'squid',
  'suricata/data_stream/eve': 'suricata',
  'system/data_stream/auth': 'sshd',
  'traefik/data_stream/access': 'traefik',
  'zeek/data_stream/connection': 'zeek-json',
};

const git = (...args) => execFileSync('git', args, { stdio: ['ignore', 'ignore', 'inherit'] });

function fetchSamples() {
  if (existsSync(CHECKOUT)) return;
  git('clone', '--quiet', '--depth=1', '--filter=blob:none', '--sparse', REPOSITORY, CHECKOUT);
  const folders = Object.keys(SAMPLES).map((folder) => `packages/${folder}/_dev/test/pipeline`);
  git('-C', CHECKOUT, 'sparse-checkout', 'set', ...folders);
}

/** Returns the lines of a folder with the address that is expected; null for none. */
function readCases(folder) {
  const path = join(CHECKOUT, 'packages', folder, '_dev/test/pipeline');
  const names = existsSync(path) ? readdirSync(path).filter((name) => name.endsWith('.log-expected.json')) : [];
  return names.flatMap((name) =>
    JSON.parse(readFileSync(join(path, name), 'utf8'))
      .expected.map((event) => ({ name, line: event?.event?.original, expected: event?.source?.ip ?? null }))
      .filter(({ line }) => typeof line === 'string' && !/[\r\n]/.test(line)),
  );
}

/** Returns the address that was taken for the first field: `geo` of an object, or what was appended to the line. */
function takenAddress(line, output) {
  if (line.startsWith('{')) return /"(?:\w*_)?geo":\{"address":"([^"]*)"/.exec(output)?.[1] ?? null;
  const [first] = output
    .slice(line.length)
    .trim()
    .split(/[\t ,]/);
  const address = first.replace(/^\w+_address=/, '').replaceAll('"', '');
  return address === '' || address === '-' ? null : address;
}

const [dataDir] = process.argv.slice(2);
if (dataDir === undefined) throw new Error('name a data directory: node truth/logs.js DATA');
fetchSamples();
for (const [folder, log] of Object.entries(SAMPLES)) {
  const cases = readCases(folder);
  const input = cases.map(({ line }) => `${line}\n`).join('');
  const args = [MAIN, 'enrich', '--log', log, '--add', 'address', '--data', dataDir];
  const stdio = ['pipe', 'pipe', 'ignore'];
  const output = input === '' ? [] : execFileSync(process.execPath, args, { input, stdio }).toString().split('\n');
  const wrong = cases.filter(({ line, expected }, at) => takenAddress(line, output[at]) !== expected);
  console.log(`${log.padEnd(18)} ${cases.length - wrong.length} of ${cases.length}  ${folder}`);
  for (const { name, line, expected } of wrong) console.log(`  ${expected}  ${name}: ${line.slice(0, 120)}`);
}
