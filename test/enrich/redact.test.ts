/**
 * Hidden addresses: for every format and every way, the output is the input with exactly the addresses replaced, as a naive twin replaces
 * them one by one. No replaced address is left at its place in the output, nor in the rejects.
 */
import { createCipheriv } from 'node:crypto';
import ipaddr from 'ipaddr.js';
import { describe, expect, it } from 'vitest';
import { addressCipher } from '../../src/enrich/address-cipher.js';
import { LineEnricher } from '../../src/enrich/enricher.js';
import { type FormatName, parseEnrichOptions, type RequestedOptions } from '../../src/enrich/options.js';
import { publicRanges } from '../../src/enrich/public-ranges.js';
import { cut } from '../support/chunks.js';
import { randomFrom, SEED } from '../support/seed.js';

const RUNS = Number(process.env.FUZZ_RUNS ?? 1);
const KEY = Buffer.from('2b7e151628aed2a6abf7158809cf4f3c', 'hex');
const PFX_KEY = Buffer.from('2b7e151628aed2a6abf7158809cf4f3ca9f5ba40db214c3798f2e1c23456789a', 'hex');
const WAYS = ['drop', 'truncate', 'truncate:16,32', 'ipcrypt', 'ipcrypt-pfx'] as const;
type Way = (typeof WAYS)[number];

const random = randomFrom(SEED);
const below = (count: number): number => Math.floor(random() * count);
const one = <Value>(values: readonly Value[]): Value => values[below(values.length)]!;

/** An address: its text, and how it is cut: after so many bits besides those of IPv4; it is an IPv6 address that is cut as such; it is dropped. */
interface Address {
  text: string;
  isIPv4: boolean;
  cut: number | 'v6' | 'dropped';
}

const v4 = (): Address => ({
  text: [1 + below(223), below(256), below(256), below(256)].join('.'),
  isIPv4: true,
  cut: 0,
});
function address(): Address {
  const word = (): string => below(65_536).toString(16);
  const kind = below(9);
  if (kind < 4) return v4();
  const inner = v4().text;
  const hex = Buffer.from(inner.split('.').map(Number)).toString('hex');
  const words = `${hex.slice(0, 4)}:${hex.slice(4)}`.replaceAll(/\b0{1,3}(?=[0-9a-f])/g, '');
  if (kind === 4) return { text: `::ffff:${inner}`, isIPv4: false, cut: 96 };
  if (kind === 5) return { text: `2002:${words}::${1 + below(9)}`, isIPv4: false, cut: 16 };
  if (kind === 6) return { text: `64:ff9b::${one([inner, words])}`, isIPv4: false, cut: 96 };
  if (kind === 7) return { text: `2001:0:${words}:8000:${word()}:${word()}:${word()}`, isIPv4: false, cut: 'dropped' };
  return {
    text: `2${word().padStart(4, '0').slice(1)}:db8:${one([word(), ''])}::${word()}`.replace(':::', '::'),
    isIPv4: false,
    cut: 'v6',
  };
}

/** Writes the text of an address with its dots where they were. */
function textOf(bytes: number[], like: string): string {
  const parsed = ipaddr.fromByteArray(bytes);
  const text = parsed.kind() === 'ipv6' ? (parsed as ipaddr.IPv6).toRFC5952String() : parsed.toString();
  if (!like.includes(':') || !like.includes('.')) return text;
  const last = bytes.slice(12).join('.');
  const [head] = ipaddr
    .fromByteArray([...bytes.slice(0, 12), 1, 1, 1, 1])
    .toString()
    .split('101:101');
  return `${(ipaddr.parse(`${head}101:101`) as ipaddr.IPv6).toRFC5952String().replace(/101:101$/, '')}${last}`;
}

