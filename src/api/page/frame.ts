/** What all pages have in common: the head, the navigation, the footer. */
import { type Html, html } from '../../html.js';

/** The pages in the navigation, by their path relative to the base of the service. */
export const PAGES = {
  './': 'Look up',
  developers: 'API and keys',
  data: 'Data',
  docs: 'Reference',
} as const;

export interface FrameContent {
  title: string;
  description: string;
  /** Path of the folder with scripts, styles and the map, relative to the page. */
  assets: string;
  /** The page's own entry of {@link PAGES}. */
  path: keyof typeof PAGES;
  /** Name of the script in the folder, without `.js`. */
  script?: string | undefined;
  /** The language of the names of countries, for the script. */
  lang?: string;
}

/** The mark: meridians and parallels, and one cell in the accent. */
const MARK = html`<svg class="mark" viewBox="0 0 24 24" aria-hidden="true"><path class="cell" d="M9 8.5h6v7H9z"/><path d="M6.5 1.5h11a5 5 0 0 1 5 5v11a5 5 0 0 1-5 5h-11a5 5 0 0 1-5-5v-11a5 5 0 0 1 5-5zM1.5 8.5h21M1.5 15.5h21M9 1.5c-1 7-1 14 0 21M15 1.5c1 7 1 14 0 21"/></svg>`;

export function frame({ title, description, assets, path, script, lang }: FrameContent, main: Html): string {
  const links = Object.entries(PAGES).map(
    ([href, name]) => html`<a href="${href}"${href === path ? html` aria-current="page"` : undefined}>${name}</a>`,
  );
  return html`<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="theme-color" content="#faf8f3" media="(prefers-color-scheme: light)">
<meta name="theme-color" content="#0d1624" media="(prefers-color-scheme: dark)">
<title>${title}</title>
<meta name="description" content="${description}">
<link rel="icon" href="${assets}/icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="${assets}/page.css">
<noscript><link rel="stylesheet" href="${assets}/no-script.css"></noscript>
${script === undefined ? undefined : html`<script type="module" src="${assets}/${script}.js"></script>`}
</head>
<body>
<a class="skip" href="#main">Skip to the content</a>
<header class="top">
<a class="brand" href="./">${MARK}ipatlas</a>
<nav aria-label="Pages">${links}</nav>
</header>
<main id="main" tabindex="-1" data-assets="${assets}"${lang === undefined ? undefined : html` data-lang="${lang}"`}>
${main}
</main>
<footer>
<nav aria-label="More"><a href="data">Sources and licenses</a><a href="docs">Reference of the API</a><a href="openapi.json">OpenAPI</a></nav>
<p>No cookie, no third party</p>
</footer>
</body>
</html>
`.text;
}
