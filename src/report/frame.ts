/** The frame of a self-contained page, and its tables. */

import { Html, html, type Value } from '../html.js';

/**
 * Colors are pairs for light and dark. The text colors have a contrast of at least 4.5 to 1 on each background used
 * (WCAG 2.2, success criterion 1.4.3).
 */
const STYLE = `
:root { color-scheme: light dark; --page: #fff; --text: #1b2733; --dim: #52606d; --line: #d5dce3; --soft: #f3f6f9;
  --good: #11693b; --bad: #a8201a; --gain: #2a7de1; --loss: #c05621;
  --none: #e3e8ed; --level0: #cdd6df; --level1: #fde3b5; --level2: #fcb561; --level3: #e8672a; --level4: #9c2a0f; }
@media (prefers-color-scheme: dark) {
  :root { --page: #14191f; --text: #e6ebf0; --dim: #a3b0bd; --line: #38434f; --soft: #1d242c;
    --good: #6fd39b; --bad: #ff9d94; --gain: #6db0ff; --loss: #f0955c;
    --none: #262f38; --level0: #44515f; --level1: #7a5b1e; --level2: #b9761b; --level3: #e8672a; --level4: #ffb199; }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--text); font: 16px/1.5 system-ui, sans-serif; }
main { max-width: 72rem; margin: 0 auto; padding: 1rem; }
h1 { font-size: 1.6rem; line-height: 1.25; margin: 1rem 0 .25rem; overflow-wrap: anywhere; }
h2 { font-size: 1.2rem; margin: 2.25rem 0 .5rem; border-bottom: 1px solid var(--line); padding-bottom: .25rem; }
h3 { font-size: 1rem; margin: 1.5rem 0 .25rem; }
p { margin: .25rem 0 .75rem; overflow-wrap: anywhere; }
.dim { color: var(--dim); }
.good { color: var(--good); font-weight: 600; }
.bad { color: var(--bad); font-weight: 600; }
.alert { border-left: 4px solid var(--bad); background: var(--soft); padding: .5rem 1rem; margin: 1rem 0; }
.alert li { white-space: pre-wrap; overflow-wrap: anywhere; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .15rem 1rem; margin: 1rem 0; }
dt { color: var(--dim); } dd { margin: 0; overflow-wrap: anywhere; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
caption { text-align: left; color: var(--dim); padding: .25rem 0; }
th, td { text-align: left; vertical-align: top; padding: .3rem .75rem .3rem 0; border-bottom: 1px solid var(--line); }
td { unicode-bidi: isolate; overflow-wrap: break-word; max-width: 28rem; }
thead th { color: var(--dim); font-weight: 600; white-space: nowrap; }
th.number, td.number { text-align: right; white-space: nowrap; }
.bar { display: block; width: 12rem; height: .8rem; margin-top: .35rem; }
.bar .axis { fill: var(--line); } .bar .gain { fill: var(--gain); } .bar .loss { fill: var(--loss); }
.bar .value { fill: var(--gain); } .bar .above { fill: var(--bad); } .bar .limit { fill: var(--text); }
.world { width: 100%; height: auto; display: block; }
.world .countries { stroke: var(--page); }
.world [data-country], .none { fill: var(--none); background: var(--none); }
.level0, .world .level0 { fill: var(--level0); background: var(--level0); }
.level1, .world .level1 { fill: var(--level1); background: var(--level1); }
.level2, .world .level2 { fill: var(--level2); background: var(--level2); }
.level3, .world .level3 { fill: var(--level3); background: var(--level3); }
.level4, .world .level4 { fill: var(--level4); background: var(--level4); }
.legend { display: flex; flex-wrap: wrap; gap: .25rem 1.25rem; list-style: none; padding: 0; margin: .5rem 0; }
.swatch { display: inline-block; width: 1rem; height: 1rem; margin-right: .4rem; vertical-align: -.15rem; border: 1px solid var(--line); }
:focus-visible { outline: 3px solid var(--gain); outline-offset: 2px; }
@media (max-width: 40rem) { dl { grid-template-columns: 1fr; } dd { margin-bottom: .4rem; } }
@media print { .scroll { overflow: visible; } }
`;

/**
 * Returns a page in one file. Its content security policy forbids scripts and every request, so that text in the data can
 * cause neither, even if it were not escaped.
 *
 * @param title of the page, plain text
 * @param body the content of the page
 */
export function page(title: string, body: Html): string {
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title}</title>
<link rel="icon" href="data:,">
<style>${new Html(STYLE)}</style>
</head>
<body>
<main>
${body}
</main>
</body>
</html>
`.text;
}

/** A column of a table: its heading, and whether it has numbers. */
export type Column = [heading: string, kind?: 'number'];

/**
 * Returns a table that scrolls sideways on a narrow screen.
 *
 * @param label of the table, for its caption
 * @param columns in order
 * @param rows cells in the order of the columns
 */
export function tableOf(label: string, columns: readonly Column[], rows: readonly (readonly Value[])[]): Html {
  const kind = (index: number): Html => new Html(columns[index]?.[1] === 'number' ? ' class="number"' : '');
  const head = columns.map(([heading], index) => html`<th scope="col"${kind(index)}>${heading}</th>`);
  const body = rows.map((row) => html`<tr>${row.map((cell, index) => html`<td${kind(index)}>${cell}</td>`)}</tr>\n`);
  return html`<div class="scroll" role="region" aria-label="${label}" tabindex="0"><table>
<caption>${label}</caption>
<thead><tr>${head}</tr></thead>
<tbody>
${body}</tbody>
</table></div>
`;
}