/** Returns the text in place of an address; undefined if it is dropped. */
function replaced({ text, isIPv4, cut }: Address, way: Way): string | undefined {
  if (way === 'drop') return undefined;
  const bytes = ipaddr.parse(text).toByteArray();
  if (way.startsWith('truncate')) {
    if (cut === 'dropped') return undefined;
    const [width4, width6] = way === 'truncate' ? [24, 48] : [16, 32];
    const bits = cut === 'v6' ? width6 : cut + width4;
    return textOf(
      bytes.map((byte, index) => byte & (0xff00 >> Math.min(Math.max(bits - 8 * index, 0), 8)) & 0xff),
      text,
    );
  }
  const block = Buffer.from(isIPv4 ? [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, ...bytes] : bytes);
  if (way === 'ipcrypt') return textOf([...createCipheriv('aes-128-ecb', KEY, null).update(block)], '');
  addressCipher('ipcrypt-pfx', PFX_KEY, false)(block);
  const mapped = block.subarray(0, 12).equals(Buffer.from([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255]));
  return mapped ? block.subarray(12).join('.') : textOf([...block], '');
}

/** A piece of a record before and after. */
type Piece = [input: string, output: string];
const same = (text: string): Piece => [text, text];
const join = (pieces: readonly Piece[], between = ''): Piece => [
  pieces.map(([input]) => input).join(between),
  pieces.map(([, output]) => output).join(between),
];

/** Makes pieces for a way to hide. */
class Pieces {
  readonly way: Way;
  readonly isOfAll: boolean;

  constructor(way: Way, isOfAll: boolean) {
    this.way = way;
    this.isOfAll = isOfAll;
  }

  /** An address in text. */
  inText(isHidden: boolean, one = address()): Piece {
    return [one.text, isHidden ? (replaced(one, this.way) ?? '[redacted]') : one.text];
  }

  /** An address with a port. */
  withPort(isHidden: boolean): Piece {
    const one = address();
    const port = `:${1 + below(65_535)}`;
    const [input, output] = this.inText(isHidden, one);
    const isBracketed = isHidden && one.isIPv4 && output.includes(':');
    return [
      one.isIPv4 ? input + port : `[${input}]${port}`,
      (one.isIPv4 && !isBracketed ? output : output === '[redacted]' && one.isIPv4 ? output : `[${output}]`) + port,
    ];
  }

  /** Text with addresses. */
  text(isHidden: boolean): Piece {
    const range = (): Piece => join([this.inText(isHidden, v4()), this.inText(isHidden, v4())], '-');
    const part = (): Piece =>
      one([
        () => this.inText(isHidden),
        () => join([same('('), this.inText(isHidden), same(')')]),
        () => this.withPort(isHidden),
        range,
        () => same(one(['12:30:59', 'Chrome/120.0.0.0', 'version 1.2.3.4', 'x', '2026-01-31', '-'])),
      ])();
    return join([same('seen'), ...Array.from({ length: 1 + below(4) }, part)], ' ');
  }

  /**
   * The text of a field: an address, one with a port, a list, or no address; whether it is an address alone, and whether it is
   * dropped as a whole.
   */
  value(isField: boolean): { text: Piece; isDropped: boolean } {
    const isHidden = isField || this.isOfAll;
    const kind = below(6);
    if (kind < 3) {
      const one = address();
      const text = this.inText(isHidden, one);
      return { text, isDropped: isHidden && replaced(one, this.way) === undefined };
    }
    if (kind === 3) return { text: same(one(['', 'unknown', 'a.b:c'])), isDropped: false };
    const text = kind === 4 ? this.withPort(isHidden) : join([this.inText(isHidden), this.inText(isHidden)], ', ');
    return { text, isDropped: isField && this.way === 'drop' };
  }
}

/** A value of JSON. Some bytes of a single address are written as escapes. */
function json(pieces: Pieces, isField: boolean): Piece {
  const kind = below(8);
  if (kind === 0) return same(one(['null', '17', 'true', '{}']));
  if (kind === 1) return join([same('['), join([json(pieces, isField), json(pieces, isField)], ', '), same(' ]')]);
  if (kind === 2 && isField) return join([same('{"k":'), json(pieces, true), same('}')]);
  const { text, isDropped } = pieces.value(isField);
  const [input, output] = text;
  if (isDropped) return [`"${escaped(input)}"`, 'null'];
  if (input === output) return same(`"${input}"`);
  const isAddress = ipaddr.isValid(input);
  return [`"${isAddress ? escaped(input) : input}"`, `"${output}"`];
}

