/** Finds the addresses in a line of any kind. The rules are those of `ipatlas enrich --format text`; see text.ts of the kernel. */
import { parseAddress, parseIPv4 } from './parse.js';

/** What words are made of, by character code. */
const IN_WORD = new Uint8Array(65_536);
for (const character of '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_.:-')
  IN_WORD[character.charCodeAt(0)] = 1;
const DOT = 46;
const COLON = 58;
const SHORTEST_IPV4 = 7;
/** Dots of an IPv4 address; colons of an IPv6 address that has neither dots nor two in a row. */
const IPV4_DOTS = 3;
const IPV6_COLONS = 7;

/** Punctuation at the end of a word. */
const PUNCTUATION = /(?<=[^:]):$/;
/** A port after a colon; or after a dot, where one digit could be the end of a version. */
const PORT = /(?::\d{1,5}|\.\d{2,5})$/;
/** A name before an address, with its colon: it has a letter that no address has, or is empty. */
const NAME = /(?=[^:]*[^:.\da-f])[^:]+:|:(?!:)/iy;
/** The end of an escape sequence that sets a color (ECMA-48, 8.3.117). */
const COLOR = /\d*m/iy;
/** Text before a version. */
const BEFORE_VERSION = /~$|version[ :="]{1,3}$/i;
/** Text after an address that has a port: a colon and a digit, or a slash and a number that ends the text in slashes. */
const BEFORE_PORT = /^(?::\d|\/\d{1,5}(?![\w.:/-]))/;
/** Characters around an address that may be part of {@link BEFORE_VERSION} or {@link BEFORE_PORT}. */
const CONTEXT = 10;

const words = new Uint32Array(4);

/** Returns the address that a text is, alone or with a port. */
function withoutPort(text: string): string | undefined {
  return [text, text.replace(PORT, '')].find((one) => parseAddress(one, words) !== 0 && /\d/.test(one));
}

/** Returns where the address in a word begins without names, if it may be one. */
function afterNames(word: string): number {
  NAME.lastIndex = 0;
  let at = 0;
  while (NAME.test(word)) at = NAME.lastIndex;
  return at;
}

/** Returns whether an IPv4 address in a line counts. @param word the beginning of its word */
function isTaken(line: string, word: number, from: number, to: number): boolean {
  if (BEFORE_VERSION.test(line.slice(Math.max(0, from - CONTEXT), from))) return false;
  const [before, slash] = [line[word - 2], line[word - 1]];
  if (before === undefined || slash !== '/' || IN_WORD[before.charCodeAt(0)] !== 1) return true;
  return BEFORE_PORT.test(line.slice(to, to + CONTEXT)) || (/\d/.test(before) && line[to] !== '/');
}

/** Returns where a word begins without the end of an escape sequence that sets a color: `[1;31m`. */
function afterColor(line: string, word: number): number {
  COLOR.lastIndex = word;
  if (!COLOR.test(line)) return word;
  let from = word;
  while (/[\d;]/.test(line[from - 1] ?? '')) from--;
  return line[from - 1] === '[' ? COLOR.lastIndex : word;
}

/** Returns the address in a word of a line. */
function addressInWord(line: string, wordStart: number, end: number): string | undefined {
  const start = afterColor(line, wordStart);
  let to = end;
  while (to > start && (line[to - 1] === '.' || line[to - 1] === '-')) to--;
  const word = line.slice(start, to).replace(PUNCTUATION, '');
  let from = 0;
  let address = withoutPort(word);
  if (address === undefined) {
    from = afterNames(word);
    if (from > 0) address = withoutPort(word.slice(from));
  }
  // Between two colons.
  for (let next = 0; address === undefined && next < word.length; next++) {
    from = next;
    next = word.indexOf(':', from);
    if (next < 0) next = word.length;
    if (next - from >= SHORTEST_IPV4) address = withoutPort(word.slice(from, next));
  }
  // The first one of a range; one with the name of a port, as tcpdump writes it.
  if (address === undefined) {
    from = 0;
    const dash = word.indexOf('-');
    const isRange = dash > 0 && parseIPv4(word.slice(dash + 1)) >= 0;
    const isBesideArrow = line.startsWith(' > ', end) || (start > 2 && line.startsWith('> ', start - 2));
    const whole = isRange ? word.slice(0, dash) : isBesideArrow ? word.slice(0, word.lastIndexOf('.')) : '';
    if (parseAddress(whole, words) !== 0 && /\d/.test(whole)) address = whole;
  }
  if (address === undefined) return undefined;
  const isIPv4 = parseAddress(address, words) === 4;
  const at = start + from;
  return isIPv4 && !isTaken(line, start, at, at + address.length) ? undefined : address;
}

/** Returns the addresses in a line, and where the word of each begins. */
export function findAddresses(text: string): { address: string; at: number }[] {
  const found: { address: string; at: number }[] = [];
  for (let at = 0; at < text.length; at++) {
    const start = at;
    let dots = 0;
    let colons = 0;
    let hasPair = false;
    for (; at < text.length; at++) {
      const code = text.charCodeAt(at);
      if (IN_WORD[code] !== 1) break;
      if (code === DOT) dots++;
      else if (code === COLON) {
        colons++;
        hasPair ||= at > start && text.charCodeAt(at - 1) === COLON;
      }
    }
    if (dots < IPV4_DOTS && colons < IPV6_COLONS && !hasPair) continue;
    const address = addressInWord(text, start, at);
    if (address !== undefined) found.push({ address, at: start });
  }
  return found;
}
