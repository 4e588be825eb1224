// `node truth/logs.js DATA [NAME=FOLDER …]`: how often `enrich --log NAME` takes the address that others expect in their sample logs, and
// whether the samples are recognized. The samples are fetched, unless a folder has a checkout of them; they are not part of this
// repository. DATA is a data directory with a release. `node truth/logs.js seed files` measures only the files of any-files.ndjson, with the
// seed, and needs no network; `files=others` does not show those that are held back.
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { knownLogs } from '../dist/src/enrich/known-logs.js';
import { withoutJson } from '../dist/src/enrich/logs.js';
import { recognizeLog } from '../dist/src/enrich/recognize-log.js';

const MAIN = fileURLToPath(new URL('../dist/src/cli/main.js', import.meta.url));
const CHECKOUTS = fileURLToPath(new URL('node_modules/.samples', import.meta.url));
const logs = knownLogs();

/** The names that lines of a test can have: the first whose pattern a line matches. */
const NAMES = {
  nginx: ['apache-vhost', 'nginx', 'nginx-error'],
  apache: ['apache-vhost', 'apache', 'apache-error'],
  traefik: ['traefik-json', 'traefik'],
  caddy: ['caddy-2.5', 'caddy-2.0', 'caddy'],
  envoy: ['envoy-json', 'envoy'],
  ...Object.fromEntries(
    ['alb', 'cloudfront', 'cloudtrail-lines', 'haproxy', 'iptables', 'postfix', 'squid', 'sshd', 'suricata'].map(
      (name) => [name, [name]],
    ),
  ),
};

/** The folders of elastic/integrations, each with the names of its logs. W3C logs are left out: their samples have no header. */
const ELASTIC = {
  'nginx/data_stream/access': NAMES.nginx,
  'nginx/data_stream/error': NAMES.nginx,
  'apache/data_stream/access': NAMES.apache,
  'apache/data_stream/error': NAMES.apache,
  'aws/data_stream/elb_logs': ['alb'],
  'aws/data_stream/s3access': ['s3'],
  'aws/data_stream/vpcflow': ['vpc-flow'],
  'aws/data_stream/cloudtrail': ['cloudtrail-lines'],
  'aws/data_stream/waf': ['waf'],
  'cloudflare/data_stream/logpull': ['cloudflare'],
  'cloudflare_logpush/data_stream/http_request': ['cloudflare'],
  'gcp/data_stream/loadbalancing_logs': ['gcp-lb'],
  'azure_frontdoor/data_stream/access': ['azure-frontdoor'],
  'azure_frontdoor/data_stream/waf': ['azure-frontdoor-waf'],
  'akamai/data_stream/siem': ['akamai'],
  'haproxy/data_stream/log': ['haproxy'],
  'iptables/data_stream/log': ['iptables'],
  'squid/data_stream/log': ['squid'],
  'suricata/data_stream/eve': ['suricata'],
  'system/data_stream/auth': ['sshd'],
  'traefik/data_stream/access': NAMES.traefik,
  'zeek/data_stream/connection': ['zeek-json'],
};

/** The parsers of crowdsecurity/hub, each with a key of {@link NAMES}. */
const PARSERS = {
  'crowdsecurity/nginx-logs': 'nginx',
  'crowdsecurity/apache2-logs': 'apache',
  'crowdsecurity/traefik-logs': 'traefik',
  'crowdsecurity/caddy-logs': 'caddy',
  'yanis-kouidri/envoy-logs': 'envoy',
  'crowdsecurity/aws-alb': 'alb',
  'crowdsecurity/aws-cloudtrail': 'cloudtrail-lines',
  'crowdsecurity/haproxy-logs': 'haproxy',
  'crowdsecurity/iptables-logs': 'iptables',
  'crowdsecurity/postfix-logs': 'postfix',
  'crowdsecurity/sshd-logs': 'sshd',
  'crowdsecurity/sshd-success-logs': 'sshd',
  'crowdsecurity/suricata-evelogs': 'suricata',
};

/** The files of fail2ban, by the beginning of their names. */
const FILES = {
  'nginx-': 'nginx',
  'apache-': 'apache',
  'traefik-': 'traefik',
  'haproxy-': 'haproxy',
  postfix: 'postfix',
  squid: 'squid',
  sshd: 'sshd',
};