function escaped(text: string): string {
  if (below(3) > 0 || text === '') return text;
  const at = below(text.length);
  return `${text.slice(0, at)}\\u00${text.charCodeAt(at).toString(16)}${text.slice(at + 1)}`;
}

function jsonText(pieces: Pieces): Piece {
  const text = pieces.text(pieces.isOfAll);
  return join([same(one(['"\\n', '"\\t\\"', '"\\u003c', '"é '])), text, same('\\n"')]);
}

function object(pieces: Pieces): Piece {
  const members: Piece[] = [
    join([same('"ip": '), json(pieces, true)]),
    join([same('"client":{"n":1,"ip":'), json(pieces, true), same('}')]),
    join([same('"hops":['), join([json(pieces, true), json(pieces, true)], ','), same(']')]),
    join([same('"other" :'), json(pieces, false)]),
    join([same('"message":'), jsonText(pieces)]),
  ];
  for (let count = below(3); count > 0; count--) members.splice(below(members.length), 1);
  return join([
    same('{'),
    join(
      members.sort(() => random() - 0.5),
      ',',
    ),
    same('}'),
  ]);
}

/** A cell of a table, quoted in some. */
function cell(pieces: Pieces, isField: boolean, { mayQuote = true, unset = '' } = {}): Piece {
  const { text, isDropped } = pieces.value(isField);
  const piece: Piece = isDropped ? [text[0], unset] : text;
  if (mayQuote && (text[0].includes(', ') || below(3) === 0)) return join([same('"'), piece, same('"')]);
  if (!mayQuote && (text[0] === '' || text[0].includes(' '))) return same('-');
  return piece;
}

interface FormatCase {
  format: FormatName;
  options?: RequestedOptions;
  before?: string;
  after?: string;
  record: (pieces: Pieces) => Piece;
  between?: string;
  /** A line that is no record. */
  hasInvalid?: boolean;
}

const JSON_FIELDS = ['ip', 'client.ip', 'hops[]'];
const FORMATS: FormatCase[] = [
  { format: 'jsonl', options: { field: JSON_FIELDS }, record: object, hasInvalid: true },
  { format: 'json', options: { field: JSON_FIELDS }, before: '[', after: ']\n', between: ',\n', record: object },
  { format: 'json-seq', options: { field: JSON_FIELDS }, between: ' ', record: object },
  ...(['csv', 'tsv'] as const).map((format) => {
    const delimiter = format === 'csv' ? ',' : '\t';
    const record = (pieces: Pieces): Piece =>
      join([cell(pieces, true), same('a "b"'), cell(pieces, false), cell(pieces, true)], delimiter);
    return {
      format,
      options: { field: ['ip', 'xff'] },
      before: `${['ip', 'b', 'c', 'xff'].join(delimiter)}\n`,
      record,
      hasInvalid: true,
    };
  }),
  {
    format: 'w3c',
    options: { field: ['c-ip', 's-ip'] },
    before: '#Fields: date c-ip cs(x) s-ip\n',
    record: (pieces) => {
      const [a, b, c] = [true, false, true].map((isField) => cell(pieces, isField, { mayQuote: false, unset: '-' }));
      return join([same('2026-01-31'), a!, b!, c!], ' ');
    },
  },
  {
    format: 'zeek',
    before: '#separator \\x09\n#fields\tts\tid.orig_h\tnote\n#types\ttime\taddr\tstring\n',
    record: (pieces) => {
      const [a, b] = [true, false].map((isField) => cell(pieces, isField, { mayQuote: false, unset: '-' }));
      return join([same('1.5'), a!, b!], '\t');
    },
  },
  {
    format: 'logfmt',
    options: { field: ['src', 'dst'] },
    record: (pieces) => {
      const [a, b] = [true, true].map((isField) => cell(pieces, isField, { mayQuote: false, unset: '-' }));
      return join([same('t=1 src='), a!, same(' msg="'), pieces.text(pieces.isOfAll), same('" dst='), b!]);
    },
  },
  {
    format: 'list',
    record: (pieces) => {
      const { text, isDropped } = pieces.value(true);
      return isDropped ? [text[0], ''] : text;
    },
  },
  {
    format: 'combined',
    record: (pieces) => {
      const client = cell(pieces, true, { mayQuote: false, unset: '-' });
      const agent = pieces.text(pieces.isOfAll);
      return join([client, same(' - - [31/Jan/2026:00:00:00 +0000] "GET / HTTP/1.1" 200 5 "-" "'), agent, same('"')]);
    },
  },
  { format: 'text', record: (pieces) => pieces.text(true) },
];

