/** The naive twin of what finds addresses in text, with regular expressions and ipaddr.js: for the kernel and for the page. */
import { BlockList } from 'node:net';
import fc from 'fast-check';
import ipaddr from 'ipaddr.js';

/** The IPv4-mapped addresses; ipaddr.js takes `::1.2.3.4` for one. */
const MAPPED = new BlockList();
MAPPED.addSubnet('::ffff:0:0', 96, 'ipv6');

// ipaddr.js allows leading zeros in a dotted-decimal tail, and zones.
export const isAddress = (text: string): boolean =>
  /^[\da-f.:]{2,45}$/i.test(text) &&
  (ipaddr.IPv4.isValidFourPartDecimal(text) ||
    (text.includes(':') && ipaddr.IPv6.isValid(text) && !/[:.]0\d+\./.test(text) && !/\.0\d+$/.test(text)));

/** Returns the address that a text is, alone or with a port. */
function withPort(text: string): string | undefined {
  return [text, text.replace(/(:\d{1,5}|\.\d{2,5})$/, '')].find((one) => isAddress(one) && /\d/.test(one));
}

/** The address in a word, as the head of text.ts says. */
function addressInWord(
  word: string,
  isBesideArrow: boolean,
): { address: string; before: string; after: string } | undefined {
  const text = word.replace(/[.-]+$/, '').replace(/(?<=[^:]):$/, '');
  let names = '';
  for (let name: string | undefined; name !== ''; names += name) {
    [name = ''] = /^(?:(?=[^:]*[^:.\da-f])[^:]+:|:(?!:))/i.exec(text.slice(names.length)) ?? [];
  }
  const parts = text.split(':');
  const isIPv4 = (one: string): boolean => ipaddr.IPv4.isValidFourPartDecimal(one);
  const range = /^([^-]*)-(.*)$/s.exec(text);
  const first = range && isIPv4(range[2]!) ? range[1] : isBesideArrow ? /^(.*)\./s.exec(text)?.[1] : undefined;
  const found = [
    { address: isAddress(text) && /\d/.test(text) ? text : undefined, before: '' },
    { address: withPort(text.slice(names.length)), before: names },
    ...parts.map((part, index) => ({
      address: withPort(part),
      before: parts
        .slice(0, index)
        .map((other) => `${other}:`)
        .join(''),
    })),
    { address: first !== undefined && isAddress(first) && /\d/.test(first) ? first : undefined, before: '' },
  ].find(({ address }) => address !== undefined);
  if (found?.address === undefined) return undefined;
  const { address, before } = found;
  return { address, before, after: word.slice(before.length + address.length) };
}

/** The addresses of a line. */
export function addressesIn(line: string): string[] {
  return [...line.matchAll(/(?<=\[[\d;]*)\d*[mk]|[\w.:-]+/gi)].flatMap(({ 0: word, index }) => {
    const isBesideArrow = line.startsWith(' > ', index + word.length) || line.slice(0, index).endsWith('> ');
    const found = addressInWord(word, isBesideArrow);
    if (found === undefined) return [];
    const { address } = found;
    if (address.includes(':') && !MAPPED.check(address, 'ipv6')) return [address];
    const before = line.slice(0, index + found.before.length);
    const after = found.after + line.slice(index + word.length);
    if (/~$|version[ :="]{1,3}$/i.test(before)) return [];
    if (!/[\w.:-]\/$/.test(line.slice(0, index))) return [address];
    const isPort = /^(?:[:(]\d|\/\d{1,5}(?![\w.:/-]))/.test(after);
    return isPort || (/\d\/$/.test(line.slice(0, index)) && !after.startsWith('/')) ? [address] : [];
  });
}

const PIECES = [
  '8.8.8.8',
  '193.0.6.139',
  '10.0.0.1',
  '90.0.0.1',
  '255.255.255.256',
  '1.2.3',
  '08.8.8.8',
  '2001:4860:4860::8888',
  '2a00:1::',
  '::1',
  '::',
  '::ffff:8.8.8.8',
  'fe80::1',
  '12:34:56',
  '00:1a:2b:3c:4d:5e',
  '2026-11-22T06:13:03.123Z',
  '3.14',
  'Chrome/120.0.0.0',
  'v1.2.3.4',
  'std::string',
  'dead::beef',
  ':8080',
  ':123456',
  '.50550',
  'ip:',
  'IPv6:',
  'en0+:',
  '12:',
  'host1/',
  'UDP/',
  '/5060',
  '~~',
  '\x1b[31m',
  '[1;31m',
  ' > ',
  '8.8.8.8-9.9.9.9',
  'version ',
  'Version: ',
  'version="',
  '+',
  '/',
  '//',
  '.',
  ':',
  '-',
  '_',
  ' ',
  '\t',
  '=',
  '"',
  '[',
  ']',
  '(',
  ',',
  '%',
  '@',
  '\r',
  '\0',
  'a',
  'x',
  '7',
  '\xe9',
  'z'.repeat(60),
  '\n',
  '\r\n',
];
/** Lines of text with what looks like an address and is none, what is one, and what is around it. */
export const TEXT = fc
  .array(fc.oneof(fc.constantFrom(...PIECES), fc.constant(' ')), { maxLength: 40 })
  .map((pieces) => pieces.join(''));
