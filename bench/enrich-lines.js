// Generates the lines that the enrichment benchmarks read, in several shapes; one address in five is IPv6.
import { closeSync, openSync, writeSync } from 'node:fs';
import { randomWords } from './measure.js';

const PATHS = ['/index.html', '/api/v1/items', '/static/app.js', '/login', '/search?q=shoes', '/cart/checkout'];
const AGENTS = [
  'Mozilla/5.0 (X11; Linux x86_64)',
  'curl/8.5.0',
  'Mozilla/5.0 (Windows NT 10.0; Win64; x64)',
  'okhttp/4.12.0',
];
/** The first 16 bits of the blocks that most IPv6 addresses lie in. */
const BLOCKS6 = [
  '2001',
  '2400',
  '2404',
  '2600',
  '2604',
  '2607',
  '2800',
  '2804',
  '2a00',
  '2a02',
  '2a03',
  '2a0d',
  '2c0f',
];

const WORDS =
  'request handled by upstream worker connection reset retry budget exhausted after timeout cache miss'.split(' ');

const SEED = 20_261_121;
let random = randomWords(SEED);
const below = (limit) => random() % limit;
const hex = () => below(65_536).toString(16);
const ipv4 = () => `${1 + below(223)}.${below(256)}.${below(256)}.${below(256)}`;
const ipv6 = () => `${BLOCKS6[below(BLOCKS6.length)]}:${hex()}:${hex()}:${hex()}::${hex()}`;
const address = (i) => (i % 5 === 4 ? ipv6() : ipv4());
const words = (count) => Array.from({ length: count }, () => WORDS[below(WORDS.length)]).join(' ');

/** A line of an access log, about 200 bytes. */
function logRecord(i, ip = address(i)) {
  return {
    time: new Date(1_760_000_000_000 + 37 * i).toISOString(),
    level: i % 50 === 0 ? 'warn' : 'info',
    ip,
    method: i % 7 === 0 ? 'POST' : 'GET',
    path: `${PATHS[i % PATHS.length]}/${below(100_000)}`,
    status: i % 11 === 0 ? 404 : 200,
    bytes: below(100_000),
    ms: below(50_000) / 100,
    agent: AGENTS[below(AGENTS.length)],
    referrer: null,
  };
}

/** An event like those of AWS CloudTrail: nested, about 1000 bytes. */
function auditEvent(i) {
  const account = String(100_000_000_000 + below(1e9));
  const time = new Date(1_760_000_000_000 + 37 * i).toISOString();
  return {
    eventVersion: '1.08',
    userIdentity: {
      type: 'AssumedRole',
      principalId: `AROA${below(1e9)}:session`,
      arn: `arn:aws:sts::${account}:assumed-role/app/session`,
      sessionContext: {
        sessionIssuer: { type: 'Role', userName: 'app', accountId: account },
        attributes: { mfaAuthenticated: 'false', creationDate: time },
      },
    },
    eventTime: time,
    eventSource: 's3.amazonaws.com',
    eventName: 'GetObject',
    awsRegion: 'eu-west-1',
    sourceIPAddress: address(i),
    userAgent: AGENTS[below(AGENTS.length)],
    requestParameters: { bucketName: 'logs', key: `a/b/${below(1e6)}`, Host: 'logs.s3.amazonaws.com' },
    responseElements: null,
    additionalEventData: { SignatureVersion: 'SigV4', bytesTransferredIn: 0, bytesTransferredOut: below(1e6) },
    resources: [
      { type: 'AWS::S3::Object', ARN: `arn:aws:s3:::logs/a/b/${below(1e6)}` },
      { type: 'AWS::S3::Bucket', ARN: 'arn:aws:s3:::logs', accountId: account },
    ],
    readOnly: true,
    eventType: 'AwsApiCall',
  };
}

function nested(i) {
  const { ip, ...rest } = logRecord(i);
  return { ...rest, client: { port: below(65_536), ip, tls: true } };
}

function withArrays(i) {
  const spans = [below(999), below(999), 0.5];
  const message = `said "${words(1)}"\n${words(3)}`;
  return { ...logRecord(i), tags: ['web', words(1)], path: `C:\\logs\\${below(999)}`, message, spans };
}

/** A line with the addresses that a request came through, the first ones of networks without a country. */
function withHops(i) {
  const { ip, ...rest } = logRecord(i);
  return { ...rest, hops: [`10.0.${below(256)}.${below(256)}`, '192.168.0.1', ip, address(i + 1)] };
}

/** A line with the header X-Forwarded-For: an address with a port, and a proxy. */
function forwarded(i) {
  const { ip, ...rest } = logRecord(i);
  const port = 1024 + below(60_000);
  return { ...rest, xff: `${ip.includes(':') ? `[${ip}]` : ip}:${port}, 10.0.${below(256)}.1` };
}

/** Blanks after commas and colons, as Python's json.dumps writes them. */
const spaced = (value) =>
  JSON.stringify(value, null, 1)
    .replace(/\n */g, ' ')
    .replace(/([[{]) /g, '$1')
    .replace(/ ([\]}])/g, '$1');

const MIXED = [
  (i) => JSON.stringify(logRecord(i)),
  (i) => spaced(logRecord(i)),
  (i) => JSON.stringify(withArrays(i)),
  (i) => JSON.stringify({ ip: address(i), user: words(1), ...nested(i) }),
];

/**
 * The shapes of lines: how one is made, the field with the address, other flags, the same for a program that parses each line
 * if it differs, and the least ratio to that program.
 */
