/** How addresses are hidden in the output. */
import { crypto } from '../builtins.js';
import { misuse } from '../errors.js';
import { CIPHER_KEY_BYTES, type CipherName, checkCipherKey } from './address-cipher.js';

/** The ways to hide an address: without a trace, by zeros in its last bits, or encrypted. */
export const REDACTIONS = ['drop', 'truncate', 'ipcrypt', 'ipcrypt-pfx'] as const;

/** The prefix lengths that addresses are cut to by default. */
const DEFAULT_WIDTHS = [24, 48] as const;

/** The bytes of addresses and of words, which no delimiter may be: what replaces an address would be two cells. */
const ADDRESS_CHARACTER = /[\w.:[\]-]/;

/** How addresses are hidden. */
export interface Redaction {
  how: 'drop' | 'truncate' | CipherName;
  /** The prefix lengths of IPv4 and IPv6 addresses that stay, for `truncate`. */
  widths: readonly [v4: number, v6: number];
  /** For the ciphers. */
  key: Uint8Array | undefined;
  /** Whether all addresses of a record are hidden, not only those in its fields. */
  isOfAll: boolean;
  /** Whether the ciphers are undone. */
  isReverse: boolean;
}

/** What a caller asks for; the library's options and the flags have these names. */
export interface RedactionRequest {
  /**
   * Hides the addresses in the fields, in the output and in the rejects: `drop`, `truncate` (to a /24 or /48), `truncate:16,32`,
   * `ipcrypt` or `ipcrypt-pfx`.
   */
  redact?: string | undefined;
  /** The key of `ipcrypt`, 16 bytes, or of `ipcrypt-pfx`, 32 bytes. */
  redactKey?: Uint8Array | undefined;
  /** Hides all addresses in any value or text of a record. Default: false. */
  redactAll?: boolean | undefined;
  /** Undoes `ipcrypt` or `ipcrypt-pfx`. Default: false. */
  reverse?: boolean | undefined;
}

/**
 * Returns a new key, as hexadecimal digits.
 *
 * @param how the cipher that it is for; default `ipcrypt`
 * @throws AtlasError E_USAGE for another way to hide addresses, which has no key
 */
export function newRedactionKey(how = 'ipcrypt'): string {
  if (!Object.hasOwn(CIPHER_KEY_BYTES, how))
    throw misuse(`${JSON.stringify(how)} has no key; ipcrypt and ipcrypt-pfx do`);
  // Two equal halves do not occur.
  return crypto()
    .randomBytes(CIPHER_KEY_BYTES[how as CipherName])
    .toString('hex');
}

function parseWidths(text: string | undefined, name: string): readonly [number, number] {
  if (text === undefined) return DEFAULT_WIDTHS;
  const [, v4, v6] = /^(\d{1,2}),(\d{1,3})$/.exec(text) ?? [];
  if (v4 !== undefined && Number(v4) <= 32 && Number(v6) <= 128) return [Number(v4), Number(v6)];
  throw misuse(`${name} truncate:${text} has no prefix lengths of IPv4 and IPv6; write them as truncate:24,48`);
}

/**
 * Checks how addresses are to be hidden.
 *
 * @param delimiter of a table; @param add the members of the results
 * @param nameOf returns how messages call an option
 * @returns undefined if they are not
 * @throws AtlasError E_USAGE for values that are not allowed, and for options that do not go together
 */
export function parseRedaction(
  { redact, redactKey, redactAll = false, reverse = false }: RedactionRequest,
  delimiter: string | undefined,
  add: readonly string[],
  nameOf: (option: keyof RedactionRequest | 'add' | 'delimiter') => string,
): Redaction | undefined {
  const name = nameOf('redact');
  if (redact === undefined) {
    const other = redactKey !== undefined ? 'redactKey' : redactAll ? 'redactAll' : reverse ? 'reverse' : undefined;
    if (other !== undefined) throw misuse(`${nameOf(other)} requires ${name}`);
    return undefined;
  }
  if (typeof redact !== 'string') throw misuse(`${name} must be a string`);
  const [, how, widths] = /^(drop|ipcrypt|ipcrypt-pfx|truncate)(?::(.*))?$/s.exec(redact) ?? [];
  if (how === undefined || (widths !== undefined && how !== 'truncate')) {
    throw misuse(`${name} is ${JSON.stringify(redact)}; it can be ${REDACTIONS.join(', ')}, or truncate:16,32`);
  }
  if (typeof redactAll !== 'boolean') throw misuse(`${nameOf('redactAll')} must be true or false`);
  if (Object.hasOwn(CIPHER_KEY_BYTES, how)) {
    if (!(redactKey instanceof Uint8Array)) throw misuse(`${name} ${how} requires ${nameOf('redactKey')}`);
    checkCipherKey(how as CipherName, redactKey);
  } else {
    if (redactKey !== undefined) throw misuse(`${nameOf('redactKey')} goes with ${name} ipcrypt or ipcrypt-pfx only`);
    if (reverse) throw misuse(`${nameOf('reverse')} goes with ${name} ipcrypt or ipcrypt-pfx only`);
  }
  const shown = add.find((member) => member === 'address' || member === 'network');
  if (shown !== undefined) {
    throw misuse(`${name} and ${nameOf('add')} ${shown} exclude each other: the result would show what is hidden`);
  }
  if (delimiter !== undefined && ADDRESS_CHARACTER.test(delimiter)) {
    throw misuse(
      `${name} cannot be used with ${nameOf('delimiter')} ${JSON.stringify(delimiter)}, which addresses can have`,
    );
  }
  return {
    how: how as Redaction['how'],
    widths: parseWidths(widths, name),
    key: redactKey,
    isOfAll: redactAll,
    isReverse: reverse,
  };
}
