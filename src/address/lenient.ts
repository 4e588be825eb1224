/**
 * Finds the address in text that has more than an address, as logs do: a port, brackets, a prefix length, or a list such as
 * that of the header X-Forwarded-For.
 */
import { MAX_LENIENT_BYTES } from '../limits.js';
import { parseAddress, parseIPv4 } from './parse.js';

const MAX_PORT = 65_535;

/** Brackets, and what may come after them: a port. */
const BRACKETED = /^\[([^\]]*)\](?::(\d{1,5}))?$/;
/** Anything and a port or a prefix length. */
const SUFFIXED = /^(.*)([:/])(\d{1,5})$/s;
/** Blanks around an element of a list. */
const LIST_BLANKS = /^[ \t]+|[ \t]+$/g;

const words = new Uint32Array(4);

function isAddress(text: string): boolean {
  return parseAddress(text, words) !== 0;
}

/** Returns the address in one element of a list, or undefined. */
function addressIn(element: string): string | undefined {
  if (isAddress(element)) return element;
  const bracketed = BRACKETED.exec(element);
  if (bracketed !== null) {
    const [, address = '', port = '0'] = bracketed;
    return address.includes(':') && Number(port) <= MAX_PORT && isAddress(address) ? address : undefined;
  }
  const [, address = '', separator, digits = ''] = SUFFIXED.exec(element) ?? [];
  if (separator === ':') return parseIPv4(address) >= 0 && Number(digits) <= MAX_PORT ? address : undefined;
  const bits = address.includes(':') ? 128 : 32;
  return digits.length <= 3 && Number(digits) <= bits && isAddress(address) ? address : undefined;
}

/**
 * Returns the first address in a text: the text itself, `IPv4:port`, `[IPv6]`, `[IPv6]:port`, an address with a prefix length,
 * or the first element of a list with commas that is one of these. Elements may have spaces and tabs around them.
 *
 * @returns the address as it is in the text, or undefined if there is none or the text is longer than MAX_LENIENT_BYTES
 */
export function findAddress(text: string): string | undefined {
  // Half of a surrogate pair has no bytes in UTF-8, so the kernel does not look into such a text either.
  if (Buffer.byteLength(text) > MAX_LENIENT_BYTES || /\p{Surrogate}/u.test(text)) return undefined;
  for (const element of text.split(',')) {
    const address = addressIn(element.replace(LIST_BLANKS, ''));
    if (address !== undefined) return address;
  }
  return undefined;
}
