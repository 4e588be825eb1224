/** Addresses in other text for property tests, see lenient-twin.ts: rightly and wrongly written. */
import fc from 'fast-check';

const ELEMENT = fc.oneof(
  fc.constantFrom('8.8.8.8', '10.0.0.1', '2a00::1', '::ffff:8.8.8.8', '1:2:3:4:5:6:7:8', 'unknown', '', '01.2.3.4'),
  fc.string({ unit: fc.constantFrom(...'0189a:.[]/ ,\t%;='), maxLength: 30 }),
);

/** An address, or something like it, with brackets, a port or a prefix length. */
const DECORATED = fc
  .tuple(
    fc.constantFrom('', '', '', 'for=', 'by=8.8.8.8; For="', ';', ' for='),
    fc.constantFrom('', '', '[', ' ', '\t'),
    ELEMENT,
    fc.constantFrom('', '', '', '%eth0', '%', '%25a.b-_', '%:'),
    fc.constantFrom('', '', ']', ']:', ']/', ':', '/', ' '),
    fc.constantFrom('', '0', '8', '32', '33', '128', '129', '0443', '65535', '65536', '123456', 'x'),
    fc.constantFrom('', '', ' ', '\t', '"', ';proto=http'),
  )
  .map((parts) => parts.join(''));

/** A list of such elements with commas. */
export const DECORATED_LIST: fc.Arbitrary<string> = fc
  .array(DECORATED, { minLength: 1, maxLength: 4 })
  .map((elements) => elements.join(','));

/** Texts that are nearly addresses. */
export const NOT_ADDRESSES = [
  ...['', ' ', '.', ':', ':::', '::1 ', ' ::1', '1', '1.2.3', '1.2.3.', '.1.2.3', '1.2.3.4.5', '1.2.3.4.', '1..2.3'],
  ...['01.2.3.4', '1.2.3.04', '00.0.0.0', '256.1.1.1', '1.2.3.999', '1.2.3.-4', '1.2.3.4\n', '１.2.3.4', '0x1.2.3.4'],
  ...[
    '1:2:3:4:5:6:7',
    '1:2:3:4:5:6:7:8:9',
    '1::2::3',
    '1:2:3:4:5:6:7:8::',
    '::1:2:3:4:5:6:7:8',
    '12345::',
    '::g',
    ':1::',
  ],
  ...['1:2:3:4:5:6:7:', ':1:2:3:4:5:6:7', '1:2:3:4:5:6:7:1.2.3.4', '::1.2.3', '::1.2.3.4:1', '1.2.3.4::', '::01.2.3.4'],
  ...['fe80::1%eth0', '[::1]', '::1/128', '1.2.3.4/32', '1.2.3.4:80', '::ffff:1.2.3.256', '::12345.1.1.1', 'localhost'],
  `${'0'.repeat(60)}::1`,
  ...['1:', ':1', '1:2', '1::2::3', '1:::2', '::1:', ':1::', '0', '....', '1.2.3./', '1000.2.3.4', 'a.2.3.4'],
  ...['1:2:3:4:5:6:7:8 ', 'é::', '1'.repeat(46), ':'.repeat(46), '1:'.repeat(30), '8.8.8.8\0', '\u0000::1'],
];

/** Addresses in unusual forms. */
export const ADDRESSES = [
  ...['::', '::1', '1::', '1::2', '1.2.3.4', '255.255.255.255', '0.0.0.0', '1:2:3:4:5:6:7:8', '1:2:3:4:5:6:7::'],
  ...['::2:3:4:5:6:7:8', '1:2:3:4::5:6:7', '::ffff:1.2.3.4', '::1.2.3.4', '1:2:3:4:5:6:1.2.3.4', '::FFFF:808:808'],
  ...['0:0:0:0:0:ffff:0808:0808', '2002:808:808::', '64:ff9b::8.8.8.8', '64:ff9b::808:808', '2001::f7f7:f7f7'],
  ...['64:ff9b:1::8.8.8.8', '2001:0:0:0:0:0:f7f7:f7f7', '0000:0000:0000:0000:0000:0000:0000:0000'],
  ...['ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff', 'ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255'],
];
