/** The formats `nginx` and `haproxy`: a CIDR block and its country code a line, as these two include them. */
import { blockLines } from './lines.js';
import { chosenCountries, exportedRanges, type Selection } from './ranges.js';

function* codeLines(selection: Selection, title: string, lineEnd: string): Generator<string> {
  const ends = chosenCountries(selection).map((country) => (country === undefined ? '' : ` ${country.code}${lineEnd}`));
  yield `# ${title}\n`;
  for (const family of selection.families) yield* blockLines(family, exportedRanges(selection, family), ends);
}

/** Lines for the inside of nginx's `geo` block. It picks the narrowest block; where none fits, its value is empty. */
export function nginx(selection: Selection, title: string): Generator<string> {
  return codeLines(selection, title, ';\n');
}

/** A map for HAProxy's converter `map_ip`. */
export function haproxy(selection: Selection, title: string): Generator<string> {
  return codeLines(selection, title, '\n');
}
