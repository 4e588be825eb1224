/** Generators of JSON lines, valid and invalid, with everything that parsers are known to get wrong. */
import fc from 'fast-check';

const BLANK = fc.constantFrom('', '', '', ' ', '\t', '\r', '  ', '   \t');

/** Keys: those of the fields, and similar ones. */
const KEYS = [
  'ip',
  'client',
  'geo',
  'a',
  'b',
  'ip_geo',
  '',
  'IP',
  'i',
  'ipp',
  'ip"',
  '"ip',
  '\\ip',
  'ключ',
  '😀',
  '__proto__',
];
const LONG_KEYS = ['constructor', 'a-key-of-more-than-eight-bytes', 'x'.repeat(80)];

const ADDRESSES = [
  '8.8.8.8',
  '193.0.0.1',
  '10.0.0.1',
  '255.255.255.255',
  'ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff',
  'ffff:ffff:ffff:ffff::1',
  'ffff:ffff:ffff:ffff:8000::',
  'ffff:ffff:ffff:fffe::1',
  '2a01:1234::1',
  '24.5.6.7',
  '0.0.0.0',
  '2001:4860:4860::8888',
  '2a00:1:0:1::42',
  '2A00:0001:0000:0001:0000:0000:0000:0041',
  '::1',
  '::',
  '::ffff:8.8.8.8',
  '2002:808:808::1',
  '64:ff9b::193.0.0.1',
  '2001:0:1:2:3:4:f7f7:f7f7',
  '01.2.3.4',
  '8.8.8.8 ',
  '8.8.8',
  '256.1.1.1',
  '1:2:3:4:5:6:7',
  '1::2::3',
  'fe80::1%eth0',
  '8.8.8.8/8',
  '[::1]',
];

/** Texts of strings that look like structure. */
const STRINGS = [
  '',
  '","ip":"8.8.8.8',
  '}',
  '{"ip":"8.8.8.8"}',
  '\\',
  '"',
  '\\"',
  '\\\\',
  '],[',
  ':',
  'é\u2028\u0000\n',
  '😀',
];

/** Texts of one character for each byte of UTF-8. */
const asBytes = (texts: fc.Arbitrary<string>): fc.Arbitrary<string> =>
  texts.map((text) => Buffer.from(text).toString('latin1'));

/** Writes a string as JSON; the bits select the characters that are escaped. */
function spell(text: string, bits: number): string {
  let spelled = '';
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    const must = unit < 32 || unit === 34 || unit === 92;
    // Both halves of a surrogate pair are written the same way.
    const may = ((bits >> (i % 5)) & 1) === 1 && (unit < 0xd800 || bits % 2 === 1);
    const pair = unit >= 0xd800 && unit < 0xe000;
    if (pair ? bits % 2 === 1 : must || may) {
      if (unit === 34 || unit === 92 || (unit === 47 && may)) spelled += `\\${text[i]}`;
      else spelled += `\\u${unit.toString(16).padStart(4, '0')}`;
    } else spelled += text[i];
  }
  return `"${spelled}"`;
}

const spelled = (texts: fc.Arbitrary<string>): fc.Arbitrary<string> =>
  fc
    .tuple(texts, fc.oneof({ weight: 3, arbitrary: fc.constant(0) }, fc.nat(31)))
    .map(([text, bits]) => spell(text, bits));

const STRING = spelled(
  fc.oneof(fc.constantFrom(...ADDRESSES), fc.constantFrom(...STRINGS), fc.string({ unit: 'grapheme' })),
);
const KEY = spelled(
  fc.oneof({ weight: 6, arbitrary: fc.constantFrom(...KEYS) }, fc.constantFrom(...LONG_KEYS), fc.string()),
);
const SCALAR = fc.constantFrom('0', '-1.5e+10', '1234567890123456789', 'true', 'false', 'null');

/** Objects with keys and texts of a kind; the weights are those of a text, an object and an array as a value. */
function objects(key: fc.Arbitrary<string>, text: fc.Arbitrary<string>, weights: number[]): fc.Arbitrary<string> {
  return fc.letrec<{ value: string; object: string; array: string }>((tie) => ({
    value: fc.oneof(
      { maxDepth: 4 },
      { weight: weights[0]!, arbitrary: text },
      SCALAR,
      { weight: weights[1]!, arbitrary: tie('object') },
      { weight: weights[2]!, arbitrary: tie('array') },
    ),
    object: fc
      .tuple(BLANK, fc.array(fc.tuple(BLANK, key, BLANK, BLANK, tie('value'), BLANK), { maxLength: 6 }))
      .map(([blank, members]) =>
        members.length === 0
          ? `{${blank}}`
          : `{${members.map(([a, name, b, c, value, d]) => `${a}${name}${b}:${c}${value}${d}`).join(',')}}`,
      ),
    array: fc
      .tuple(BLANK, fc.array(fc.tuple(BLANK, tie('value'), BLANK), { maxLength: 4 }))
      .map(([blank, items]) =>
        items.length === 0 ? `[${blank}]` : `[${items.map((item) => item.join('')).join(',')}]`,
      ),
  })).object;
}

/** A line that is a JSON object. */
export const OBJECT_LINE: fc.Arbitrary<string> = fc
  .tuple(BLANK, objects(KEY, STRING, [4, 2, 1]), BLANK)
  .map(([before, text, after]) => before + text + after);

/** Addresses in other text. */
const DECORATED = [
  '8.8.8.8:53',
  '[2a01:1234::1]:443',
  '8.8.8.8/8',
  'unknown, 10.0.0.1',
  ' 193.0.0.1 , 8.8.8.8',
  '10.0.0.1:',
];