export const SHAPES = {
  flat: { goal: 20, line: (i) => JSON.stringify(logRecord(i)) },
  spaced: { goal: 16, line: (i) => spaced(logRecord(i)) },
  'nested field': { goal: 16, field: 'client.ip', line: (i) => JSON.stringify(nested(i)) },
  'arrays and escapes': { goal: 16, line: (i) => JSON.stringify(withArrays(i)) },
  'replaced member': {
    goal: 12,
    line: (i) => JSON.stringify({ ...logRecord(i), geo: { country: 'Nowhere', code: 'XX' }, last: i }),
  },
  deep: { goal: 12, field: 'sourceIPAddress', line: (i) => JSON.stringify(auditEvent(i)) },
  tiny: { goal: 12, line: () => JSON.stringify({ ip: ipv4(), n: below(1000) }) },
  '2 kB': { goal: 16, line: (i) => JSON.stringify({ ...logRecord(i), message: words(250) }) },
  'element (hops[0])': { field: 'hops[0]', naive: 'hops.0', line: (i) => JSON.stringify(withHops(i)) },
  'any element (hops[])': { field: 'hops[]', naive: 'hops.*', line: (i) => JSON.stringify(withHops(i)) },
  'flat, --lenient': { flags: ['--lenient'], line: (i) => JSON.stringify(logRecord(i)) },
  'X-Forwarded-For, --lenient': {
    field: 'xff',
    flags: ['--lenient'],
    naive: 'xff,',
    line: (i) => JSON.stringify(forwarded(i)),
  },
  'IPv6 only': { goal: 16, line: (i) => JSON.stringify(logRecord(i, ipv6())) },
  /** Lines of four programs in one file, in no order. */
  mixed: { goal: 16, line: (i) => MIXED[below(MIXED.length)](i) },
};

/** The fields of a record as the cells of a table. */
const cells = (i) => {
  const { time, level, ip, method, path, status, bytes, ms, agent } = logRecord(i);
  return [time, level, ip, method, path, status, bytes, ms, agent];
};
const COLUMNS = ['time', 'level', 'ip', 'method', 'path', 'status', 'bytes', 'ms', 'agent'];
const quote = (text) => `"${String(text).replaceAll('"', '""')}"`;

/** A line of an access log in the combined format of Apache and nginx. */
function accessLine(i) {
  const { ip, method, path, status, bytes, agent } = logRecord(i);
  const second = String(i % 60).padStart(2, '0');
  return `${ip} - - [22/Nov/2026:06:13:${second} +0000] "${method} ${path} HTTP/1.1" ${status} ${bytes} "-" "${agent}"`;
}

const table = (format, delimiter, write) => ({
  format,
  goal: 10,
  head: `${COLUMNS.map(write).join(delimiter)}\n`,
  line: (i) => cells(i).map(write).join(delimiter),
});

/** The formats: how a record is made, the text around all records, the least ratio to a program that parses each. */
export const FORMAT_SHAPES = {
  'CSV plain': table('csv', ',', String),
  'CSV all quoted': table('csv', ',', quote),
  TSV: table('tsv', '\t', String),
  'W3C (IIS)': {
    format: 'w3c',
    head: `#Software: Microsoft Internet Information Services 10.0\n#Fields: ${COLUMNS.join(' ').replace('ip', 'c-ip')}\n`,
    line: (i) =>
      cells(i)
        .map((cell) => String(cell).replaceAll(' ', '+'))
        .join(' '),
  },
  Zeek: {
    format: 'zeek',
    head: `#separator \\x09\n#fields\t${COLUMNS.join('\t').replace('ip', 'id.orig_h')}\n#types${'\tstring'.repeat(COLUMNS.length)}\n`,
    line: (i) => cells(i).join('\t'),
  },
  logfmt: {
    format: 'logfmt',
    goal: 10,
    line: (i) =>
      cells(i)
        .map((cell, at) => `${COLUMNS[at]}=${/ /.test(cell) ? quote(cell) : cell}`)
        .join(' '),
  },
  list: { format: 'list', goal: 10, line: address },
  'access log (combined)': { format: 'combined', line: accessLine },
  'free text': { format: 'text', line: accessLine },
  'JSON document': {
    format: 'json',
    goal: 3,
    head: '[\n',
    between: ',\n',
    tail: '\n]\n',
    line: (i) => JSON.stringify(logRecord(i)),
  },
};

/** Writes at least so many bytes of a format; the same ones every time. */
export function writeFormat(path, least, { head = '', between = '\n', tail = '\n', line }) {
  random = randomWords(SEED);
  const file = openSync(path, 'w');
  let bytes = writeSync(file, head);
  for (let i = 0; bytes < least; ) {
    const records = [];
    for (; records.length < 10_000; i++) records.push(line(i));
    const text = records.join(between);
    bytes += writeSync(file, bytes > head.length ? between + text : text);
  }
  writeSync(file, tail);
  closeSync(file);
}

/** Writes `count` lines of a shape; the same ones every time. Returns their bytes. */
export function writeLines(path, count, shape = 'flat') {
  const { line } = SHAPES[shape];
  random = randomWords(SEED);
  const file = openSync(path, 'w');
  let bytes = 0;
  let lines = [];
  for (let i = 0; i < count; i++) {
    lines.push(line(i));
    if (lines.length === 10_000 || i === count - 1) {
      bytes += writeSync(file, `${lines.join('\n')}\n`);
      lines = [];
    }
  }
  closeSync(file);
  return bytes;
}
