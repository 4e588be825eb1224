/** Which of several addresses of a text is looked up: by its label, its place, and the grammar of its log. The right one is US, others NL. */
import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { RANKS, ROLES, rankOf } from '../../src/enrich/address-names.js';
import { createBlockEnricher } from '../../src/enrich/block-enricher.js';
import { addressNames, knownLogs } from '../../src/enrich/known-logs.js';
import { packageFile } from '../../src/package-root.js';
import { compileSchema } from '../../src/schema-errors.js';
import { releaseForTests } from '../support/open-release.js';

const release = releaseForTests();
const names = addressNames();

/** A is the address that is meant, B another one. */
const line = (text: string) =>
  text.replace(/\bA\b/g, '8.8.8.8').replace(/\bB\b/g, '193.0.6.139').replace(/\bC\b/g, '10.0.0.1');

function codeOf(text: string, options: { log?: string; pick?: 'first' | 'last' | 'public' }) {
  const what = options.log === undefined ? { format: 'text' as const } : {};
  const enricher = createBlockEnricher(release.database, { ...what, ...options, add: ['country_code'] });
  const output = Buffer.from(enricher.enrichBlock(Buffer.from(`${line(text)}\n`))).toString();
  return output.slice(line(text).length + 1, -1);
}

it.each([
  // The header of syslog names the machine; what is not a header does not.
  '<13>Feb  3 04:05:06 B app: hello A',
  'Feb 13 04:05:06 B app[1]: hello A',
  'Feb 13 2026 04:05:06.123 B app[1]: A and B',
  '2026-02-03T04:05:06.000007+00:00 B app: A',
  '<38>1 2026-02-03T04:05:06Z B app 12 - - A',
  'Feb  3 04:05:06 B : %SEC-6-X: list 1 denied tcp A(1) -> B(2)',
  '<187> Feb  3 04:05:06 B: B: %ACE-3-1: denied A',
  '<189>42: B: 634: Feb  3 04:05:06.123: %SEC-6-X: list 1 denied tcp A(1) -> B(2)',
  '<129>2026-02-03 04:05:06.123 +0000  B WF ALER A 34006 B 80',
  '2026-02-03T04:05:06Z A GET / B',
  '2026-02-03T04:05:06Z A - - B',
  '2026-02-03 04:05:06 A app B',
  'Feb  3 04:05:06 A app: hello',
  // Labels, with what can be between them and the address.
  'server B client A',
  'to=B from=A',
  'dst: B, src: A',
  '{"server":"B","client_ip":"A"}',
  '{"destinationIp": "B", "sourceIp": "A:443"}',
  '"local_address":"B" "downstream_remote_address":"A"',
  'LocalAddress="IPV4/UDP/B/5060",RemoteAddress="IPV4/UDP/A/5060"',
  'X-Forwarded-For: B remote: A',
  'X-Forwarded-For: B seen A',
  'by B on B via B from client ip address A',
  'user = B : user IP = A',
  'Built outbound connection dst outside:B/443 src inside:A/22',
  'connect from unknown[A], helo=<B>',
  'relay=mx.example[A]:25, origin=B',
  'host B received a request of peer A',
  '[B:443] [client A] "GET / HTTP/1.1"',
  'netmask B net A',
  'Feb  3 04:05:06 B #ILO 4: Browser login: ann - A(x)',
  '<165>1 2026-02-03T04:05:06Z B x - ID [origin ip="B"] login of A',
  'destination address B, source address A',
  'listener B:443 accepted A:1',
  'HELO B from host [A] rejected',
  'badlogin: host.example [A] plain B',
  'method=X ru=sip:B fu=sip:1@B src_ip=A:5060',
  'x: https://B|1|user|A|https://B/|',
  // What a client writes.
  'AS_REQ (8 etypes) A: CLIENT_NOT_FOUND: B@EXAMPLE for x',
  'GET /B HTTP/1.1 seen A',
  '"GET /?u=B HTTP/1.1" 200 A',
  'open http://B/x for A',
  'account x@B at [A]',
  'passwd user "B" seen A',
  // The own label of a log.
  'user "x", client: B, server: y": mismatch, client: A, server: z, request: "GET /, client: B, server: y HTTP/1.1"',
  'authentication failure; ruser=rhost=B rhost=A  user=x rhost=B',
  'user=x, relay=[B], relay=[A]',
  'user=<a@B>, rip=A, lip=B',
  // Lines of a log in a file of several.
  'Feb  3 04:05:06 h sshd[1]: Failed password for invalid user x from B from A port 22',
  'Feb  3 04:05:06 h sshd[1]: Connection closed by invalid user from B A port 1',
  'Feb  3 04:05:06 h dovecot: auth: passwd-file(B,A): unknown user',
  // In colors.
  '\x1b[32m193.0.6.139\x1b[0m from \x1b[36;1m8.8.8.8\x1b[39m',
  '\x1b[3mserver\x1b[0m\x1b[2m=\x1b[0m193.0.6.139:1 \x1b[3mclient\x1b[0m\x1b[2m=\x1b[0m8.8.8.8:1',
  'x from \x1b[01;31m\x1b[K8.8.8.8\x1b[m\x1b[K port 1',
])('%s', (text) => {
  expect(codeOf(text, {})).toBe('US');
});

