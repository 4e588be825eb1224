/** Credentials for brokers. */
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { nkeys } from '@nats-io/transport-node';

type KeyPair = ReturnType<typeof nkeys.createUser>;

function base64url(value: string | Uint8Array): string {
  return Buffer.from(value).toString('base64url');
}

function token(issuer: KeyPair, subject: KeyPair, name: string, nats: object): string {
  const header = base64url(JSON.stringify({ typ: 'JWT', alg: 'ed25519-nkey' }));
  const claims = {
    jti: name,
    iat: Math.floor(Date.now() / 1000),
    iss: issuer.getPublicKey(),
    name,
    sub: subject.getPublicKey(),
  };
  const body = `${header}.${base64url(JSON.stringify({ ...claims, nats: { ...nats, version: 2 } }))}`;
  return `${body}.${base64url(issuer.sign(Buffer.from(body)))}`;
}

/**
 * Makes an operator, an account and a user for a NATS server, as its tool nsc does: signed JWTs (NATS ADR-14). Returns lines for the
 * server's configuration, and the text of a credentials file.
 */
export function makeCredentials(): { config: string; creds: string } {
  const [operator, account, user] = [nkeys.createOperator(), nkeys.createAccount(), nkeys.createUser()];
  // JetStream does not start without one.
  const system = nkeys.createAccount();
  const unlimited = { subs: -1, data: -1, payload: -1 };
  const limits = {
    ...unlimited,
    ...{ imports: -1, exports: -1, wildcards: true, conn: -1, leaf: -1 },
    ...{ mem_storage: -1, disk_storage: -1, streams: -1, consumer: -1 },
  };
  const accountToken = token(operator, account, 'account', { type: 'account', limits });
  const systemToken = token(operator, system, 'system', {
    type: 'account',
    limits: { ...limits, disk_storage: 0, mem_storage: 0 },
  });
  const userToken = token(account, user, 'user', { type: 'user', pub: {}, sub: {}, ...unlimited });
  const config = [
    `operator: ${token(operator, operator, 'operator', { type: 'operator' })}`,
    'resolver: MEMORY',
    `system_account: ${system.getPublicKey()}`,
    `resolver_preload: { ${account.getPublicKey()}: ${accountToken}, ${system.getPublicKey()}: ${systemToken} }`,
  ];
  const block = (title: string, text: string): string =>
    `-----BEGIN ${title}-----\n${text}\n------END ${title}------\n\n`;
  const seed = Buffer.from(user.getSeed()).toString();
  return { config: config.join('\n'), creds: block('NATS USER JWT', userToken) + block('USER NKEY SEED', seed) };
}

/** Makes a certificate authority and certificates of a server and a client in a folder, by openssl. */
export function makeCertificates(dir: string): void {
  const file = (name: string): string => join(dir, name);
  const openssl = (...command: string[]) => execFileSync('openssl', command, { stdio: 'pipe' });
  const newKey = ['-newkey', 'rsa:2048', '-nodes', '-days', '2'];
  openssl('req', '-x509', ...newKey, '-keyout', file('ca.key'), '-out', file('ca.pem'), '-subj', '/CN=test CA');
  for (const name of ['server', 'client']) {
    writeFileSync(file(`${name}.ext`), 'subjectAltName=DNS:localhost,IP:127.0.0.1');
    openssl('req', ...newKey, '-keyout', file(`${name}.key`), '-out', file(`${name}.csr`), '-subj', `/CN=${name}`);
    openssl(
      ...['x509', '-req', '-in', file(`${name}.csr`), '-CA', file('ca.pem'), '-CAkey', file('ca.key')],
      ...['-CAcreateserial', '-days', '2', '-extfile', file(`${name}.ext`), '-out', file(`${name}.pem`)],
    );
  }
}
