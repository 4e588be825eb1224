/** Finds the addresses in texts of the beginning of an input, whose format is not known yet, with the readers of the kernel. */
import { isPublicAddress, parseAddress } from '../address/parse.js';
import * as abi from './kernel/abi.js';
import { AddressLocator } from './locate.js';
import { parseEnrichOptions, type RequestedOptions } from './options.js';
import { publicRanges } from './public-ranges.js';

/** Longest text in bytes; a longer one has no address. */
const MAX_TEXT_BYTES = 1_048_576;

/** An address in a text, and whether what precedes it says that it is the client's. */
interface FoundAddress {
  text: string;
  isClient: boolean;
}

/** Returns whether a text may have an address: it has three dots, or seven colons, or two in a row. */
function mayHaveAddress(text: string): boolean {
  return text.includes('::') || text.split('.', 4).length === 4 || text.split(':', 8).length === 8;
}

/** Returns a function that returns the addresses of each of some texts. The kernel is loaded when the first one may have some. */
function finder(requested: RequestedOptions): (texts: readonly string[]) => FoundAddress[][] {
  let locator: AddressLocator | undefined;
  let found = new Map<number, FoundAddress[]>();
  return (texts) => {
    const possible = texts.filter(mayHaveAddress);
    if (possible.length === 0) return texts.map(() => []);
    locator ??= new AddressLocator(
      publicRanges(),
      parseEnrichOptions(requested, (name) => name),
      (records, bytes, offset) => {
        for (const { line, addresses } of records) {
          found.set(
            line - 1,
            addresses.map(({ from, to, role }) => ({
              text: bytes.toString('utf8', from - offset, to - offset),
              isClient: role <= abi.ROLE_CLIENT,
            })),
          );
        }
      },
      { chunkBytes: 65_536, maxLineBytes: MAX_TEXT_BYTES },
    );
    found = new Map();
    locator.start();
    // A line break in a text is no part of an address, nor is the character in its place.
    locator.write(Buffer.from(possible.map((text) => `${text.replaceAll(/[\r\n]/g, '\x01')}\n`).join('')));
    locator.end();
    let place = 0;
    return texts.map((text) => (mayHaveAddress(text) ? found.get(place++) : undefined) ?? []);
  };
}

/** Finds the addresses that each text has anywhere, as with `--format text`. */
export const findIn = finder({ format: 'text' });

/** Returns them as texts. */
export function addressesIn(texts: readonly string[]): string[][] {
  return findIn(texts).map((found) => found.map(({ text }) => text));
}

const elementsOf = finder({ format: 'list', lenient: true });

/** Returns the address that each text is, as with `--lenient`; undefined for those that are none. */
export function addressesOf(texts: readonly string[]): (string | undefined)[] {
  const isAddress = (text: string): boolean => parseAddress(text, new Uint32Array(4)) !== 0;
  const elements = elementsOf(texts.map((text) => (isAddress(text) ? '' : text)));
  return texts.map((text, at) => (isAddress(text) ? text : elements[at]![0]?.text));
}

/** Returns the flag for the public addresses of lines, whose addresses are given, if they have some. */
export function publicPick(lines: readonly string[][]): string | undefined {
  const own = lines.filter((addresses) => addresses.some(isPublicAddress));
  if (own.length === 0) return undefined;
  return 2 * own.filter((addresses) => isPublicAddress(addresses.at(-1)!)).length >= own.length
    ? '--pick last'
    : '--pick first';
}
