// Which addresses are special-purpose, told by Node's own block lists: no source says anything about them.
import { readFileSync } from 'node:fs';
import { BlockList, isIPv4, SocketAddress } from 'node:net';

const rows = readFileSync(new URL('../data/reference/special-purpose.csv', import.meta.url), 'utf8')
  .split('\n')
  .filter((line) => /^[0-9a-f:.]+\/\d/.test(line))
  .map((line) => {
    const [prefix, , , layer] = line.split(',');
    const [network, length] = prefix.split('/');
    const family = isIPv4(network) ? 'ipv4' : 'ipv6';
    const block = new BlockList();
    block.addSubnet(network, Number(length), family);
    return { family, network, length: Number(length), block, isOver: layer === 'over' };
  })
  .sort((a, b) => b.length - a.length);

const canonical = (address) => new SocketAddress({ address, family: 'ipv6' }).address;

/** Returns the last address of a block of IPv6 whose length is a multiple of 16. */
function lastOf({ network, length }) {
  const groups = network.replace(/::$/, '').split(':');
  return canonical(Array.from({ length: 8 }, (_, i) => (i < length / 16 ? (groups[i] ?? '0') : 'ffff')).join(':'));
}

/**
 * Returns whether an address is in a block that comes before all sources. Of nested blocks, the smallest counts. A block whose
 * addresses embed others comes before rows of a source that are not inside it, but as wide.
 *
 * @param row first and last address of the source's row
 */
export function isSpecial(ip, { first, last } = {}) {
  const family = isIPv4(ip) ? 'ipv4' : 'ipv6';
  const found = rows.find((row) => row.family === family && row.block.check(ip, family));
  return found !== undefined && (found.isOver || (first === found.network && canonical(last) === lastOf(found)));
}
