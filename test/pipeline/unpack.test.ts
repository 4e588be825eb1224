import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { listed, takeFiles } from '../../pipeline/fetching/unpack.js';
import { makeZip, scratchDir, type ZipEntry } from './fetch-support.js';

/** Unpacks files given as name and bytes; returns text by name. */
async function take(inputs: Record<string, Buffer | string>, wanted: string[] = [], max = 1_000_000) {
  const directory = scratchDir();
  const packed = Object.entries(inputs).map(([name, content], index) => {
    const file = path.join(directory, `packed-${index}`);
    writeFileSync(file, content);
    return { path: file, name };
  });
  const files = await takeFiles(directory, packed, wanted, max);
  return Object.fromEntries(files.map((file) => [file.name, readFileSync(file.path, 'utf8')]));
}

const LITE: ZipEntry[] = [
  { name: 'lite_20260101/', content: '', mode: 0o40755 },
  { name: 'lite_20260101/README.txt', content: 'read me' },
  { name: 'lite_20260101/v4.csv', content: 'four' },
  { name: 'lite_20260101/v6.csv', content: 'six' },
  { name: '__MACOSX/._v4.csv', content: 'junk' },
];

describe('takeFiles', () => {
  it.each<[string, Record<string, Buffer | string>, string[], Record<string, string>]>([
    ['a plain file', { 'a.csv': 'text' }, [], { 'a.csv': 'text' }],
    ['an empty file', { 'a.csv': '' }, [], { 'a.csv': '' }],
    ['a file of one byte', { 'a.csv': 'P' }, [], { 'a.csv': 'P' }],
    ['gzip', { 'a.csv.gz': gzipSync('text') }, [], { 'a.csv': 'text' }],
    ['gzip under another name', { 'a.csv': gzipSync('text') }, [], { 'a.csv': 'text' }],
    ['gzip in two members', { 'a.GZ': Buffer.concat([gzipSync('te'), gzipSync('xt')]) }, [], { a: 'text' }],
    ['a plain file named as gzip', { 'a.csv.gz': 'text' }, [], { 'a.csv.gz': 'text' }],
    ['zip with one file', { 'a.zip': makeZip([{ name: 'in/a.csv', content: 'text' }]) }, [], { 'a.csv': 'text' }],
    ['zip, two by name', { z: makeZip(LITE) }, ['v6.csv', 'v4.csv'], { 'v4.csv': 'four', 'v6.csv': 'six' }],
    ['zip, two by glob', { z: makeZip(LITE) }, ['*.csv'], { 'v4.csv': 'four', 'v6.csv': 'six' }],
    ['zip, one by path', { z: makeZip(LITE) }, ['lite_*/v?.csv'], { 'v4.csv': 'four', 'v6.csv': 'six' }],
    ['several files', { 'b.csv': 'b', 'a.csv.gz': gzipSync('a') }, [], { 'a.csv': 'a', 'b.csv': 'b' }],
    ['several files, some wanted', { 'b.csv': 'b', 'a.txt': 'a' }, ['*.csv'], { 'b.csv': 'b' }],
  ])('takes from %s', async (_what, inputs, wanted, result) => {
    const taken = await take(inputs, wanted);
    expect(taken).toEqual(result);
    expect(Object.keys(taken)).toEqual(Object.keys(result).sort());
  });

  const link: ZipEntry = { name: 'a.csv', content: '/etc/hostname', mode: 0o120777 };
  const zip = makeZip([{ name: 'a.csv', content: 'x'.repeat(5000) }]);
  const gz = gzipSync(Buffer.alloc(3_000_000));
  it.each<[string, Record<string, Buffer | string>, string[], RegExp]>([
    ['zip, none named', { 'a.zip': makeZip(LITE) }, [], /a\.zip holds 4 files; name the ones you want.*v6\.csv/],
    ['a zip without entries', { 'a.zip': makeZip([]) }, [], /a\.zip holds 0 files/],
    [
      'a missing file',
      { z: makeZip(LITE) },
      ['*.csv', 'v5.csv'],
      /no file "v5\.csv"; there are: .*"lite_20260101\/v6\.csv"/,
    ],
    ['a file not wanted', { 'a.txt': 'a' }, ['*.csv'], /no file "\*\.csv"; there are: "a\.txt"/],
    [
      'two of one name',
      { 'a.csv': 'a', z: makeZip([{ name: 'x/a.csv', content: '' }]) },
      [],
      /two files have the name a\.csv/,
    ],
    ['zip with ../evil', { z: makeZip([{ name: '../evil', content: 'x' }]) }, [], /invalid relative path: \.\.\/evil/],
    [
      'zip with an evil neighbor',
      { z: makeZip([...LITE, { name: 'a/../../b', content: '' }]) },
      ['*.csv'],
      /invalid relative/,
    ],
    [
      'zip with an absolute path',
      { z: makeZip([{ name: '/etc/passwd', content: 'x' }]) },
      [],
      /absolute path: \/etc\/passwd/,
    ],
    ['zip with a link', { z: makeZip([link]) }, ['a.csv'], /no file "a\.csv"; there are: none/],
    [
      'zip with a wrong checksum',
      { z: makeZip([{ name: 'a', content: 'x', crc: 1 }]) },
      [],
      /a is damaged: wrong checksum/,
    ],
    ['zip with a wrong size', { z: makeZip([{ name: 'a', content: 'xxxx', size: 2 }]) }, [], /too many bytes/],
    ['a cut-off zip', { z: zip.subarray(0, zip.length - 30) }, [], /end of central directory/i],
    ['a cut-off gzip', { 'a.gz': gzipSync('text').subarray(0, -10) }, [], /unexpected end of file/],
    [
      'a damaged gzip',
      { 'a.gz': Buffer.concat([gzipSync('text').subarray(0, -8), Buffer.alloc(8)]) },
      [],
      /incorrect data check/,
    ],
    ['a gzip bomb', { 'a.gz': gz }, [], /it unpacks to more than 1000000 bytes/],
    [
      'a zip bomb',
      { z: makeZip([{ name: 'a', content: Buffer.alloc(3_000_000) }]) },
      [],
      /unpacks to more than 1000000 bytes/,
    ],
    [
      'a bomb in two parts',
      { 'a.gz': gzipSync(Buffer.alloc(600_000)), 'b.gz': gzipSync(Buffer.alloc(600_000)) },
      [],
      /more than 1000000/,
    ],
    [
      'a zip with too many entries',
      { z: makeZip(Array.from({ length: 10_001 }, (_, i) => ({ name: `${i}`, content: '' }))) },
      ['1'],
      /has 10001 entries, more than 10000/,
    ],
  ])('refuses %s', async (_what, inputs, wanted, message) => {
    await expect(take(inputs, wanted)).rejects.toThrow(message);
  });

  it('accepts exactly the largest allowed size', async () => {
    const taken = await take({ 'a.gz': gzipSync(Buffer.alloc(1000)) }, [], 1000);
    expect(taken.a).toHaveLength(1000);
    await expect(take({ 'a.gz': gzipSync(Buffer.alloc(1001)) }, [], 1000)).rejects.toThrow(/more than 1000 bytes/);
  });
});

describe('a list in a message', () => {
  it('names twenty and counts the rest', () => {
    expect(listed([])).toBe('none');
    expect(listed(['a', 'b'])).toBe('"a", "b"');
    expect(listed(Array.from({ length: 23 }, (_, i) => `${i}`))).toMatch(/^"0", .*"19" and 3 more$/);
  });
});
