/** The formats `nginx` and `haproxy`: lines of a CIDR block and its country code, or AS number (`AS13335`). */
import { nestedLines } from './nested.js';
import { chosenCountries, chosenNetworks, exportedRanges, type Selection } from './ranges.js';

/**
 * Writes lines for a `geo` block of nginx, which uses the smallest block that matches, and an empty value if none does; or a map for
 * HAProxy's converter `map_ip`, which does the same. Blocks within blocks are less than half as many.
 *
 * @param lineEnd after each code
 */
export function* codeLines(selection: Selection & { title: string }, lineEnd: string): Generator<string | Uint8Array> {
  const networks = chosenNetworks(selection);
  const ends = chosenCountries(selection).map((country, record) => {
    const network = networks[record];
    const value = country?.code ?? (network === undefined ? '' : `AS${network.asn}`);
    return ` ${value}${lineEnd}`;
  });
  yield `# ${selection.title}\n`;
  for (const family of selection.families) yield* nestedLines(family, exportedRanges(selection, family), ends);
}
