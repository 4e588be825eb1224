/** The page as HTML, complete without JavaScript except for batches and the map; and as plain text, for command lines. */
import { ageDays, ageText, releaseAge } from '../../database/age.js';
import type { Manifest, ManifestInput } from '../../database/release.js';
import type { LookupResult } from '../../database/results.js';
import { type Html, html } from '../../html.js';
import { MAX_PAGE_BATCH } from '../../limits.js';

/** What the page shows. */
export interface PageContent {
  /** URL of the service without a slash at the end, for the examples. */
  baseUrl: string;
  /** Path of the folder with scripts, styles and the map, relative to the page. */
  assets: string;
  /** Undefined if no release is loaded. */
  manifest: Manifest | undefined;
  /** Whether the database is the one that comes with ipatlas, and no release. */
  isSeed: boolean;
  /** The result for the visitor's address; undefined if there is none. */
  own: LookupResult | undefined;
  /** What the form asked for, if it was sent. */
  lookup: { ip: string; result: LookupResult | undefined; problem?: string } | undefined;
  /** URLs of servers that have only one family of addresses. */
  ipv4Url: string | undefined;
  ipv6Url: string | undefined;
  signUp: boolean;
  /** Whether visitors may look up addresses without a key of their own. */
  keyless: boolean;
}

const numberText = (value: number): string => value.toLocaleString('en-US');

function age(manifest: Manifest): string {
  return ageText(ageDays(releaseAge(manifest)));
}

function dataDate({ data_date, as_of }: Manifest): string {
  return data_date ?? as_of;
}

const SEED_NOTE = 'this is the older database that comes with ipatlas; its operator has not built one yet';

