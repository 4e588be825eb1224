/** Reads JSON of which only the beginning may have come, or of which several values are one after the other. Each character is read once. */

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Returns the value of a JSON text; undefined if it is none. */
export function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Returns whether an odd number of backslashes is before a quote. */
function isEscaped(text: string, quote: number): boolean {
  let at = quote;
  while (text[at - 1] === '\\') at--;
  return (quote - at) % 2 === 1;
}

/** Calls a function for each bracket, brace and comma outside of strings, until it returns true. */
function walk(text: string, visit: (token: string, at: number) => boolean): void {
  const tokens = /["[\]{},]/g;
  for (let found = tokens.exec(text); found !== null; found = tokens.exec(text)) {
    if (found[0] !== '"') {
      if (visit(found[0], found.index)) return;
      continue;
    }
    let end = text.indexOf('"', found.index + 1);
    while (end > 0 && isEscaped(text, end)) end = text.indexOf('"', end + 1);
    tokens.lastIndex = end < 0 ? text.length : end + 1;
  }
}

/**
 * Returns the objects and arrays at the top of a text, with white space, commas or record separators (RFC 7464) between them; none if there is
 * other text.
 */
export function topValues(text: string): unknown[] {
  const values: unknown[] = [];
  let depth = 0;
  let start = 0;
  let isOther = false;
  walk(text, (token, at) => {
    if (token === '[' || token === '{') {
      if (depth++ > 0) return false;
      // biome-ignore lint/suspicious/noControlCharactersInRegex: the separator of RFC 7464
      isOther = /[^\s\x1e,]/.test(text.slice(start, at));
      start = at;
    } else if (token !== ',' && --depth === 0) {
      const value = jsonOf(text.slice(start, at + 1));
      isOther = value === undefined;
      if (!isOther) values.push(value);
      start = at + 1;
    }
    return isOther || depth < 0;
  });
  return isOther ? [] : values;
}

/** Returns the beginning of a value up to the last complete member or element of what is open, with what closes it. */
export function cutJson(text: string): string {
  const open: { closing: string; comma: number }[] = [];
  walk(text, (token, at) => {
    if (token === ',') {
      const last = open.at(-1);
      if (last !== undefined) last.comma = at;
    } else if (token === '[' || token === '{') open.push({ closing: token === '[' ? ']' : '}', comma: -1 });
    else open.pop();
    return open.length === 0;
  });
  let inner = open.length - 1;
  while (inner >= 0 && open[inner]!.comma < 0) inner--;
  if (inner < 0) return '';
  const closings = open.slice(0, inner + 1).map(({ closing }) => closing);
  return text.slice(0, open[inner]!.comma) + closings.reverse().join('');
}
