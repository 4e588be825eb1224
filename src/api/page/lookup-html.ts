/** The first page as HTML: the answer, complete without JavaScript except for the map; and batches, which need it. */
import { ageDays, ageText, releaseAge } from '../../database/age.js';
import type { Manifest } from '../../database/release.js';
import type { LookupResult } from '../../database/results.js';
import { knownLogs } from '../../enrich/known-logs.js';
import { type Html, html } from '../../html.js';
import { DEFAULT_MAX_AGE_DAYS, MAX_BROWSER_BATCH, MAX_PAGE_BATCH } from '../../limits.js';
import { answerHtml, INCLUDED, NO_DATABASE, type Notice, noticeHtml } from '../../page/answer.js';
import { grouped } from '../../text-table.js';
import { frame } from './frame.js';
import type { PageSettings } from './page.js';

/** What the server knows of all pages. */
export interface PageContent extends Pick<PageSettings, 'signUp' | 'publicDb'> {
  /** URL of the service without a slash at the end, for the examples. */
  baseUrl: string;
  /** Path of the folder with scripts, styles and the map, relative to the page. */
  assets: string;
  /** Undefined if no release is loaded. */
  manifest: Manifest | undefined;
  /** How fast its data gets old; see `changeRate`. */
  changeRate: number | undefined;
  /** Whether the database is the one that comes with ipatlas, and no release. */
  isSeed: boolean;
  /** Whether visitors may look up addresses without a key of their own. */
  keyless: boolean;
}

/** What the first page shows. */
export interface LookupContent extends PageContent, Pick<PageSettings, 'ipv4Url' | 'ipv6Url'> {
  /** The language of the names of countries. */
  lang: string;
  /** The result for the visitor's address; undefined if there is none. */
  own: LookupResult | undefined;
  /** Shown if the visitor's address has no country, as at home; undefined without a release. */
  example: LookupResult | undefined;
  /** What the form asked for, if it was sent. */
  lookup: { ip: string; at: string; result: LookupResult | undefined; problem: Notice | undefined } | undefined;
}

/** The date of a release's data, `YYYY-MM-DD`. */
export function dataDate({ data_date, as_of }: Manifest): string {
  return data_date ?? as_of;
}

/** Returns the age of a release's data, and what that means. */
export function dataAge(manifest: Manifest, rate: number | undefined): string {
  return ageText(ageDays(releaseAge(manifest)), rate);
}

export const SEED_NOTE = 'This is the older database that comes with ipatlas; its operator has not built one yet.';

/** Returns the line below the answer; old data makes it a warning. */
function facts({ manifest, changeRate, isSeed }: LookupContent): Html | undefined {
  if (manifest === undefined) return undefined;
  const isOld = isSeed || ageDays(releaseAge(manifest)) > DEFAULT_MAX_AGE_DAYS;
  return html`<ul class="facts">
<li${isOld ? html` class="warning"` : undefined}>Data of ${dataDate(manifest)}, ${dataAge(manifest, changeRate)}${isSeed ? html`. ${SEED_NOTE}` : undefined}</li>
<li>this server logs no addresses</li>
<li><a href="data">sources</a></li>
</ul>`;
}

/** Whether an example is shown instead of the answer for the visitor's address, which has no country. */
function showsExample({ own, example, lookup }: LookupContent): boolean {
  return lookup === undefined && own?.country === null && typeof example?.country === 'string';
}

function answer(content: LookupContent): Html {
  const { own, example, lookup, manifest, isSeed, lang } = content;
  if (manifest === undefined) {
    return noticeHtml('Not ready', NO_DATABASE);
  }
  if (lookup?.problem !== undefined)
    return noticeHtml(lookup.ip === '' ? 'Nothing was asked' : lookup.ip, lookup.problem);
  if (lookup?.result !== undefined) return answerHtml(lookup.result, { day: lookup.at, hasHistory: !isSeed, lang });
  if (own === undefined) return noticeHtml('Your address', ['Not known', 'Type an address to look it up.']);
  const hasHistory = !isSeed;
  if (showsExample(content)) return answerHtml(example!, { whose: 'Example: this address', hasHistory, lang });
  return answerHtml(own, { whose: 'Your address', hasHistory, lang });
}