const git = (...args) => execFileSync('git', args, { stdio: ['ignore', 'ignore', 'inherit'] });
const linesOf = (path) => readFileSync(path, 'latin1').split(/\r?\n/);

/** Returns the folder of a repository, and fetches some of its folders if there is none. */
function checkout(repository, folders) {
  const path = join(CHECKOUTS, repository.replace('/', '+'));
  if (existsSync(path)) return path;
  const url = `https://github.com/${repository}`;
  git('clone', '--quiet', '--depth=1', '--filter=blob:none', '--sparse', url, path);
  git('-C', path, 'sparse-checkout', 'set', ...folders);
  return path;
}

/** Returns the only one of some names, or the first whose pattern a line matches; undefined for a line in another format. */
const nameOf = (names, line) =>
  names.find(
    (name) => names.length === 1 || logs[name].line === undefined || new RegExp(logs[name].line, 'u').test(line),
  );

/** Returns the cases of the pipeline tests: lines, with the address that is expected or null for none. */
function elasticCases(root) {
  return Object.entries(ELASTIC).flatMap(([folder, logNames]) => {
    const path = join(root, 'packages', folder, '_dev/test/pipeline');
    const names = existsSync(path) ? readdirSync(path).filter((name) => name.endsWith('.log-expected.json')) : [];
    return names.flatMap((name) =>
      JSON.parse(readFileSync(join(path, name), 'utf8'))
        .expected.map((event) => ({
          file: name,
          line: event?.event?.original,
          expected: event?.source?.ip ?? event?.client?.ip ?? null,
        }))
        .filter(({ line }) => typeof line === 'string' && !/[\r\n]/.test(line))
        .map((one) => ({ ...one, log: nameOf(logNames, one.line) })),
    );
  });
}

