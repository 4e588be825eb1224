import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { addressProblem } from '../pipeline/config/url.js';
import { redirectTarget } from '../pipeline/fetching/https.js';
import { isLoopback, parseUrl, takeCredentials, withoutCredentials } from '../src/url.js';
import { ipatlas } from './support/in-process.js';
import { temporaryDir } from './support/release.js';

const dir = temporaryDir();
writeFileSync(join(dir, 'root.json'), '{}');

describe('a URL', () => {
  it.each([
    ['http://localhost:1', true],
    ['http://LOCALHOST', true],
    ['http://127.0.0.1', true],
    ['http://127.1', true],
    ['http://0x7f.255.255.254', true],
    ['http://[::1]:80', true],
    ['http://127.evil.example', false],
    ['http://127.0.0.1.evil.example', false],
    ['http://localhost.evil.example', false],
    ['http://126.255.255.255', false],
    ['http://128.0.0.0', false],
    ['http://[::2]', false],
    ['http://[::1:7f00:1]', false],
    ['http://user@example', false],
    ['http://localhost@example', false],
  ])('%s is of this machine: %s', async (url, expected) => {
    expect(isLoopback(new URL(url).hostname)).toBe(expected);
    expect(addressProblem(url) === undefined).toBe(expected);
    if (expected) return;
    const imported = await ipatlas(['keys', 'import', `${url}/keys`, '--data', dir]);
    expect(imported).toMatchObject({ code: 2, stderr: expect.stringContaining('use https') });
  });

  it.each([
    ['https://a:b@c/d@e?f', 'https://***@c/d@e?f'],
    ['https://c/d@e', 'https://c/d@e'],
    ['nats://a%zz@c', 'nats://***@c'],
  ])('%s is shown as %s', (url, shown) => {
    expect(withoutCredentials(url)).toBe(shown);
  });

  it.each([
    ['https://user:se%20cret@a', 'user:se cret'],
    ['https://user@a', 'user:'],
    ['https://:%25@a', ':%'],
  ])('%s has the credentials %j', (text, pair) => {
    const url = parseUrl(text)!;
    expect([takeCredentials(url), url.href]).toEqual([`Basic ${btoa(pair)}`, 'https://a/']);
  });
});

describe('a malformed percent sign in the credentials of a URL', () => {
  it.each([
    [['keys', 'import', 'https://user:a%zzsecret@keys.example/', '--data', 'DIR']],
    [['pull', 'https://user:a%zzsecret@repo.example/', '--root', 'ROOT', '--data', 'DIR']],
    [['serve', '--redis', 'redis://user:a%zzsecret@localhost', '--data', 'DIR']],
  ])('is a usage error that does not quote them: %j', async (args) => {
    const { code, stderr } = await ipatlas(
      args.map((one) => one.replace('DIR', dir).replace('ROOT', `${dir}/root.json`)),
    );
    expect([code, stderr]).toEqual([2, expect.stringContaining('"%" is written as %25')]);
    expect(stderr).not.toContain('secret');
  });

  it('is refused in sources.json and in a redirect', () => {
    expect(addressProblem('https://a%zz@b.example')).toBe('a well-formed address');
    expect(() => redirectTarget('https://a%zz@b.example', new URL('https://c.example'))).toThrow('not well-formed');
  });
});