/** Redacts an input in parts. */
function run(
  input: string,
  requested: RequestedOptions,
  chunkBytes = 300,
): { output: string; rejects: string; hidden: unknown } {
  const options = parseEnrichOptions(requested, (name) => name);
  const query = { kind: 'filter', countries: new Set<string>(), selectsEu: false, isInverted: true } as const;
  const [output, rejects]: [Buffer[], Buffer[]] = [[], []];
  const enricher = new LineEnricher(
    publicRanges(),
    { ...options, add: [], query },
    (bytes) => output.push(Buffer.from(bytes)),
    (bytes) => rejects.push(Buffer.from(bytes)),
    { chunkBytes, maxLineBytes: 100_000 },
  );
  const bytes = Buffer.from(input);
  for (const piece of cut(bytes, [below(bytes.length), below(bytes.length)])) enricher.write(piece);
  enricher.end();
  const { hidden } = enricher.counts as unknown as { hidden: unknown };
  return { output: Buffer.concat(output).toString(), rejects: Buffer.concat(rejects).toString(), hidden };
}

function requestOf({ format, options }: FormatCase, way: Way, redactAll: boolean): RequestedOptions {
  const redactKey = way === 'ipcrypt' ? KEY : way === 'ipcrypt-pfx' ? PFX_KEY : undefined;
  return { format, ...options, redact: way, redactKey, redactAll };
}

describe.each(FORMATS)('hidden addresses in $format', (formatCase) => {
  it.each(WAYS)('%s: exactly the addresses are replaced, in the rejects too', (way) => {
    for (let count = 0; count < RUNS; count++) {
      const isOfAll = formatCase.format === 'text' || below(2) === 0;
      const pieces = new Pieces(way, isOfAll);
      const { before = '', after = '', between = '\n', record, hasInvalid } = formatCase;
      const invalid = (): Piece => join([same('no record: "'), new Pieces(way, true).text(true)]);
      const rejected: Piece[] = [];
      const records = Array.from({ length: 1 + below(40) }, () => {
        if (hasInvalid !== true || below(6) > 0) return record(pieces);
        const line = invalid();
        rejected.push(line);
        return line;
      });
      const [input, output] = join([same(before), join(records, between), same(after || between)]);
      const request = requestOf(formatCase, way, isOfAll);
      const result = run(input, request, 40 + below(400));
      expect(result.output).toBe(output);
      if (formatCase.format === 'jsonl') expect(result.rejects).toBe(join([...rejected, same('')], '\n')[1]);
      if (!way.startsWith('ipcrypt')) expect(run(output, request).output).toBe(output);
      else {
        const back = run(output, { ...request, reverse: true }).output;
        expect(back === output).toBe(input === output);
        expect(run(back, request).output).toBe(output);
      }
    }
  });
});

