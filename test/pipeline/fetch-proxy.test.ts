/** Downloads through a proxy: a build fetches from a real HTTPS server, whose name only a real CONNECT proxy can resolve. */
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import https from 'node:https';
import { type AddressInfo, connect, type Server } from 'node:net';
import { join } from 'node:path';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { ipatlas } from '../support/cli.js';
import { atlasError, runFetch, scratchDir, source } from './fetch-support.js';

/** A name that no resolver knows (RFC 6761 §6.4). */
const HOST = 'data.invalid';
const ROWS = '80.0.0.0,80.255.255.255,DE\n81.0.0.0,81.255.255.255,FR\n2a00::,2a00::ffff,IT\n';

async function listen(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  return (server.address() as AddressInfo).port;
}

let dir: string;
/** Port of the HTTPS server. Its certificate is for {@link HOST} and 127.0.0.1. */
let port: number;
/** Port of the proxy, and the targets that it was asked for. */
let proxy: number;
let tunnels: string[];

beforeEach(async () => {
  dir = scratchDir();
  const [key, cert] = [join(dir, 'key.pem'), join(dir, 'cert.pem')];
  const names = `subjectAltName=DNS:${HOST},IP:127.0.0.1`;
  const kind = ['-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'];
  execFileSync('openssl', ['req', ...kind, '-subj', `/CN=${HOST}`, '-addext', names, '-keyout', key, '-out', cert], {
    stdio: 'pipe',
  });
  const server = https.createServer({ key: readFileSync(key), cert: readFileSync(cert) }, (_request, response) =>
    response.end(ROWS),
  );
  port = await listen(server);

  tunnels = [];
  const tunnel = http.createServer((_request, response) => response.writeHead(405).end());
  tunnel.on('connect', (request, socket) => {
    tunnels.push(request.url!);
    const target = connect(port, '127.0.0.1', () => {
      socket.write('HTTP/1.1 200 Connection Established\r\n\r\n');
      target.pipe(socket).pipe(target);
    });
    for (const end of [socket, target])
      end.on('error', () => {}).on('close', () => [socket, target].map((one) => one.destroy()));
  });
  proxy = await listen(tunnel);
});

/** Builds from an address, with these proxy variables. */
function build(address: string, variables: Record<string, string>) {
  const names = ['HTTP_PROXY', 'HTTPS_PROXY', 'NO_PROXY'].flatMap((name) => [name, name.toLowerCase()]);
  const unset = Object.fromEntries(names.map((name) => [name, undefined]));
  const sources = join(dir, 'sources.json');
  const one = { id: 'one', license: 'CC0-1.0', fetch: { https: address }, format: 'ip-location-db' };
  writeFileSync(sources, JSON.stringify({ sources: [one] }));
  const env = { ...unset, NODE_EXTRA_CA_CERTS: join(dir, 'cert.pem'), ...variables };
  return ipatlas(['build', '--data', join(dir, 'data'), '--sources', sources], { env });
}

/** Downloads from an address once, in this process, which trusts no certificate of a test; returns the error. */
const failure = (address: string, variables: Record<string, string>) =>
  atlasError(
    runFetch([source({ kind: 'https', urls: [address], files: [] })], dir, { env: variables, limits: { retries: 0 } }),
  );

describe('a download', () => {
  it('goes through the proxy that HTTPS_PROXY names', async () => {
    const result = await build(`https://${HOST}/list.csv`, { HTTPS_PROXY: `http://127.0.0.1:${proxy}` });
    expect(result).toMatchObject({ code: 0, stderr: expect.stringContaining('published release') });
    expect(tunnels).toEqual([`${HOST}:443`]);
  });

  it('goes through no proxy to a host that NO_PROXY names', async () => {
    const address = `https://127.0.0.1:${port}/list.csv`;
    for (const [name, except, targets] of [
      ['HTTPS_PROXY', '127.0.0.1', []],
      ['HTTPS_PROXY', 'other.invalid', [`127.0.0.1:${port}`]],
      ['https_proxy', 'other.invalid', [`127.0.0.1:${port}`]],
    ] as const) {
      tunnels.length = 0;
      const { message } = await failure(address, { [name]: `http://127.0.0.1:${proxy}`, NO_PROXY: except });
      // The server was reached in either case.
      expect(message).toMatch(/self-signed certificate \(NODE_EXTRA_CA_CERTS=FILE names/);
      expect(tunnels).toEqual(targets);
    }
  });

  it('names the reason if the proxy refuses it, but not the password of the proxy', async () => {
    const refusing = http.createServer().on('connect', (_request, socket) => {
      socket.end('HTTP/1.1 403 Forbidden\r\n\r\n');
    });
    const address = `http://me:secret@127.0.0.1:${await listen(refusing)}`;
    const { message } = await failure(`https://${HOST}/list.csv`, { HTTPS_PROXY: address });
    expect(message).toMatch(/cannot get https:\/\/data\.invalid\/list\.csv: the proxy answered 403;/);
    expect(message).not.toContain('secret');
  });
});