/** Returns the plain text for command lines. */
export function pageText({ baseUrl, manifest, isSeed }: Pick<PageContent, 'baseUrl' | 'manifest' | 'isSeed'>): string {
  const release =
    manifest === undefined
      ? 'Database: not loaded\n'
      : `Release:  ${manifest.id}\nData of:  ${dataDate(manifest)} (${age(manifest)})\n${isSeed ? `Seed:     ${SEED_NOTE}\n` : ''}`;
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

/** Returns a text with its web addresses as links. */
function linked(text: string): Html {
  const parts = text.split(/(https?:\/\/[^\s"'<>)]*[^\s"'<>).,;])/);
  return html`${parts.map((part, index) => (index % 2 === 0 ? html`${part}` : html`<a href="${part}">${part}</a>`))}`;
}

function resultList({ ip, country, country_code, is_eu }: LookupResult): Html {
  return html`<dl class="result" data-code="${country_code ?? ''}">
<dt>Address</dt><dd><code>${ip}</code></dd>
<dt>Country</dt><dd>${country === null ? 'no country' : html`${country} <span class="code">${country_code ?? ''}</span>`}</dd>
<dt>European Union</dt><dd>${is_eu ? 'yes' : 'no'}</dd>
</dl>`;
}

function ownSection({ own, manifest, ipv4Url, ipv6Url }: PageContent): Html {
  const result =
    own === undefined
      ? html`<p>${manifest === undefined ? 'No database is loaded yet.' : 'Your address is not known.'}</p>`
      : resultList(own);
  return html`<section aria-labelledby="own-title">
<h2 id="own-title">Your address</h2>
<div id="own">${result}</div>
${ipv4Url === undefined ? undefined : html`<div id="own-ipv4" data-url="${ipv4Url}" hidden><h3>IPv4</h3><div class="slot"></div></div>`}
${ipv6Url === undefined ? undefined : html`<div id="own-ipv6" data-url="${ipv6Url}" hidden><h3>IPv6</h3><div class="slot"></div></div>`}
</section>`;
}

function lookupSection({ lookup }: PageContent): Html {
  let answer: Html | undefined;
  if (lookup?.problem !== undefined) answer = html`<p class="problem">${lookup.problem}</p>`;
  else if (lookup?.result !== undefined) answer = resultList(lookup.result);
  return html`<section aria-labelledby="lookup-title">
<h2 id="lookup-title">Look up an address</h2>
<form id="lookup" method="get" action="./" autocomplete="off">
<label for="ip">IPv4 or IPv6 address</label>
<div class="row"><input id="ip" name="ip" value="${lookup?.ip ?? ''}" placeholder="2001:4860:4860::8888" required maxlength="100" spellcheck="false" autocapitalize="none">
<button type="submit">Look up</button></div>
</form>
<div id="answer" aria-live="polite">${answer}</div>
</section>`;
}

const BATCH_SECTION = html`<section aria-labelledby="batch-title" class="script-only" hidden>
<h2 id="batch-title">Look up many</h2>
<p>Paste a list, CSV or a log, or drop a file here: every address in it is looked up, ${numberText(MAX_PAGE_BATCH)} at most.
The file is read in your browser; only the addresses are sent.</p>
<form id="batch">
<label for="text">Text with addresses</label>
<textarea id="text" rows="5" spellcheck="false" autocomplete="off" autocapitalize="none" placeholder="8.8.8.8&#10;2001:4860:4860::8888"></textarea>
<div class="row"><label class="button" for="file">Choose a file</label><input id="file" type="file">
<span id="source" role="status"></span>
<button type="submit" id="start">Look up all</button>
<button type="button" id="cancel" disabled>Cancel</button></div>
</form>
<progress id="progress" max="1" value="0" aria-label="Progress of the batch" hidden></progress>
<p id="status" role="status"></p>
<div id="results" hidden>
<p id="share"></p>
<div class="row"><button type="button" id="csv">Download CSV</button> <button type="button" id="jsonl">Download JSON lines</button></div>
<div class="scroll" role="region" aria-labelledby="counts-title" tabindex="0"><table id="counts"><caption id="counts-title">Addresses by country</caption>
<thead><tr><th scope="col">Country</th><th scope="col">Code</th><th scope="col">EU</th><th scope="col" class="number">Addresses</th><th scope="col" class="number">Share</th><td></td></tr></thead><tbody></tbody></table></div>
</div>
</section>
<section id="map-section" aria-labelledby="map-title" hidden>
<h2 id="map-title">Map</h2>
<p id="map-help">Colored by your results. Use the arrow keys to go from country to country.</p>
<div id="map"></div>
<p id="map-label" role="status"></p>
<ul id="legend" aria-label="Legend"></ul>
</section>`;

const SIGN_UP_SECTION = html`<section aria-labelledby="key-title" class="script-only" hidden>
<h2 id="key-title">Your key</h2>
<p>Programs need a key. It is shown once and not stored; nothing about you is asked or kept.</p>
<div class="row"><button type="button" id="make-key">Make a key</button></div>
<p id="key-status" role="status"></p>
<div id="new-key" hidden><p><code id="key-text"></code> <button type="button" class="copy" data-copy="key-text">Copy</button></p></div>
<form id="key-form" autocomplete="off"><label for="key-input">Show or revoke a key that you have</label>
<div class="row"><input id="key-input" type="password" autocomplete="off" required maxlength="100">
<button type="submit">Show its rate</button> <button type="button" id="revoke-key">Revoke it</button></div></form>
</section>`;

function usageSection({ baseUrl }: PageContent): Html {
  const curl = `curl -H 'X-API-Key: <API_KEY>' ${baseUrl}/api/lookup/8.8.8.8`;
  const client = `import { Client } from 'ipatlas/client';

const client = new Client('<API_KEY>', { baseUrl: '${baseUrl}' });
console.log(await client.lookup('8.8.8.8'));`;
  return html`<section aria-labelledby="use-title">
<h2 id="use-title">Use the API</h2>
<p>On the command line: <button type="button" class="copy script-only" data-copy="curl" hidden>Copy</button></p>
<pre tabindex="0"><code id="curl">${curl}</code></pre>
<p>In JavaScript or TypeScript: <button type="button" class="copy script-only" data-copy="client" hidden>Copy</button></p>
<pre tabindex="0"><code id="client">${client}</code></pre>
<p><a href="docs">Documentation of the API</a> · <a href="openapi.json">OpenAPI document</a></p>
</section>`;
}

function sourceRow({ id, version, license, attribution, data_date, data_date_evidence }: ManifestInput): Html {
  return html`<tr><th scope="row">${id}</th><td>${version}</td><td>${data_date === undefined ? 'not known' : html`${data_date}${data_date_evidence === undefined ? '' : ` (${data_date_evidence})`}`}</td><td>${license}</td><td>${linked(attribution)}</td></tr>`;
}

function dataSection({ manifest, isSeed }: PageContent): Html {
  const title = html`<h2 id="data-title">Data</h2>`;
  if (manifest === undefined)
    return html`<section aria-labelledby="data-title">${title}<p>No database is loaded yet.</p></section>`;
  return html`<section aria-labelledby="data-title">
${title}
${isSeed ? html`<p>Note: ${SEED_NOTE}.</p>\n` : ''}<dl><dt>Release</dt><dd><code>${manifest.id}</code></dd>
<dt>Data of</dt><dd>${dataDate(manifest)}, ${age(manifest)}</dd>
<dt>European Union as of</dt><dd>${manifest.as_of}</dd></dl>
<div class="scroll" role="region" aria-labelledby="sources-title" tabindex="0"><table><caption id="sources-title">Sources</caption>
<thead><tr><th scope="col">Source</th><th scope="col">Version</th><th scope="col">Data of</th><th scope="col">License</th><th scope="col">Attribution</th></tr></thead>
<tbody>${manifest.inputs.map(sourceRow)}</tbody></table></div>
</section>`;
}

function documentOf(title: string, colorScheme: string, head: Html, body: Html): string {
  return html`<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="${colorScheme}">
<title>${title}</title>
${head}
</head>
<body>
${body}
</body>
</html>
`.text;
}

function lookups(content: PageContent): Html {
  return html`${ownSection(content)}
${lookupSection(content)}
<noscript><p>Lists of addresses and the map need JavaScript. Everything else works without.</p></noscript>
${BATCH_SECTION}`;
}

/** Returns the page. */
export function pageHtml(content: PageContent): string {
  const { assets, signUp, keyless } = content;
  const head = html`<meta name="description" content="The country of an IP address, and whether it is in the European Union.">
<link rel="icon" href="${assets}/icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="${assets}/page.css">
${keyless ? html`<script type="module" src="${assets}/page/app.js"></script>` : undefined}`;
  const body = html`<header><h1>ipatlas</h1><p>Which country is an IP address in, and is that country in the European Union?</p></header>
<main id="main" data-assets="${assets}">
${keyless ? lookups(content) : html`<p>Lookups need an API key here.</p>`}
${keyless && signUp ? SIGN_UP_SECTION : undefined}
${usageSection(content)}
${dataSection(content)}
</main>
<footer><p>No cookie, no third party. <a href="attribution">Licenses and attribution as JSON</a></p></footer>`;
  return documentOf('ipatlas: the country of an IP address', 'light dark', head, body);
}

/** Returns the documentation of the API: Swagger UI, which reads the OpenAPI document. */
export function docsHtml({ assets }: Pick<PageContent, 'assets'>): string {
  const head = html`<link rel="icon" href="${assets}/icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="${assets}/swagger/swagger-ui.css">
<script defer src="${assets}/swagger/swagger-ui-bundle.js"></script>
<script defer src="${assets}/docs.js"></script>`;
  const body = html`<main id="docs"><noscript><p>This page needs JavaScript. The <a href="openapi.json">OpenAPI document</a> is JSON.</p></noscript></main>`;
  // Swagger UI has no dark colors.
  return documentOf('ipatlas: the API', 'light', head, body);
}
