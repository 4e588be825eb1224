/** HTML as text that escapes what is put into it. */

/** HTML that needs no escaping. */
export class Html {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

const ENTITIES: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };

/** Returns text as HTML, for elements and quoted attributes. */
export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => ENTITIES[character]!);
}

/** What a template takes. */
export type Value = Html | readonly Html[] | string | number | bigint | undefined;

function htmlOf(value: Value): string {
  if (value === undefined) return '';
  if (value instanceof Html) return value.text;
  if (typeof value === 'object') return value.map(({ text }) => text).join('');
  return escapeHtml(String(value));
}

/** Builds HTML from a template; values that are not HTML themselves are escaped. */
export function html(strings: TemplateStringsArray, ...values: Value[]): Html {
  return new Html(strings.map((text, index) => (index === 0 ? text : htmlOf(values[index - 1]) + text)).join(''));
}
