/** The answer for one address as HTML: the server renders the first one, the page's script the others. */
import { type Html, html } from '../html.js';
import type { Period, Result } from './results.js';

/** Characters of a country's name above which it is written smaller. */
const LONG_NAME = 24;

/**
 * Returns the large answer.
 *
 * @param whose address it is, at the beginning of a sentence
 * @param day of the answer; empty for now
 * @param hasHistory whether the server may know earlier answers
 * @param lang the language of the country's name
 */
export function answerHtml(
  result: Result,
  { whose = 'This address', day = '', hasHistory = false, lang = 'en' },
): Html {
  const { ip, country, country_code, is_eu, asn, as_name, network } = result;
  const subject = day === '' ? whose : `On ${day}, this address`;
  const kind = kindText(result);
  const verb = day === '' ? 'is' : 'was';
  const union = is_eu
    ? html`<p class="union member">in the European Union</p>`
    : html`<p class="union">not in the European Union</p>`;
  return html`<p class="eyebrow">${country === null ? subject : `${subject} ${verb} in`}</p>
<p class="country${country !== null && country.length > LONG_NAME ? ' long' : ''}">${country === null ? 'No country' : nameHtml(country, lang)}</p>
${country === null ? html`<p class="union">private, reserved or not allocated</p>` : union}
<dl>
<dt>Address</dt><dd><code id="answer-ip">${ip}</code> <button type="button" class="copy script-only" data-copy="answer-ip">copy<span class="only-spoken"> the address</span></button></dd>
${country_code === null ? undefined : html`<dt>Country code</dt><dd><code>${country_code}</code></dd>`}
${network == null ? undefined : html`<dt>Network</dt><dd><code>${network}</code></dd>`}
${kind === '' ? undefined : html`<dt>Kind</dt><dd>${kind}</dd>`}
${asn == null ? undefined : html`<dt>Announced by</dt><dd><code>AS${asn}</code> ${as_name ?? ''}</dd>`}
${hasHistory ? html`<div class="history script-only"><dt>History</dt><dd><button type="button" class="link" data-history="${ip}">show</button></dd></div>` : undefined}
</dl>`;
}

/** Returns what is known of the kind of network; empty if it is nothing special, or not known. */
function kindText({ anycast, kind, operator }: Result): string {
  const kinds: Record<string, string> = {
    cloud: `cloud (${operator})`,
    relay: `relay (${operator})`,
    tor: 'exit of Tor',
  };
  return [kinds[kind ?? ''] ?? '', anycast === true ? 'anycast: at many places' : '']
    .filter((text) => text !== '')
    .join(', ');
}

/** Returns the name of a country. Texts around it have another language, which may be written in the other direction. */
function nameHtml(name: string, lang: string): Html {
  return lang === 'en' ? html`${name}` : html`<bdi lang="${lang}">${name}</bdi>`;
}

/** Returns the periods of an address, the latest first. @param lang the language of the countries' names */
export function historyHtml(periods: readonly Period[], lang: string): Html {
  const rows = periods.toReversed().map(({ from, to, error, country, is_eu }) => {
    const days = to === null ? html`since ${from}` : from === to ? from : html`${from} to ${to}`;
    return html`<li><span>${days}</span> <b>${country == null ? (error ?? 'no country') : nameHtml(country, lang)}</b>${is_eu ? ', in the Union' : ''}</li>`;
  });
  return html`<ol tabindex="0" aria-label="Periods, the latest first">${rows.length === 0 ? html`<li>No history is kept here.</li>` : rows}</ol>`;
}

/** What the answer shows besides the country, if the release has networks: the value of the query parameter `include`. */
export const INCLUDED = 'asn,as_name,network,anycast,kind,operator';

/** What is wrong, and what to do. */
export type Notice = readonly [text: string, hint: string];

export const INVALID_ADDRESS: Notice = [
  'Not an IP address',
  'Write an IPv4 address such as 8.8.8.8, or an IPv6 address such as 2001:4860:4860::8888, without a port or a mask.',
];
export const RATE_USED_UP: Notice = ['Too many lookups', 'Try again in a minute.'];
export const NO_DATABASE: Notice = [
  'No database yet',
  'The operator of this server has not built one. Try again later.',
];

/** Returns what is shown instead of an answer, such as a problem. @param hint what to do */
export function noticeHtml(eyebrow: string, [text, hint]: Notice): Html {
  return html`<p class="eyebrow asked">${eyebrow}</p>
<p class="country notice">${text}</p>
<p class="hint">${hint}</p>`;
}
