/** nginx and Caddy that ask at the gate, under load by wrk: releases are swapped, the server is killed, the database is missing. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { chmodSync, renameSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { switchCurrent } from '../../pipeline/operations/current-link.js';
import { CURRENT_LINK } from '../../src/database/release.js';
import { packageFile } from '../../src/package-root.js';
import { type GatedSite, startCaddy, startNginx } from '../api/gate-proxies.js';
import { stopServer } from '../export/tools.js';
import { finished, start } from '../support/cli.js';
import { SMALL_NETWORKS } from '../support/networks.js';
import { freePort } from '../support/ports.js';
import { type Block, country, publishBlocks, SMALL_WORLD, temporaryDir } from '../support/release.js';
import { until } from '../support/serve.js';

const packages = ['wrk', 'nginx', 'caddy'];
const { status: notInstalled } = spawnSync('bash', [packageFile('scripts/ci-packages.sh'), ...packages]);
if (notInstalled) console.warn(`NOT TESTED: the gate under load: one of ${packages.join(', ')} cannot be installed`);

const SWAPS = 20;
const KILLS = 5;
const RULES = { shop: 'allow:EU,CH;private=deny', login: 'deny:US,CA;fail=open' };
type Rule = keyof typeof RULES;

/** The second world: two of the countries are others. */
const OTHER: Record<string, Block[1]> = {
  '81.0.0.0/8': country('IE', 'Ireland', true),
  '80.0.0.0/8': country('CA', 'Canada'),
};
const WORLDS = [SMALL_WORLD, SMALL_WORLD.map(([cidr, record]): Block => [cidr, OTHER[cidr] ?? record])];

/** Clients, with their code and AS number in both worlds. */
const CLIENTS: [ip: string, first: string, second: string, asn: string][] = [
  ['193.0.0.1', 'NL', 'NL', '3333'],
  ['8.8.8.8', 'US', 'US', '15169'],
  ['81.0.0.1', 'GB', 'IE', '64496'],
  ['80.0.0.1', 'DE', 'CA', '64496'],
  ['90.0.0.1', 'CI', 'CI', '4294967295'],
  ['9.9.9.9', '', '', ''],
  ['10.0.0.1', 'private', 'private', ''],
  ['2a00::1', 'DE', 'DE', ''],
  ['2001:4860:4860::8888', 'US', 'US', '15169'],
  ['2a00:1::1', 'FR', 'FR', '64496'],
];
const UNION = ['NL', 'IE', 'DE', 'FR'];
const ALLOWS: Record<Rule, (code: string) => boolean> = {
  shop: (code) => UNION.includes(code),
  login: (code) => !['US', 'CA'].includes(code),
};

/** Returns what a client may get, with what the site sees if it may go on. */
function answerOf(rule: Rule, code: string, asn: string): string {
  if (!ALLOWS[rule](code)) return '403';
  const isCountry = code.length === 2;
  return `200 x-country-code=${isCountry ? code : ''} x-in-eu=${isCountry ? UNION.includes(code) : ''} x-asn=${asn}`;
}

/** A script for wrk: it asks for one client after the other, with forged headers, and counts the answers that are none of its own. */
const SCRIPT = `
local threads = {}
function setup(thread) table.insert(threads, thread) end
function init(args)
  clients = dofile(args[1]); down = args[2]
  byAddress, at, right, failed, wrong, example = {}, 0, 0, 0, 0, ""
  for _, client in ipairs(clients) do byAddress[client.ip] = client end
  wrk.headers["X-Country-Code"] = "CH"; wrk.headers["X-In-EU"] = "true"; wrk.headers["X-ASN"] = "1"
end
function request()
  at = at % #clients + 1
  wrk.headers["X-Test-Client"] = clients[at].ip
  wrk.headers["X-Forwarded-For"] = "193.0.0.1, " .. clients[at].ip
  return wrk.format("GET", "/a?rule=login")
end
function response(status, headers, body)
  local answer = tostring(status)
  if status == 200 then answer = "200 " .. body end
  local client = byAddress[headers["X-Client"]]
  if answer == down then failed = failed + 1
  elseif client and client[answer] then right = right + 1
  else wrong = wrong + 1; example = tostring(headers["X-Client"]) .. ": " .. answer end
end
function done(summary)
  local right, failed, wrong, example = 0, 0, 0, ""
  for _, thread in ipairs(threads) do
    right = right + thread:get("right"); failed = failed + thread:get("failed")
    wrong = wrong + thread:get("wrong"); example = thread:get("example")
  end
  print(string.format('RESULT {"right":%d,"failed":%d,"wrong":%d,"lost":%d,"example":"%s"}', right, failed, wrong,
    summary.errors.connect + summary.errors.read + summary.errors.write + summary.errors.timeout, example))
end
`;

interface Load {
  right: number;
  /** Answers of a proxy whose gate did not answer. */
  failed: number;
  wrong: number;
  /** Requests without an answer. */
  lost: number;
  /** The last wrong answer. */
  example: string;
}

let dir: string;
let dataDir: string;
let releases: string[];
let gatePort: number;
let gate: ChildProcess;
const programs: ChildProcess[] = [];
const HEADERS = ['x-country-code', 'x-in-eu', 'x-asn'];
const site = createServer((request, response) =>
  response.end(HEADERS.map((name) => `${name}=${request.headers[name] ?? ''}`).join(' ')),
);
/** The sites by proxy and rule, and what the proxy answers while the gate does not. */
const sites: { url: string; rule: Rule; down: string }[] = [];