it.each([
  [
    'nginx-error',
    '2026/02/03 04:05:06 [error] 7#7: *1 "/srv/B" failed, client: A, server: B, request: "GET /B", host: "B"',
  ],
  ['sshd', 'Feb  3 04:05:06 B sshd[1]: Failed password for B from A port 22 ssh2'],
  ['exim', '2026-02-03 04:05:09 1Aaaaa-000001-Aa <= a@b H=m.example ([B]) [A]:1 I=[B]:25 id=x@B'],
  [
    'asterisk',
    "[2026-02-03 04:05:06] NOTICE[1] c: Request 'X' from '<sip:1@B>' failed for 'A:5089' (callid: a@B) - No",
  ],
  ['asterisk', `[2026-02-03 04:05:06] NOTICE[1] c: Registration from '"B" <sip:1@B>' failed for 'A:1' - Wrong`],
  ['postgresql', '2026-02-03 04:05:06 UTC [1] FATAL:  no pg_hba.conf entry for host "A", user "B", database "B"'],
  ['openvpn', 'Feb  3 04:05:06 h openvpn[1]: ann/A:1 MULTI_sva: pool returned IPv4=B, IPv6=(Not enabled)'],
  ['mysql', "2026-02-03T04:05:08.000000Z 9 [Note] [MY-1] [Server] Access denied for user 'B'@'A' to database 'B'"],
  ['vsftpd', 'Tue Feb  3 04:05:06 2026 [pid 2] [B] FAIL LOGIN: Client "A"'],
  ['pure-ftpd', 'Feb  3 04:05:06 h pure-ftpd: (B@A) [WARNING] Authentication failed'],
  ['proftpd', 'Feb  3 04:05:06 h proftpd[1] B (h.example[A]): USER B: no such user'],
])('%s: %s', (log, text) => {
  expect(codeOf(text, { log })).toBe('US');
});

it('a private client stays the client; without roles, and with the first or last asked for, the place decides', () => {
  expect(codeOf('client C asks server B', {})).toBe('');
  expect(codeOf('C asks B', {})).toBe('NL');
  expect(codeOf('server A client B', { pick: 'public' })).toBe('NL');
  expect(codeOf('server A client B', { pick: 'first' })).toBe('US');
  expect(codeOf('client B server A', { pick: 'last' })).toBe('US');
});

it.each([
  ['client_ip', 'client'],
  ['src4_addr', 'client'],
  ['data.object.client_ip', 'client'],
  ['remoteIpDetails.ipAddressV4', 'client'],
  ['http_x_forwarded_for', 'untrusted'],
  ['X-Forwarded-For', 'untrusted'],
  ['downstream_local_address', 'server'],
  ['OriginIP', 'server'],
  ['_HOSTNAME', 'machine'],
  ['firmware', 'never'],
  ['last_seen', 'unnamed'],
])('%s is %s', (name, role) => {
  const rank = rankOf(name, names);
  const found = Object.entries(RANKS).find(([, at]) => at === rank)?.[0] ?? 'client';
  expect(found).toBe(role);
});

it('no pattern of a log searches within a search: such a pattern could take the square of the length of a line', () => {
  const lines = Object.entries(knownLogs()).flatMap(([name, { line = [] }]) =>
    [line].flat().map((part) => [name, part]),
  );
  const searching = lines.filter(([, part]) => !part!.startsWith('^') && /(?:\.|\\S|\[\^[^\]]*\])[*+]/.test(part!));
  expect(searching).toEqual([]);
});

it('data/address-names.json matches its schema, and no name is in two lists', () => {
  const validate = compileSchema(['logs', 'address-names'], { formats: { regex: true } });
  validate(JSON.parse(readFileSync(packageFile('data/address-names.json'), 'utf8')));
  expect(validate.errors).toBeNull();
  const all = ROLES.flatMap((role) => [...names[role], ...(names.labels[role] ?? [])]);
  expect(all.filter((name, at) => all.indexOf(name) !== at)).toEqual([]);
});
