/** The site; see site/README.md. */
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitepress';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** The guides by role, in the order in which a newcomer needs them. */
const GUIDES = {
  Begin: {
    '/start': 'Start',
  },
  'For who has files and logs': {
    '/bulk': 'Enrich files and pipes',
    '/logs': 'Logs by their names',
    '/redact': 'Keep the country, drop the address',
    '/streams': 'Streams',
    '/exports': 'Exports for other software',
    '/programs': 'Programs that read it',
    '/warehouses': 'Warehouses',
    '/scale': 'A thousand machines',
    '/history': 'History',
  },
  'For who runs it': {
    '/rebuild': 'Build the database, every night',
    '/api': 'Run the API',
    '/gate': 'Let proxies ask who may come in',
    '/distribution': 'One build, many nodes',
    '/routing': 'Route clients',
    '/runbook': 'Runbook for several servers',
  },
  'For who writes programs': {
    '/library': 'The library',
    '/library-reference/': 'Reference of the library',
    '/http-reference': 'Reference of the API',
  },
  'To look up': {
    '/commands': 'Commands',
    '/reference': 'Errors, limits, variables',
    '/stability': 'What stays as it is',
  },
};

const sidebar = Object.entries(GUIDES).map(([text, pages]) => ({
  text,
  items: Object.entries(pages).map(([link, title]) => ({ text: title, link })),
}));

/** Returns the first paragraph of a page as plain text, for search engines. */
function firstParagraph(markdown) {
  const blocks = markdown
    .replace(/^---[\s\S]*?\n---\n/, '')
    .replaceAll(/```[\s\S]*?```/g, '')
    .split(/\n\s*\n/);
  const paragraph = blocks.map((block) => block.trim()).find((block) => /^[\p{L}`[]/u.test(block));
  const plain = paragraph
    ?.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replaceAll(/[`*_]/g, '')
    .replaceAll(/\s+/g, ' ');
  return plain === undefined || plain.length <= 200 ? plain : `${plain.slice(0, 197).replace(/\s\S*$/, '')} …`;
}

/** Returns the id that GitHub gives a heading, which the links in the documentation use. */
function idOf(heading) {
  return heading
    .trim()
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
    .replaceAll(/\s/g, '-');
}

/** Makes a head of a table without text a cell: assistive technology would read an empty name. */
function useCellsForEmptyHeads(md) {
  md.renderer.rules.th_open = (tokens, at, options, _env, self) => {
    const isEmpty = tokens[at + 1]?.content === '';
    const close = tokens.findIndex(({ type }, index) => index > at && type === 'th_close');
    if (isEmpty) for (const token of [tokens[at], tokens[close]]) token.tag = 'td';
    return self.renderToken(tokens, at, options);
  };
}

export default defineConfig({
  title: 'ipatlas',
  description: 'The country of an IP address',
  lang: 'en-US',
  base: process.env.SITE_BASE ?? '/ipatlas/',
  srcDir: 'pages',
  outDir: 'dist',
  cacheDir: 'cache',
  cleanUrls: false,
  lastUpdated: false,
  head: [['link', { rel: 'icon', href: `${process.env.SITE_BASE ?? '/ipatlas/'}icon.svg`, type: 'image/svg+xml' }]],
  ignoreDeadLinks: 'localhostLinks',
  markdown: {
    attrs: { disable: true },
    anchor: { slugify: idOf },
    theme: { light: 'github-light-high-contrast', dark: 'github-dark-high-contrast' },
    config: useCellsForEmptyHeads,
    // Highlighted as what they resemble.
    languageAlias: { haproxy: 'nginx', nft: 'nginx', logstash: 'ruby' },
  },
  transformPageData(page) {
    if (page.description === '' && page.relativePath !== 'index.md') {
      page.description = firstParagraph(page.source ?? '') ?? `${page.title}: reference of ipatlas.`;
    }
  },
  themeConfig: {
    logo: '/icon.svg',
    nav: [
      { text: 'Start', link: '/start' },
      { text: 'Guides', link: '/rebuild' },
      { text: 'Library', link: '/library-reference/' },
      { text: 'API', link: '/http-reference' },
      { text: 'Commands', link: '/commands' },
    ],
    sidebar,
    outline: [2, 3],
    search: { provider: 'local' },
    socialLinks: [{ icon: 'github', link: 'https://github.com/ipatlas/ipatlas' }],
    footer: { message: 'Code: MIT license. Data: see the attribution of each release.' },
  },
  vite: {
    resolve: { alias: { '@ipatlas/lookup': `${root}dist/lookup/index.js` } },
    // The countries of the world are one file of 0.7 MB, which is loaded when a visitor asks for it.
    build: { chunkSizeWarningLimit: 1_000 },
  },
});
