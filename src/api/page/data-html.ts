/** The page about the data as HTML: the release, its sources, licenses and attribution. */
import type { ManifestInput } from '../../database/release.js';
import { type Html, html } from '../../html.js';
import { frame } from './frame.js';
import { dataAge, dataDate, linked, type PageContent, SEED_NOTE } from './lookup-html.js';

/** Returns a cell with the name of its column, which is shown where the table has no room for columns. */
function cell(name: string, content: Html): Html {
  return html`<td data-name="${name}">${content}</td>`;
}

function sourceRow({ id, version, license, attribution, data_date, data_date_evidence }: ManifestInput): Html {
  const evidence = data_date_evidence === undefined ? '' : ` (${data_date_evidence})`;
  return html`<tr><th scope="row">${id}</th>${cell('Version', html`${version}`)}${cell('Data of', html`${data_date === undefined ? 'not known' : `${data_date}${evidence}`}`)}${cell('License', html`${license}`)}${cell('Attribution', linked(attribution))}</tr>`;
}

function release({ manifest, changeRate, isSeed }: PageContent): Html {
  if (manifest === undefined) return html`<p class="lead">No database is loaded yet.</p>`;
  return html`${isSeed ? html`<p class="warning">${SEED_NOTE}</p>` : undefined}
<dl class="panel pad"><dt>Data of</dt><dd>${dataDate(manifest)}, ${dataAge(manifest, changeRate)}</dd>
<dt>European Union as of</dt><dd>${manifest.as_of}</dd>
<dt>Release</dt><dd><code>${manifest.id}</code></dd></dl>
<h2 id="sources-title">Sources</h2>
<p class="lead">If you publish results, give this attribution. <a href="attribution">The same as JSON</a></p>
<div class="panel"><table class="sources" aria-labelledby="sources-title">
<thead><tr><th scope="col">Source</th><th scope="col">Version</th><th scope="col">Data of</th><th scope="col">License</th><th scope="col">Attribution</th></tr></thead>
<tbody>${manifest.inputs.map(sourceRow)}</tbody></table></div>`;
}

/** Returns the page about the data. */
export function dataHtml(content: PageContent): string {
  return frame(
    {
      title: 'ipatlas: data',
      description: 'The age, the sources and the licenses of the data that answers here.',
      assets: content.assets,
      path: 'data',
    },
    html`<h1>Data</h1>\n${release(content)}`,
  );
}
