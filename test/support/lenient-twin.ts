/**
 * Finds the address in text that has more than an address, as logs do: a port, brackets, a prefix length, a zone, a name, or a list
 * such as that of the headers X-Forwarded-For and Forwarded.
 */

import { parseAddress, parseIPv4 } from '../../src/address/parse.js';
import { MAX_LENIENT_BYTES } from '../../src/limits.js';

const MAX_PORT = 65_535;

/** In a header Forwarded, the node after `for=` (RFC 7239, section 4): up to the next semicolon. */
const FORWARDED = /(?:^|;)[ \t]*for=([^;]*)/i;
/** Text in quotes. */
const QUOTED = /^"(.*)"$/s;
/** Brackets, and what may come after them: a port or a prefix length. */
const BRACKETED = /^\[([^\]]*)\](?:([:/])(\d{1,5}))?$/;
/** Anything and a port or a prefix length. */
const SUFFIXED = /^(.*)([:/])(\d{1,5})$/s;
/** A port and, after a colon, the name of an interface, as SonicWall writes them. */
const INTERFACE = /^([^:]*):(\d{0,5}):[a-z]/is;
/** The zone of an IPv6 address (RFC 4007, section 11), with its percent sign. */
const ZONE = /^%[\w.-]+$/;
/** A name, which may be empty, and a slash before an address, as Java and Squid write them: `host/192.0.2.1:80`, `HIER_DIRECT/192.0.2.1`. */
const NAMED = /^(?:[a-z][\w.-]*)?\/(.*)$/is;
const words = new Uint32Array(4);
const encoder = new TextEncoder();

function isAddress(text: string): boolean {
  return parseAddress(text, words) !== 0;
}

/** Returns the text, or the text without a zone, if it is an address, or undefined. */
function zoned(text: string): string | undefined {
  const at = text.indexOf('%');
  const hasZone = at > text.indexOf(':') && text.slice(0, at).includes(':') && ZONE.test(text.slice(at));
  const address = hasZone ? text.slice(0, at) : text;
  return isAddress(address) ? address : undefined;
}

function isPrefixLength(digits: string, isIPv6: boolean): boolean {
  return digits.length <= 3 && Number(digits) <= (isIPv6 ? 128 : 32);
}

/** Returns the address with brackets, a zone, a port, a port and an interface, or a prefix length, or undefined. */
function addressOfNode(node: string): string | undefined {
  const bracketed = BRACKETED.exec(node);
  if (bracketed !== null) {
    const [, address = '', separator, digits = ''] = bracketed;
    const isValid = separator === '/' ? isPrefixLength(digits, address.includes(':')) : Number(digits) <= MAX_PORT;
    return isValid ? zoned(address) : undefined;
  }
  const address = zoned(node);
  if (address !== undefined) return address;
  const [, host = '', port = ''] = INTERFACE.exec(node) ?? [];
  if (parseIPv4(host) >= 0 && Number(port) <= MAX_PORT) return host;
  const [, before = '', separator, digits = ''] = SUFFIXED.exec(node) ?? [];
  if (separator === ':') return parseIPv4(before) >= 0 && Number(digits) <= MAX_PORT ? before : undefined;
  return isPrefixLength(digits, before.includes(':')) ? zoned(before) : undefined;
}

/** Returns whether a space or a tab is at a place. */
function isBlankAt(text: string, at: number): boolean {
  return text[at] === ' ' || text[at] === '\t';
}

/** Returns a text without the spaces and tabs at its end. */
function withoutEnd(text: string): string {
  let to = text.length;
  while (to > 0 && isBlankAt(text, to - 1)) to--;
  return text.slice(0, to);
}

/** Returns a text without the spaces and tabs around it. */
function withoutBlanks(text: string): string {
  let from = 0;
  while (from < text.length && isBlankAt(text, from)) from++;
  return withoutEnd(text.slice(from));
}

/** Returns the address in one element of a list, or undefined. */
function addressIn(element: string): string | undefined {
  if (isAddress(element)) return element;
  const value = FORWARDED.exec(element)?.[1];
  const named = withoutEnd(value ?? element);
  const node = value === undefined ? element : (QUOTED.exec(named)?.[1] ?? named);
  return addressOfNode(node) ?? addressOfNode(NAMED.exec(node)?.[1] ?? '');
}

/**
 * Returns the first address in a text: the text itself; an address in brackets, an IPv6 address with a zone, either of them, or
 * any other, with a prefix length; an address in brackets or an IPv4 address with a port, to which an interface may be added; one of these after a name and a slash, or after
 * `for=`, as in the header Forwarded; or the first element of a list with commas that is one of these. Elements may have spaces and tabs around them.
 *
 * @returns the address as it is in the text, or undefined if there is none or the text is longer than MAX_LENIENT_BYTES
 */
export function findAddress(text: string): string | undefined {
  // Half of a surrogate pair has no bytes in UTF-8, so the kernel does not look into such a text either.
  if (encoder.encode(text).length > MAX_LENIENT_BYTES || /\p{Surrogate}/u.test(text)) return undefined;
  for (const element of text.split(',')) {
    const address = addressIn(withoutBlanks(element));
    if (address !== undefined) return address;
  }
  return undefined;
}
