/** The page for a browser that asks under a name that the server does not know. */
import { WIRE_ERRORS } from '../../errors.js';
import { html } from '../../html.js';
import { frame } from './frame.js';

/** @param url the base URL as the browser has it */
export function hostHtml(url: string, assets: string): string {
  const { message } = WIRE_ERRORS.host_refused;
  const main = html`<section>
<h1>This server does not know its name</h1>
<p>${message}. If this is your server, start it with</p>
<pre><code>ipatlas serve --base-url ${url}</code></pre>
<p>On the machine of the server itself, the page answers as <code>localhost</code>. Requests with a key are answered under every name.</p>
</section>`;
  return frame({ title: 'Unknown name · ipatlas', description: message, assets, path: './' }, main);
}