/** The visitor's address of one family, which only a server of that family can see. */
function ownFamily(id: string, name: string, url: string | undefined): Html | undefined {
  if (url === undefined) return undefined;
  return html`<div id="${id}" class="script-only" data-url="${url}"><dt>${name}</dt><dd>…</dd></div>`;
}

function hero(content: LookupContent): Html {
  const { lookup, own, example, ipv4Url, ipv6Url } = content;
  const isExample = showsExample(content);
  const code = (lookup === undefined ? (isExample ? example : own) : lookup.result)?.country_code ?? '';
  const families = [
    isExample
      ? html`<div><dt>Your address</dt><dd><code>${own!.ip}</code> no country: private, reserved or not allocated</dd></div>`
      : undefined,
    ownFamily('own-ipv4', 'Your IPv4 address', ipv4Url),
    ownFamily('own-ipv6', 'Your IPv6 address', ipv6Url),
  ];
  const shown = families.filter((family) => family !== undefined);
  return html`<h1>Which country is an IP address in, and is it in the European Union?</h1>
<form id="lookup" method="get" action="./" autocomplete="off" role="search" data-include="${content.manifest?.counts.networks === undefined ? '' : INCLUDED}">
<div class="field"><input id="ip" name="ip" aria-label="IPv4 or IPv6 address" value="${lookup?.ip ?? ''}" placeholder="IPv4 or IPv6 address" required maxlength="100" spellcheck="false" autocapitalize="none" enterkeyhint="search"${lookup?.problem === undefined ? undefined : html` aria-invalid="true"`}>
<button type="submit">Look up</button></div>
<p class="try">Try <a href="./?ip=8.8.8.8"><code>8.8.8.8</code></a> <a href="./?ip=2001:4860:4860::8888"><code>2001:4860:4860::8888</code></a> ${content.isSeed ? undefined : html`<label class="day">on a past day <input id="at" name="at" type="date" value="${lookup?.at ?? ''}"></label>`}</p>
</form>
<section class="panel hero" aria-label="Answer">
<div class="said"><div id="answer" aria-live="polite" data-code="${code}">${answer(content)}</div>
${shown.length === 0 ? undefined : html`<dl class="families">${shown}</dl>`}</div>
<div class="map" id="answer-map"><noscript><img src="${content.assets}/world.svg" alt=""></noscript></div>
</section>
${facts(content)}
<noscript><p>The map and lists of addresses need JavaScript. Everything else works without; but the address that you look up is then part of the URL, which a proxy before this server may log.</p></noscript>`;
}

/** Bytes that a range takes in the compact form with gzip, about; 0.82 in the seed and in the default build of June 2026. */
const BYTES_PER_RANGE = 0.82;

/** Returns the size of the compact form of a release, in words. */
function databaseSize(manifest: Manifest | undefined): string {
  if (manifest === undefined) return 'less than a megabyte';
  const { ipv4_ranges, ipv6_ranges } = manifest.counts;
  return `about ${((BYTES_PER_RANGE * (ipv4_ranges + ipv6_ranges)) / 1e6).toFixed(1)} MB`;
}

