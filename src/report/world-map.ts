/** The world map with countries colored by what changed. The map itself, dist/page/world.svg, is drawn by the build. */
import { readFileSync } from 'node:fs';
import { escapeHtml, Html, html } from '../html.js';
import { packageFile } from '../package-root.js';
import { percent } from '../text-table.js';
import { type Changes, changedShare } from './changes.js';

/** Lower ends of the shares that have a color each, above "no change". */
const LEVELS = [0, 0.001, 0.01, 0.1];

/** Returns the color of a share, 0 for no change. */
function levelOf(share: number): number {
  return share === 0 ? 0 : LEVELS.filter((limit) => share >= limit).length;
}

function legend(): Html {
  const ranges = LEVELS.map((limit, index) => {
    const next = LEVELS[index + 1];
    if (next === undefined) return `${percent(limit)} or more`;
    return index === 0 ? `less than ${percent(next)}` : `${percent(limit)} to ${percent(next)}`;
  });
  const entries = ['no change', ...ranges].map(
    (text, level) => html`<li><span class="swatch level${level}"></span>${text}</li>`,
  );
  return html`<ul class="legend">${entries}<li><span class="swatch none"></span>no addresses</li></ul>`;
}

/**
 * Returns the map. A country has the color of the larger of its two shares of changed addresses, IPv4 and IPv6; its title
 * has both.
 */
export function changesMap({ deltas, nameOf }: Changes): Html {
  const svg = readFileSync(packageFile('dist/page/world.svg'), 'utf8').replaceAll(
    /data-country="([A-Z]{2})"([^>]*)><title>([^<]*)<\/title>/g,
    (_, code: string, attributes: string, name: string) => {
      const shares = deltas.map(({ countryTotals, family }) => {
        const totals = countryTotals.get(code);
        return { family, share: totals === undefined ? undefined : changedShare(totals) };
      });
      const known = shares.flatMap(({ share }) => share ?? []);
      const parts = shares.map(({ family, share }) => `IPv${family}: ${share === undefined ? 'none' : percent(share)}`);
      const level = known.length === 0 ? '' : ` class="level${levelOf(Math.max(...known))}"`;
      const title = `${nameOf(code, name)}, ${parts.join(', ')}`;
      return `data-country="${code}"${level}${attributes}><title>${escapeHtml(title)}</title>`;
    },
  );
  const labeled = svg.replace('aria-label="World map"', 'aria-label="World map of the changes by country"');
  return html`${new Html(labeled)}${legend()}`;
}