describe('what is no record', () => {
  const a = '192.0.2.77';
  const hide = (request: RequestedOptions, input: string) => run(input, { redact: 'truncate', ...request });

  it.each(['keep', 'drop'] as const)('is text, in items of documents and in tables too (%s)', (onInvalid) => {
    const items = hide({ format: 'json', onInvalid }, `[{"ip":"${a}"}, "see ${a}",17,{"ip":"${a}"}]`);
    const kept = onInvalid === 'keep' ? ' "see 192.0.2.0",17,' : '';
    expect(items.output).toBe(`[{"ip":"192.0.2.0"},${kept}{"ip":"192.0.2.0"}]`);
    expect(items.rejects).toBe('"see 192.0.2.0"\n17\n');
    // A quote that is never closed.
    const table = hide({ format: 'csv', onInvalid }, `ip,b\n${a},x\n"${a},x\n${a},y\n`);
    expect(table.rejects).toBe('"192.0.2.0,x\n');
    expect(table.output).toBe(`ip,b\n192.0.2.0,x\n${onInvalid === 'keep' ? table.rejects : ''}192.0.2.0,y\n`);
    expect(items.hidden).toMatchObject({ addresses: onInvalid === 'keep' ? 3 : 2 });
  });

  it('does not have the values of equal keys, of which only one counts', () => {
    const input = `src=${a} m="src=${a}" src="${a}" x=${a} src=${a}\n`;
    const output = `src=- m="src=${a}" src="-" x=${a} src=-\n`;
    expect(hide({ format: 'logfmt', field: 'src', redact: 'drop' }, input).output).toBe(output);
  });

  it('is an error, or left out, if it is too long to be searched as a whole', () => {
    const long = `${JSON.stringify({ ip: a, x: 'y'.repeat(300_000) })}\n`;
    expect(() => hide({}, long)).toThrow(
      'line 1 is longer than 100000 bytes, so that its addresses cannot be hidden; fix it, or choose the policy drop',
    );
    expect(hide({ onInvalid: 'drop' }, `${long}{"ip":"${a}"}\n`)).toMatchObject({
      output: '{"ip":"192.0.2.0"}\n',
      rejects: '',
    });
  });

  it('has all addresses hidden if a key that counts is there twice, or if there are too many', () => {
    expect(hide({}, `{"ip":"${a}","ip":"x","z":"${a}"}\n`).output).toBe(
      '{"ip":"192.0.2.0","ip":"x","z":"192.0.2.0"}\n',
    );
    const many = (one: string): string => `{"hops":[${Array(20_000).fill(`"${one}"`)}],"z":"${one}"}\n`;
    const options = parseEnrichOptions({ field: 'hops[]', redact: 'drop' }, (name) => name);
    const output: Buffer[] = [];
    const enricher = new LineEnricher(publicRanges(), { ...options, add: ['is_eu'] }, (bytes) =>
      output.push(Buffer.from(bytes)),
    );
    enricher.write(Buffer.from(many(a)));
    expect(Buffer.concat(output).toString()).toBe(`${many('[redacted]').slice(0, -2)},"geo":{"is_eu":false}}\n`);
  });
});

describe('results', () => {
  it('are those of the whole addresses, and follow as without hiding', () => {
    const options = { field: ['ip=geo', 'c.ip=c.geo'], add: ['country_code'] };
    const input = '{"geo":1,"ip":"1.1.1.1","c":{"ip":"10.1.1.1","geo":"8.8.8.8"}}\n{"c":{"ip":"[::1]:5"}}\n';
    const enrich = (more: RequestedOptions): string => {
      const output: Buffer[] = [];
      const parsed = parseEnrichOptions({ ...options, ...more }, (name) => name);
      const enricher = new LineEnricher(publicRanges(), parsed, (bytes) => output.push(Buffer.from(bytes)));
      enricher.write(Buffer.from(input));
      return Buffer.concat(output).toString();
    };
    const plain = enrich({});
    expect(enrich({ redact: 'truncate' })).toBe(
      plain.replace('1.1.1.1', '1.1.1.0').replace('10.1.1.1', '10.1.1.0').replace('[::1]', '[::]'),
    );
    expect(enrich({ redact: 'drop' })).toBe(
      plain.replace('"1.1.1.1"', 'null').replace('"10.1.1.1"', 'null').replace('"[::1]:5"', 'null'),
    );
  });

  it.each([
    [{ redact: 'x' }, 'redact is "x"; it can be drop, truncate, ipcrypt, ipcrypt-pfx, or truncate:16,32'],
    [{ redact: 'truncate:33,48' }, 'has no prefix lengths'],
    [{ redact: 'ipcrypt' }, 'redact ipcrypt requires redactKey'],
    [{ redact: 'drop', redactKey: KEY }, 'redactKey goes with redact ipcrypt or ipcrypt-pfx only'],
    [{ redactAll: true }, 'redactAll requires redact'],
    [{ redact: 'drop', add: ['network'] }, 'redact and add network exclude each other'],
    [{ redact: 'drop', format: 'csv', delimiter: ':' }, 'redact cannot be used with delimiter ":"'],
  ] as [RequestedOptions, string][])('refuses %j', (requested, message) => {
    expect(() => parseEnrichOptions(requested, (name) => name)).toThrow(message);
  });
});