/**
 * A line with a few keys over and over, in nested objects and arrays: what paths lead through. Each character is one byte.
 *
 * @param isDecorated whether addresses also are in other text
 */
export function fieldLines(isDecorated: boolean): fc.Arbitrary<string> {
  const key = spelled(fc.constantFrom('ip', 'client', 'a', 'geo', 'b'));
  const text = spelled(fc.constantFrom(...ADDRESSES, ...(isDecorated ? DECORATED : [])));
  return asBytes(objects(key, text, [3, 3, 3]));
}

/** A byte to insert; mostly one that has a meaning in JSON. */
const NASTY_BYTE = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom(...'{}[]:,"\\ \t\r\n\0\f\x1a') },
  fc.nat(255).map((byte) => String.fromCharCode(byte)),
);

/** A line with a few bytes inserted, removed or replaced. */
const broken = (lines: fc.Arbitrary<string>, mostChanges: number): fc.Arbitrary<string> =>
  fc
    .tuple(
      asBytes(lines),
      fc.array(fc.tuple(fc.nat(), fc.constantFrom('put', 'leave', 'replace'), NASTY_BYTE), {
        minLength: 1,
        maxLength: mostChanges,
      }),
    )
    .map(([line, changes]) =>
      changes.reduce((text, [place, change, byte]) => {
        const at = place % (text.length + 1);
        return text.slice(0, at) + (change === 'leave' ? '' : byte) + text.slice(change === 'put' ? at : at + 1);
      }, line),
    );

/** An object with changed bytes; it may still be valid. */
const BROKEN_LINE = broken(OBJECT_LINE, 3);

const FLAT_VALUE = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom(...ADDRESSES).map((text) => `"${text}"`) },
  { weight: 2, arbitrary: fc.nat(120).map((length) => `"${'x'.repeat(length)}"`) },
  STRING,
  SCALAR,
);
const FLAT_KEY = fc
  .oneof(
    { weight: 9, arbitrary: fc.constantFrom('ip', 'client', 'geo', 'a', 'xx', '', 'ix', 'c', 'geo2', 'x'.repeat(60)) },
    { weight: 1, arbitrary: fc.constantFrom('x'.repeat(61), 'x'.repeat(62), 'x'.repeat(63), 'x'.repeat(130)) },
  )
  .map((key) => `"${key}"`);

/** The tokens of a flat object: nothing nested and no blanks, as in most logs. */
const FLAT_TOKENS = fc
  .array(fc.tuple(fc.oneof({ weight: 9, arbitrary: FLAT_KEY }, KEY), FLAT_VALUE), { minLength: 1, maxLength: 8 })
  .map((members) => ['{', ...members.flatMap(([key, value]) => [',', key, ':', value]).slice(1), '}']);

const FLAT_LINE = FLAT_TOKENS.map((tokens) => tokens.join(''));

/** A flat object with a few tokens inserted, removed or replaced: `{"a"}`, `{1:2}`, `{"a":1:2}`. */
const MISPLACED_LINE = fc
  .tuple(
    FLAT_TOKENS,
    fc.array(fc.tuple(fc.nat(), fc.nat(2), fc.oneof(fc.constantFrom(...'{}[]:,'), FLAT_KEY, SCALAR)), {
      minLength: 1,
      maxLength: 2,
    }),
  )
  .map(([tokens, changes]) =>
    changes
      .reduce((rest, [place, removed, token]) => {
        const at = place % rest.length;
        return rest.toSpliced(at, removed, ...(removed === 2 ? [] : [token]));
      }, tokens)
      .join(''),
  );

/** Flat objects, a few of them changed in one place. Each character is one byte. */
export const FLAT_LINES: fc.Arbitrary<string[]> = fc.array(
  fc.oneof(
    { weight: 12, arbitrary: asBytes(FLAT_LINE) },
    { weight: 1, arbitrary: broken(FLAT_LINE, 1) },
    { weight: 1, arbitrary: asBytes(MISPLACED_LINE) },
  ),
  { minLength: 1, maxLength: 150, size: 'max' },
);

const ARBITRARY_LINE = fc.oneof(
  fc.constantFrom(
    '',
    ' ',
    '\t \r',
    '[]',
    '[{"ip":"8.8.8.8"}]',
    '"ip"',
    '5',
    'null',
    '{',
    '}',
    '{}{}',
    '{}x',
    '{"a":1},{"b":2}',
    '{"a":1},"b":2}',
    '{},"ip":1',
    '{{},"ip":',
    'x{}',
    ',',
    '"',
  ),
  fc.string({ unit: NASTY_BYTE, maxLength: 80 }),
);

/** A line: an object, a changed one, or arbitrary bytes. Each character is one byte. */
export const ANY_LINE: fc.Arbitrary<string> = fc.oneof(
  { weight: 4, arbitrary: asBytes(OBJECT_LINE) },
  { weight: 2, arbitrary: BROKEN_LINE },
  { weight: 1, arbitrary: ARBITRARY_LINE },
);

/** An input: lines that end with LF or CR LF, the last one with or without it, with or without a byte order mark. */
export const ANY_INPUT: fc.Arbitrary<Buffer> = fc
  .tuple(
    fc.array(fc.tuple(ANY_LINE, fc.constantFrom('\n', '\n', '\r\n')), { maxLength: 12 }),
    ANY_LINE,
    fc.constantFrom('', '', '\xef\xbb\xbf'),
  )
  .map(([lines, last, mark]) => Buffer.from(mark + lines.map((line) => line.join('')).join('') + last, 'latin1'));