function batch({ publicDb, manifest }: LookupContent): Html {
  const privacy = publicDb
    ? html`<strong>Your addresses stay in this browser:</strong> the database comes to them, ${databaseSize(manifest)}, and nothing that you paste is sent.`
    : html`The text is read in this browser; only the addresses in it are sent to this server, which does not log them.`;
  const hasNetworks = publicDb && manifest?.counts.networks !== undefined;
  const limit = publicDb ? MAX_BROWSER_BATCH : MAX_PAGE_BATCH;
  const names = Object.entries(knownLogs()).map(
    ([name, { title }]) => html`<option value="${name}">${name}: ${title}</option>`,
  );
  return html`<section id="batch-section" class="script-only" aria-labelledby="batch-title">
<h2 id="batch-title">Many at once</h2>
<p class="lead">A log, a CSV file or a list: every address in it is looked up, or those in the field that is recognized, ${grouped(limit)} at most. ${privacy}</p>
<form id="batch" class="drop-zone" data-db="${publicDb ? 'db/country.ipc' : ''}">
<label for="text">Drop a file, or paste</label>
<textarea id="text" rows="4" spellcheck="false" autocomplete="off" autocapitalize="none" placeholder="8.8.8.8&#10;2001:4860:4860::8888"></textarea>
<p id="source" class="source" role="status"></p>
<div class="row"><span class="file"><input id="file" type="file"><label class="button" for="file">Choose a file</label></span>
<label class="log">Log <select id="log" autocomplete="off"><option value="">recognize it</option><option value="all">none: all addresses</option>${names}</select></label>
<button type="submit" id="start" class="primary">Look up all</button>
<button type="button" id="cancel" hidden>Cancel</button>
${hasNetworks ? html`<label class="check"><input type="checkbox" id="networks" data-url="db/networks.ipc" autocomplete="off"> and who announces them (2.4 MB more)</label>` : undefined}</div>
</form>
<div class="told"><progress id="progress" max="1" value="0" aria-label="Progress of the batch" hidden></progress>
<p id="status" role="status"></p></div>
<div id="results" hidden>
<dl class="figures" id="figures"></dl>
<div class="results">
<div class="panel rows">
<div class="bar-row"><div id="chips" class="chips" role="group" aria-label="Rows to show"></div>
<div class="downloads"><span id="shown"></span>: <button type="button" id="csv" class="link">CSV</button> <button type="button" id="jsonl" class="link">JSON lines</button>
<label>addresses <select id="hiding" autocomplete="off"><option value="">as they are</option><option value="truncate">cut to /24, /48</option><option value="drop">left out</option></select></label></div></div>
<div id="table"></div>
</div>
<div class="panel places">
<div class="map" id="batch-map"></div>
<div class="shares" tabindex="0" role="region" aria-label="Addresses by country"><table id="counts"><caption class="only-spoken">Addresses by country</caption>
<thead class="only-spoken"><tr><th scope="col">Country</th><th scope="col">Share</th><th scope="col">Addresses</th></tr></thead><tbody></tbody></table></div>
</div>
</div>
</div>
</section>`;
}

/** Returns a text with its web addresses as links. */
export function linked(text: string): Html {
  const parts = text.split(/(https?:\/\/[^\s"'<>)]*[^\s"'<>).,;])/);
  return html`${parts.map((part, index) => (index % 2 === 0 ? html`${part}` : html`<a href="${part}">${part}</a>`))}`;
}

/** Names the sources, with their links: licenses such as that of DB-IP ask for it on each page that shows results. */
function credits({ manifest }: LookupContent): Html {
  const texts = new Set(manifest?.inputs.map(({ attribution }) => attribution));
  return html`<p class="hint">${texts.size === 0 ? undefined : linked(`Data: ${[...texts].join('; ')}`)}</p>`;
}

/** Returns the first page. */
export function lookupHtml(content: LookupContent): string {
  const { assets, keyless, lang } = content;
  const main = keyless
    ? html`${hero(content)}\n${content.manifest === undefined ? undefined : batch(content)}`
    : html`<h1>Which country is an IP address in, and is it in the European Union?</h1>
<p class="lead">Lookups need an API key here. <a href="developers">How to use it</a></p>
${facts(content)}`;
  return frame(
    {
      title: 'ipatlas: the country of an IP address',
      description: 'The country of any IPv4 or IPv6 address, and whether it is in the European Union.',
      assets,
      path: './',
      lang,
      script: keyless ? 'lookup' : undefined,
    },
    html`${main}\n${credits(content)}`,
  );
}

type TextContent = Pick<PageContent, 'baseUrl' | 'manifest' | 'changeRate' | 'isSeed'>;

/** Returns the plain text for command lines. */
export function pageText({ baseUrl, manifest, changeRate, isSeed }: TextContent): string {
  const release =
    manifest === undefined
      ? 'Database: not loaded\n'
      : `Release:  ${manifest.id}\nData of:  ${dataDate(manifest)} (${dataAge(manifest, changeRate)})\n${isSeed ? `Seed:     ${SEED_NOTE}\n` : ''}`;
  return `ipatlas: the country of an IP address, and whether it is in the European Union

${release}
Usage, with an API key:
  curl -H 'X-API-Key: <API_KEY>' ${baseUrl}/api/lookup/8.8.8.8
  curl -H 'X-API-Key: <API_KEY>' ${baseUrl}/api/lookup/
  curl -H 'X-API-Key: <API_KEY>' -H 'Content-Type: application/json' \\
    -d '["8.8.8.8","2001:4860:4860::8888"]' ${baseUrl}/api/batch

Documentation:  ${baseUrl}/docs
OpenAPI:        ${baseUrl}/openapi.json
Attribution:    ${baseUrl}/attribution
`;
}
