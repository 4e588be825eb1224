/**
 * Formats of firewalls: the chosen countries together as sets of blocks, one for each family. Loading a newer file replaces the
 * addresses while rules use the set, where the program can do that in one step.
 */
import type { Family } from '../address/parse.js';
import { blockLines } from './lines.js';
import { exportedRanges, mergeNeighbors, type Selection } from './ranges.js';

/** A name of a set, one character shorter than the limit of nft and ipset: the digit of the family follows. */
export const SET_NAME = /^[A-Za-z][A-Za-z0-9_]{0,29}$/;

/** What is written around the blocks of a family, and what around each block. */
interface SetForm {
  /** The first line, with the title in a comment. */
  head(title: string): string;
  /** Before the blocks, also if there are none. */
  open(set: string, family: Family): string;
  /** Before and after each block. */
  line(set: string): [before: string, after: string];
  /** Around the blocks, if there are some. */
  around?: [before: (set: string) => string, after: string];
  close?(set: string): string;
  foot?: string;
}

/** Most blocks of a set of ipset. A set that exists can only be swapped with one that has the same limit, so it is always this. */
const IPSET_MAX = 2 ** 22;
const NFT_TABLE = 'inet ipatlas';
const INET = { 4: 'inet', 6: 'inet6' };
const comment = (title: string): string => `# ${title}\n`;

const FORMS = {
  /** One transaction: it creates the table and the sets if they are missing, empties the sets, and fills them. */
  nft: {
    head: (title) => `${comment(title)}add table ${NFT_TABLE}\n`,
    open: (set, family) =>
      `add set ${NFT_TABLE} ${set} { type ipv${family}_addr; flags interval; }\nflush set ${NFT_TABLE} ${set}\n`,
    line: () => ['', ',\n'],
    around: [(set) => `add element ${NFT_TABLE} ${set} {\n`, '}\n'],
  },
  /** For `ipset restore -exist`: it fills a new set, and swaps it with the one that rules use. */
  ipset: {
    head: comment,
    open: (set, family) => {
      const create = `hash:net family ${INET[family]} hashsize 4096 maxelem ${IPSET_MAX}\n`;
      return `create ${set} ${create}create ${set}+ ${create}flush ${set}+\n`;
    },
    line: (set) => [`add ${set}+ `, '\n'],
    close: (set) => `swap ${set} ${set}+\ndestroy ${set}+\n`,
  },
  /** An ipset of firewalld, of one family. */
  firewalld: {
    head: (title) => `<?xml version="1.0" encoding="utf-8"?>\n<!-- ${title.replaceAll('--', '- -')} -->\n`,
    open: (set, family) =>
      `<ipset type="hash:net">\n  <short>${set}</short>\n  <option name="family" value="${INET[family]}"/>\n` +
      `  <option name="maxelem" value="${IPSET_MAX}"/>\n`,
    line: () => ['  <entry>', '</entry>\n'],
    foot: '</ipset>\n',
  },
  /** The file of a table of pf, which has both families. */
  pf: { head: comment, open: () => '', line: () => ['', '\n'] },
  /** A script of RouterOS: it removes the entries of the list, and adds the new ones. */
  mikrotik: {
    head: comment,
    open: (set, family) =>
      `/${family === 4 ? 'ip' : 'ipv6'} firewall address-list\nremove [find where list="${set}"]\n`,
    line: (set) => [`add list="${set}" address=`, '\n'],
  },
} satisfies Record<string, SetForm>;

/** The formats of this file. */
export type SetFormat = keyof typeof FORMS;

/**
 * Writes the sets of a format.
 *
 * @param title for a comment
 * @param setName name of the sets without the digit of the family, `4` or `6`
 */
export function* setFile(format: SetFormat, selection: Selection, title: string, setName: string): Generator<string> {
  const form: SetForm = FORMS[format];
  yield form.head(title);
  for (const family of selection.families) {
    const set = `${setName}${family}`;
    yield form.open(set, family);
    // A set does not distinguish countries, so adjacent ranges of two countries are joined.
    const ranges = mergeNeighbors(exportedRanges(selection, family), () => true);
    const [before, after] = form.line(set);
    const ends = selection.file.records.map(() => after);
    let isEmpty = true;
    for (const lines of blockLines(family, ranges, ends, before)) {
      if (isEmpty) yield form.around?.[0](set) ?? '';
      isEmpty = false;
      yield lines;
    }
    if (!isEmpty) yield form.around?.[1] ?? '';
    yield form.close?.(set) ?? '';
  }
  yield form.foot ?? '';
}
