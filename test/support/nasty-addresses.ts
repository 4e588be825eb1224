/** Addresses in other text for property tests, see src/address/lenient.ts: rightly and wrongly written. */
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