/** Starts the gate, on both families; waits for an answer. */
async function startGate(path = '/healthz'): Promise<void> {
  const rules = Object.entries(RULES).flatMap(([name, rule]) => ['--forward-auth', `${name}=${rule}`]);
  const listens = ['--host', '::', '--port', String(gatePort), '--trust-proxy', '127.0.0.1,::1/128'];
  gate = start(['serve', '--data', dataDir, ...listens, ...rules]);
  for (const stream of [gate.stdout, gate.stderr]) stream?.resume();
  const isUp = () =>
    fetch(`http://127.0.0.1:${gatePort}${path}`).then(
      ({ ok }) => ok,
      () => false,
    );
  await until(isUp, 'the start of the gate');
}

async function killGate(): Promise<void> {
  const ended = finished(gate);
  gate.kill('SIGKILL');
  await ended;
}

beforeAll(async () => {
  if (notInstalled) return;
  dir = temporaryDir();
  chmodSync(dir, 0o755);
  dataDir = join(dir, 'data');
  releases = [];
  for (const world of WORLDS) releases.push(await publishBlocks(dataDir, world, undefined, 0, SMALL_NETWORKS));
  await new Promise<void>((resolve) => site.listen(0, '127.0.0.1', resolve));
  const { port: sitePort } = site.address() as AddressInfo;
  gatePort = await freePort();
  await startGate('/readyz');
  const gated = async (rule: Rule, more: string, down: string, letsIn = false): Promise<GatedSite> => {
    const port = await freePort();
    for (const host of ['127.0.0.1', '[::1]']) sites.push({ url: `http://${host}:${port}`, rule, down });
    return { port, gatePort, sitePort, rule, more, letsIn };
  };
  const rules = Object.keys(RULES) as Rule[];
  const echo = 'add_header X-Client $http_x_test_client always;';
  const ofNginx = await Promise.all([
    ...rules.map((rule) => gated(rule, echo, '500')),
    gated('shop', echo, '200 x-country-code= x-in-eu= x-asn=', true),
  ]);
  const ofCaddy = await Promise.all(rules.map((rule) => gated(rule, 'header X-Client {header.X-Test-Client}', '502')));
  programs.push(await startNginx(dir, ofNginx), await startCaddy(dir, ofCaddy, true));
  for (const { url } of sites) await until(() => fetch(url).catch(() => undefined), `the start of ${url}`);
  writeFileSync(join(dir, 'load.lua'), SCRIPT);
  for (const rule of rules) {
    const lines = CLIENTS.map(([ip, first, second, asn]) => {
      const answers = new Set([first, second].map((code) => answerOf(rule, code, asn)));
      return `{ip=${JSON.stringify(ip)}${[...answers].map((answer) => `,[${JSON.stringify(answer)}]=true`).join('')}},`;
    });
    writeFileSync(join(dir, `${rule}.lua`), `return {\n${lines.join('\n')}\n}\n`);
  }
});
afterAll(async () => {
  if (notInstalled) return;
  for (const program of programs) await stopServer(program);
  await killGate();
  site.close();
});

/** Loads all sites while something happens; returns what they answered. */
async function load(seconds: number, act: () => Promise<void>): Promise<Load[]> {
  const loads = sites.map(async ({ url, rule, down }) => {
    const files = ['-s', join(dir, 'load.lua'), url, '--', join(dir, `${rule}.lua`), down];
    const { stdout } = await finished(spawn('wrk', ['-t1', '-c8', `-d${seconds}s`, '--timeout', '10s', ...files]));
    return JSON.parse(/^RESULT (.*)$/m.exec(stdout)![1]!) as Load;
  });
  await act();
  return Promise.all(loads);
}

it.skipIf(notInstalled)(
  'nginx and Caddy decide right while releases are swapped and the server is killed',
  async () => {
    const swapped = await load(SWAPS + 5, async () => {
      for (let swap = 0; swap < SWAPS; swap++) {
        switchCurrent(dataDir, releases[swap % 2]!);
        await sleep(1_000);
      }
    });
    console.log(`swaps: ${JSON.stringify(swapped)}`);
    for (const result of swapped) expect(result).toMatchObject({ failed: 0, wrong: 0, lost: 0 });

    const killed = await load(4 * KILLS + 5, async () => {
      for (let kill = 0; kill < KILLS; kill++) {
        await sleep(1_500);
        await killGate();
        await sleep(1_000);
        await startGate();
      }
    });
    console.log(`kills: ${JSON.stringify(killed)}`);
    for (const { right, failed, wrong, lost, example } of killed)
      expect({ wrong, lost, example, both: right > 0 && failed > 0 }).toEqual({
        wrong: 0,
        lost: 0,
        example: '',
        both: true,
      });

    // Without a database, the rule says whether clients are let in.
    await killGate();
    renameSync(join(dataDir, CURRENT_LINK), join(dataDir, 'away'));
    await startGate();
    for (const { url, rule } of sites) {
      for (const [ip] of CLIENTS) {
        const headers = {
          'X-Test-Client': ip,
          'X-Forwarded-For': ip,
          'X-Country-Code': 'CH',
          'X-In-EU': 'true',
          'X-ASN': '1',
        };
        const response = await fetch(url, { headers });
        const text = await response.text();
        const isOpen = response.status === 200 && text === 'x-country-code= x-in-eu= x-asn=';
        expect([url, rule, ip, isOpen || response.status]).toEqual([
          url,
          rule,
          ip,
          rule === 'login' || expect.toSatisfy((status) => status >= 500),
        ]);
      }
    }
    renameSync(join(dataDir, 'away'), join(dataDir, CURRENT_LINK));
    await until(() => fetch(`http://127.0.0.1:${gatePort}/readyz`).then(({ ok }) => ok), 'the return of the database');
    for (const result of await load(3, async () => {})) expect(result).toMatchObject({ failed: 0, wrong: 0, lost: 0 });
  },
);
