/** Parses the directives that are headers: those of W3C Extended Log Format, and of Zeek. The page has it, too. */

/** They may have a byte order mark before them, here as a character or as three of Latin 1: files were joined. */
const W3C_FIELDS = /^(?:\xef\xbb\xbf|\ufeff)?#Fields:/;
const ZEEK_SEPARATOR = /^(?:\xef\xbb\xbf|\ufeff)?#separator (.*)$/;

/** Returns what Zeek's directive `#separator` says, in which bytes are written as `\x09`; undefined for another line. */
export function separatorOf(line: string): string | undefined {
  return ZEEK_SEPARATOR.exec(line)?.[1]?.replaceAll(/\\x([0-9a-f]{2})/gi, (_, digits: string) =>
    String.fromCharCode(Number.parseInt(digits, 16)),
  );
}

/** Returns the columns that a line names; undefined if it is not a header. @param separator for Zeek, what is between them */
export function columnsOf(kind: 'w3c' | 'zeek', line: string, separator: string): string[] | undefined {
  if (kind === 'w3c') return W3C_FIELDS.test(line) ? (line.replace(W3C_FIELDS, '').match(/[^ \t]+/g) ?? []) : undefined;
  const [name, ...columns] = line.split(separator);
  return name === '#fields' && columns.length > 0 ? columns : undefined;
}
