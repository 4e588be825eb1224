/** The answer for one address as HTML: the server renders the first one, the page's script the others. */
import { type Html, html } from '../html.js';
import type { Result } from './results.js';

/** Returns the large answer. @param isOwn whether it is the visitor's own address @param day of the answer; empty for now */
export function answerHtml(result: Result, isOwn: boolean, day = ''): Html {
  const { ip, country, country_code, is_eu, asn, as_name, network } = result;
  const whose = day !== '' ? `On ${day}, this address` : isOwn ? 'Your address' : 'This address';
  const verb = day === '' ? 'is' : 'was';
  const union = is_eu
    ? html`<p class="union member">in the European Union</p>`
    : html`<p class="union">not in the European Union</p>`;
  return html`<p class="eyebrow">${country === null ? whose : `${whose} ${verb} in`}</p>
<p class="country">${country ?? 'No country'}</p>
${country === null ? html`<p class="union">private, reserved or not allocated</p>` : union}
<dl>
<dt>Address</dt><dd><code id="answer-ip">${ip}</code> <button type="button" class="copy script-only" data-copy="answer-ip">copy<span class="only-spoken"> the address</span></button></dd>
${country_code === null ? undefined : html`<dt>Country code</dt><dd><code>${country_code}</code></dd>`}
${network == null ? undefined : html`<dt>Network</dt><dd><code>${network}</code></dd>`}
${asn == null ? undefined : html`<dt>Announced by</dt><dd><code>AS${asn}</code> ${as_name ?? ''}</dd>`}
</dl>`;
}

/** What the answer shows besides the country, if the release has networks: the value of the query parameter `include`. */
export const INCLUDED = 'asn,as_name,network';

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
