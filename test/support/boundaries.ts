/** The first and last address of every range of a release, with its result by the SQLite mirror: an oracle without our searches. */
import { join } from 'node:path';
import { EMBEDDED_SCHEMES, type EmbeddedScheme } from '../../src/address/embedded.js';
import { formatIPv4, formatIPv6 } from '../../src/address/format.js';
import { MIRROR_FILE } from '../../src/database/release.js';
import { openMirror } from '../../src/mirror/reader.js';

interface Row<Address> {
  first: Address;
  last: Address;
  /** Country code or reason. */
  result: string;
}

function textIPv6(bytes: Buffer): string {
  return formatIPv6(bytes.readUInt32BE(0), bytes.readUInt32BE(4), bytes.readUInt32BE(8), bytes.readUInt32BE(12));
}

/** Returns addresses that embed an IPv4 address: IPv4-mapped, 6to4, NAT64 and Teredo. */
export function embeddings(address: number): string[] {
  const [high, low] = [address >>> 16, address & 0xffff].map((half) => half.toString(16));
  const [invertedHigh, invertedLow] = [~address >>> 16, ~address & 0xffff].map((half) => half.toString(16));
  return [
    `::ffff:${formatIPv4(address)}`,
    `2002:${high}:${low}::1`,
    `64:ff9b::${high}:${low}`,
    `2001:0:1::${invertedHigh}:${invertedLow}`,
  ];
}

/**
 * Lists addresses and their results: `8.8.8.0 US`, `10.0.0.0 private`.
 *
 * @param dir the release directory
 * @param every which ranges: 1 for all of them, 10 for every tenth
 */
export function* boundaries(dir: string, every = 1): Generator<string> {
  const mirror = openMirror(join(dir, MIRROR_FILE));
  try {
    const rows = <Address>(family: 4 | 6) =>
      mirror
        .prepare<[], Row<Address>>(
          `SELECT first, last, coalesce(country_code, reason) AS result FROM ipv${family}_range ORDER BY first`,
        )
        .all()
        .filter((_, index) => index % every === 0);
    for (const [index, { first, last, result }] of rows<number>(4).entries()) {
      yield `${formatIPv4(first)} ${result}`;
      yield `${formatIPv4(last)} ${result}`;
      if (index % 50 === 0) for (const text of embeddings(last)) yield `${text} ${result}`;
    }
    for (const { first, last, result } of rows<Buffer>(6)) {
      if (EMBEDDED_SCHEMES.includes(result as EmbeddedScheme)) continue; // the IPv4 address decides, see above
      yield `${textIPv6(first)} ${result}`;
      yield `${textIPv6(last)} ${result}`;
    }
  } finally {
    mirror.close();
  }
}
