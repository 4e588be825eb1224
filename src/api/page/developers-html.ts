/** The page about the API as HTML: keys that visitors make for themselves, and examples. */
import { type Html, html } from '../../html.js';
import { frame } from './frame.js';
import type { PageContent } from './lookup-html.js';

const SIGN_UP_SECTION = html`<section aria-labelledby="key-title" class="script-only">
<h2 id="key-title">Your key</h2>
<p class="lead">A key is shown once and not stored; nothing about you is asked or kept.</p>
<div class="panel pad">
<div class="row"><button type="button" id="make-key" class="primary">Make a key</button></div>
<div id="new-key" class="new-key" hidden><code id="key-text"></code> <button type="button" class="copy" data-copy="key-text">copy<span class="only-spoken"> the key</span></button></div>
<p id="key-status" role="status"></p>
<form id="key-form" autocomplete="off"><label for="key-input">A key that you have</label>
<div class="row"><input id="key-input" type="password" autocomplete="off" required maxlength="100">
<button type="submit">Show its rate</button> <button type="button" id="revoke-key">Revoke it</button></div></form>
</div>
<dialog id="revoke-dialog" aria-labelledby="revoke-question"><form method="dialog">
<h2 id="revoke-question">Revoke this key?</h2>
<p>Programs that use it are refused within a second. This cannot be undone.</p>
<div class="row"><button value="revoke" class="primary">Revoke it</button> <button value="keep" autofocus>Keep it</button></div>
</form></dialog>
</section>`;

function example(id: string, title: string, code: string): Html {
  return html`<figure class="panel example"><figcaption>${title} <button type="button" class="copy script-only" data-copy="${id}">copy<span class="only-spoken">: ${title}</span></button></figcaption>
<pre tabindex="0"><code id="${id}">${code}</code></pre></figure>`;
}

/** Returns the page about the API. */
export function developersHtml({ assets, baseUrl, keyless, signUp, publicDb }: PageContent): string {
  const header = "-H 'X-API-Key: <API_KEY>'";
  const body = html`<h1>API and keys</h1>
<p class="lead">Every program needs a key, which is sent with each request. An address counts as one against the key's rate.${signUp ? undefined : ' Ask the operator of this server for a key.'}</p>
${keyless && signUp ? SIGN_UP_SECTION : undefined}
<section aria-labelledby="use-title">
<h2 id="use-title">Examples</h2>
<div class="examples">
${example('curl', 'One address, with curl', `curl ${header} \\\n  ${baseUrl}/api/lookup/8.8.8.8`)}
${example('curl-batch', 'Many addresses, with curl', `curl ${header} \\\n  -H 'Content-Type: application/json' \\\n  -d '["8.8.8.8","2001:4860:4860::8888"]' \\\n  ${baseUrl}/api/batch`)}
${example('client', 'JavaScript and TypeScript', `import { Client } from 'ipatlas/client';\n\nconst client = new Client('<API_KEY>', {\n  baseUrl: '${baseUrl}',\n});\nconsole.log(await client.lookup('8.8.8.8'));`)}
${publicDb ? example('browser', 'In a browser, without a key', `import { load } from '@ipatlas/lookup';\n\nconst db = await load(\n  '${baseUrl}/db/country.ipc',\n);\nconsole.log(db.country('8.8.8.8'));`) : undefined}
</div>
<p><a href="docs">Reference of the API</a> · <a href="openapi.json">OpenAPI document</a></p>
</section>`;
  return frame(
    {
      title: 'ipatlas: API and keys',
      description: 'How programs look up the country of IP addresses here: keys and examples.',
      assets,
      path: 'developers',
      script: 'developers',
    },
    body,
  );
}
