/**
 * The documentation as pages: titles, descriptions, headings in order, links, and console blocks that are run. Over the Markdown; and over
 * the HTML if `make site` has built it (accessibility in a browser: make soak).
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { describe, expect, it } from 'vitest';
import { packageFile, packageRoot } from '../../src/package-root.js';
import { FILES } from '../docs/files.js';

const GUIDES = readdirSync(packageFile('docs')).filter((name) => name.endsWith('.md'));
const DOCUMENTS = ['README.md', 'CONTRIBUTING.md', 'site/README.md', ...GUIDES.map((name) => join('docs', name))];
const DIST = packageFile('site/dist');

/** Returns Markdown without blocks of code. */
function prose(markdown: string): string {
  return markdown.replaceAll(/^ *```[\s\S]*?^ *```/gm, '');
}

/** Returns the id that GitHub and VitePress give a heading. */
function idOf(heading: string): string {
  const text = heading.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1').replaceAll('`', '');
  return text
    .trim()
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
    .replaceAll(/\s/g, '-');
}

function headingsOf(markdown: string): { level: number; text: string }[] {
  return [...prose(markdown).matchAll(/^(#+) +(.*)$/gm)].map(([, marks, text]) => ({
    level: marks!.length,
    text: text!,
  }));
}

/** Returns the first headings that skip a level. */
function skips(levels: readonly number[]): number[] {
  return levels.filter((level, index) => level > (index === 0 ? 1 : levels[index - 1]! + 1));
}

describe.each(DOCUMENTS)('%s', (file) => {
  const markdown = readFileSync(packageFile(file), 'utf8');
  const headings = headingsOf(markdown);

  it('has one title, a first paragraph, and headings in order', () => {
    expect(headings.filter(({ level }) => level === 1)).toHaveLength(1);
    expect(headings[0]?.level).toBe(1);
    expect(skips(headings.map(({ level }) => level))).toEqual([]);
    expect(prose(markdown)).toMatch(/^[\p{L}`[]/mu);
  });

  it('has links that lead somewhere', () => {
    const links = [...prose(markdown).matchAll(/\]\((?!https?:)([^)\s]*)\)/g)].map(([, link]) => link!);
    const broken = links.filter((link) => {
      const [path = '', id] = link.split('#');
      const target = path === '' ? file : relative(packageRoot(), join(packageRoot(), dirname(file), path));
      if (!existsSync(packageFile(target))) return true;
      if (id === undefined || !target.endsWith('.md')) return false;
      return !headingsOf(readFileSync(packageFile(target), 'utf8')).some(({ text }) => idOf(text) === id);
    });
    expect(broken).toEqual([]);
  });

  it('has no console block that is not run', () => {
    if (/^```console$/m.test(markdown)) expect(FILES).toContain(file);
  });
});

it('every guide is in the navigation of the site', () => {
  const config = readFileSync(packageFile('site/.vitepress/config.js'), 'utf8');
  for (const name of GUIDES) expect(config).toContain(`'/${name.replace('.md', '')}': `);
});

describe.runIf(existsSync(DIST))('the HTML that was built', () => {
  const pages = existsSync(DIST)
    ? readdirSync(DIST, { recursive: true, encoding: 'utf8' }).filter(
        (name) => name.endsWith('.html') && name !== '404.html',
      )
    : [];

  it.each(pages)('%s has a title, a description, headings in order and links that lead somewhere', (name) => {
    const html = readFileSync(join(DIST, name), 'utf8');
    expect(html).toMatch(/<title>[^<]{5,}<\/title>/);
    expect(html).toMatch(/<meta name="description" content="[^"]{20,}">/);
    const main = html.slice(html.indexOf('<main'), html.indexOf('</main>'));
    const levels = [...main.matchAll(/<h([1-6])[\s>]/g)].map(([, level]) => Number(level));
    expect([levels.filter((level) => level === 1).length, skips(levels)]).toEqual([1, []]);
    const base = '/ipatlas/';
    const broken = [...main.matchAll(/ href="([^"]*)"/g)]
      .map(([, link]) => link!.replaceAll('&amp;', '&'))
      .filter((link) => !/^(https?:|mailto:)/.test(link))
      .filter((link) => {
        const [path = '', id] = link.split('#');
        const target = path === '' ? name : path.startsWith('/') ? path.slice(base.length) : join(dirname(name), path);
        const files = [target, `${target}.html`, join(target, 'index.html')].map((each) => join(DIST, each));
        const found = files.find((each) => existsSync(each) && each.includes('.'));
        if (found === undefined) return true;
        const text = id === undefined || id === '' ? undefined : readFileSync(found, 'utf8');
        return text !== undefined && !text.includes(`id="${decodeURIComponent(id!)}"`);
      });
    expect(broken).toEqual([]);
  });
});