/** Returns the cases of parser tests: the lines of which a test says the parser's `message` and `source_ip`. */
function crowdsecCases(root) {
  return readdirSync(join(root, '.tests')).flatMap((test) => {
    const folder = join(root, '.tests', test);
    if (!existsSync(join(folder, 'parser.assert'))) return [];
    const results = new Map();
    for (const line of linesOf(join(folder, 'parser.assert'))) {
      const match =
        /^results\["s01-parse"\]\["(.+?)"\]\[(\d+)\]\.Evt\.(?:Parsed|Meta)\["(message|source_ip)"\] == (".*")$/.exec(
          line,
        );
      const [, parser, index, key, value] = match ?? [];
      if (PARSERS[parser] === undefined || /\\[^"\\nt]/.test(value)) continue;
      results.set(`${parser} ${index}`, { ...results.get(`${parser} ${index}`), parser, [key]: JSON.parse(value) });
    }
    const known = [...results.values()].filter(({ message, source_ip }) => message && source_ip);
    const inputs = readdirSync(folder).filter((name) => name.endsWith('.log'));
    return inputs.flatMap((file) =>
      linesOf(join(folder, file)).flatMap((line) => {
        const found = known.find(({ message }) => line.includes(message));
        if (found === undefined) return [];
        return [
          { log: nameOf(NAMES[PARSERS[found.parser]], line), file: `${test}/${file}`, line, expected: found.source_ip },
        ];
      }),
    );
  });
}

/** Returns the cases of the filter tests: the line after a comment with the `host` that the filter finds. */
function fail2banCases(root) {
  const folder = join(root, 'fail2ban/tests/files/logs');
  return readdirSync(folder).flatMap((file) => {
    const key = Object.keys(FILES).find((start) => file.startsWith(start));
    if (key === undefined) return [];
    const lines = linesOf(join(folder, file));
    return lines.flatMap((line, at) => {
      const json = /^# failJSON: (.*)$/.exec(lines[at - 1] ?? '')?.[1];
      const { match, host } = json === undefined ? {} : JSON.parse(json);
      // A host may be a name, or stand in a line before.
      if (!match || !/^[\d.]+$|:/.test(host ?? '') || !line.includes(host)) return [];
      return [{ log: nameOf(NAMES[FILES[key]], line), file, line, expected: host }];
    });
  });
}

const enrich = (dataDir, input, ...args) =>
  execFileSync(process.execPath, [MAIN, 'enrich', '--add', 'address', '--data', dataDir, '--jobs', '1', ...args], {
    input,
    encoding: 'latin1',
    stdio: ['pipe', 'pipe', 'ignore'],
    maxBuffer: 2 ** 30,
  });

/** Returns the address that was taken for the first field: `geo` of an object, or what was appended to the line. */
function takenAddress(line, output) {
  if (line.startsWith('{')) return /"(?:\w*_)?geo":\{"address":"([^"]*)"/.exec(output)?.[1] ?? null;
  const [first] = output
    .slice(line.length)
    .trim()
    .replace(/^[,;|]/, '')
    .split(/[\t ,;|]/);
  const address = first.replace(/^[\w.-]+_address=/, '').replaceAll('"', '');
  return /^(?:-|null)?$/.test(address) ? null : address;
}

/** Others write an IPv4-mapped address as the IPv4 address. */
const plain = (address) => address?.toLowerCase().replace(/^::ffff:(?=[\d.]+$)/, '');

function report(title, dataDir, all) {
  console.log(
    `\n${title}: ${all.length} lines, ${all.filter(({ log }) => log === undefined).length} of them in formats without a name`,
  );
  for (const log of Object.keys(logs)) {
    const cases = all.filter((one) => one.log === log);
    if (cases.length === 0) continue;
    const output = enrich(
      dataDir,
      Buffer.from(cases.map(({ line }) => `${line}\n`).join(''), 'latin1'),
      '--log',
      log,
    ).split('\n');
    const wrong = cases.filter(({ line, expected }, at) => plain(takenAddress(line, output[at])) !== plain(expected));
    console.log(`${log.padEnd(18)} ${cases.length - wrong.length} of ${cases.length}`);
    for (const { file, line, expected } of wrong) console.log(`  ${expected}  ${file}: ${line.slice(0, 160)}`);
    for (const file of new Set(cases.map((one) => one.file)))
      recognize(
        log,
        file,
        cases.flatMap((one) => (one.file === file ? [one.line] : [])),
      );
  }
}

const recognition = { right: 0, none: 0, wrong: 0 };

/** Counts what the lines of a file look like. Logs in JSON are not told apart. */
function recognize(log, file, lines) {
  if (logs[log].format.startsWith('json')) return;
  let names;
  try {
    names = recognizeLog(file, lines.slice(0, 100).join('\n'), true, withoutJson(logs))?.names;
  } catch (error) {
    console.log(`  ${error.message}`);
  }
  // Two logs that are read in the same way are the same.
  const reading = ({ format, columns, fields }) => JSON.stringify([format, columns, fields]);
  const isRight = names?.some((name) => reading(logs[name]) === reading(logs[log]));
  const outcome = names === undefined ? 'none' : isRight ? 'right' : 'wrong';
  recognition[outcome]++;
  if (outcome === 'wrong') console.log(`  ${file} was taken for ${names}`);
}

/** Reads the tables of Zeek's own tests, joined, and compares the addresses of both ends with the cells of their columns. */
function reportZeek(dataDir, root) {
  const texts = [];
  const folder = join(root, 'testing/btest/Baseline');
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile() || !entry.name.endsWith('.log')) continue;
    const text = readFileSync(join(entry.path, entry.name), 'latin1')
      .replace(/^### .*\n/gm, '')
      .replaceAll('\r\n', '\n');
    if (!/^#separator [\s\S]*^#fields\t(?:.*\t)?id\.orig_h\t/m.test(text)) continue;
    texts.push(text.endsWith('\n') ? text : `${text}\n`);
    recognize('zeek', entry.name, text.split('\n').slice(0, 100));
  }
  const input = texts.join('');
  const output = enrich(dataDir, Buffer.from(input, 'latin1'), '--log', 'zeek').split('\n');
  let [lines, wrong, columns] = [0, 0, []];
  for (const [at, line] of input.split('\n').entries()) {
    if (line.startsWith('#fields\t')) columns = line.split('\t').slice(1);
    if (line === '' || line.startsWith('#')) continue;
    const cells = line.split('\t');
    const expected = ['id.orig_h', 'id.resp_h'].map((name) => cells[columns.indexOf(name)] ?? '-');
    lines++;
    if (output[at] === [line, ...expected].join('\t')) continue;
    wrong++;
    console.log(`  ${expected}: ${output[at].slice(0, 200)}`);
  }
  console.log(`\nzeek/zeek, both addresses: ${lines - wrong} of ${lines} lines in ${texts.length} files`);
}

/** Returns the addresses that were taken in a file without a flag: one for each record, null for none. */
function takenWithoutFlags(dataDir, { kind, text }) {
  const data = dataDir === 'seed' ? ['--seed'] : ['--data', dataDir];
  const args = [MAIN, 'enrich', '--add', 'address', ...data, '--jobs', '1'];
  const { stdout, stderr } = spawnSync(process.execPath, args, { input: text, encoding: 'utf8' });
  const results = [...stdout.matchAll(/"(?:\w*_)?geo":(?:null|\{"address":(?:null|"([^"]*)")\})/g)];
  if (kind === 'document') return [results.map(([, address]) => address ?? null), stderr];
  const isTable = /: (?:CSV|TSV)/.test(stderr);
  const output = stdout.split('\n');
  const taken = text.split('\n').flatMap((line, at) => {
    const added = (output[at] ?? '').slice(line.replace(/\r$/, '').length);
    // Blank lines and comments, and the first lines of a record of several, have no result. A header has a name.
    if (!/\S/.test(line) || (line.startsWith('#') && added.trim() === '')) return [];
    if (isTable && (!/\S/.test(added) || /geo_address/.test(added))) return [];
    return [takenAddress(line, output[at] ?? '')];
  });
  return [taken, stderr];
}

/** Reports how many files of any-files.ndjson are enriched as they should be without a flag; each third one is told apart. */
function reportFiles(dataDir) {
  const files = linesOf(join(dirname(fileURLToPath(import.meta.url)), 'any-files.ndjson')).filter(Boolean);
  const counts = {};
  for (const [at, line] of files.entries()) {
    const file = JSON.parse(Buffer.from(line, 'latin1').toString());
    const [taken, said] = takenWithoutFlags(dataDir, file);
    const isRight = JSON.stringify(taken) === JSON.stringify(file.expected);
    const outcome = isRight ? 'right' : taken.some((one) => one !== null) ? 'other' : 'none';
    const part = at % 3 === 2 ? 'held back' : 'others';
    counts[part] ??= { right: 0, other: 0, none: 0 };
    counts[part][outcome]++;
    if (!isRight && (part === 'others' || !given.includes('files=others')))
      console.log(`  ${outcome}: line ${at + 1}: ${JSON.stringify(taken)}; ${said.split('\n')[0]}`);
  }
  console.log(`\nFiles without a flag: ${files.length}`, counts);
}

const [dataDir, ...given] = process.argv.slice(2);
if (dataDir === undefined) throw new Error('name a data directory: node truth/logs.js DATA');
const folders = Object.fromEntries(given.map((one) => one.split('=')));
const rootOf = (name, repository, paths) => folders[name] ?? checkout(repository, paths);
const wanted = (name) => given.length === 0 || name in folders;
if (given.length === 0 || given.some((one) => one.startsWith('files'))) reportFiles(dataDir);
if (wanted('elastic')) {
  const paths = Object.keys(ELASTIC).map((folder) => `packages/${folder}/_dev/test/pipeline`);
  report('elastic/integrations', dataDir, elasticCases(rootOf('elastic', 'elastic/integrations', paths)));
}
if (wanted('crowdsec'))
  report('crowdsecurity/hub', dataDir, crowdsecCases(rootOf('crowdsec', 'crowdsecurity/hub', ['.tests'])));
if (wanted('fail2ban'))
  report('fail2ban', dataDir, fail2banCases(rootOf('fail2ban', 'fail2ban/fail2ban', ['fail2ban/tests/files/logs'])));
if (wanted('zeek')) reportZeek(dataDir, rootOf('zeek', 'zeek/zeek', ['testing/btest/Baseline']));
console.log('\nFiles recognized:', recognition);
