// Which addresses are special-purpose, told by Node's own block lists: no source says anything about them.
import { readFileSync } from 'node:fs';
import { BlockList, isIPv4 } from 'node:net';

const rows = readFileSync(new URL('../data/reference/special-purpose.csv', import.meta.url), 'utf8')
  .split('\n')
  .filter((line) => /^[0-9a-f:.]+\/\d/.test(line))
  .map((line) => {
    const [prefix, , , layer] = line.split(',');
    const [network, length] = prefix.split('/');
    const family = isIPv4(network) ? 'ipv4' : 'ipv6';
    const block = new BlockList();
    block.addSubnet(network, Number(length), family);
    return { family, length: Number(length), block, isOver: layer === 'over' };
  })
  .sort((a, b) => b.length - a.length);

/** Returns whether an address is in a block that comes before all sources. Of nested blocks, the smallest counts. */
export function isSpecial(ip) {
  const family = isIPv4(ip) ? 'ipv4' : 'ipv6';
  return rows.find((row) => row.family === family && row.block.check(ip, family))?.isOver === true;
}
