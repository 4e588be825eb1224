/** The world map and the centers of countries, which scripts/draw-map.js writes when the code is built. */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { gzipSync } from 'node:zlib';
import { geoContains } from 'd3-geo';
import { feature } from 'topojson-client';
import type { GeometryCollection, Topology } from 'topojson-specification';
import { describe, expect, it } from 'vitest';
import { loadReference } from '../../pipeline/config/reference.js';
import { readCentroids } from '../../src/export/gdnsd/distance.js';
import { packageFile } from '../../src/package-root.js';

const { countries } = loadReference();
const svg = readFileSync(packageFile('dist/page/world.svg'), 'utf8');

/** A drawn country: the corners of its bounding box, in units of the view box. */
interface Drawn {
  code: string;
  dot: boolean;
  left: number;
  top: number;
  right: number;
  bottom: number;
}

/** Returns the bounding box of path data that has only m, l and z with relative coordinates. */
function boxOf(data: string): Omit<Drawn, 'code' | 'dot'> {
  const box = { left: Number.POSITIVE_INFINITY, top: Number.POSITIVE_INFINITY, right: 0, bottom: 0 };
  let [startX, startY] = [0, 0];
  for (const ring of data.split('z').slice(0, -1)) {
    const numbers = [...ring.matchAll(/-?\d+/g)].map(Number);
    let [x, y] = [startX, startY];
    for (let i = 0; i < numbers.length; i += 2) {
      x += numbers[i]!;
      y += numbers[i + 1]!;
      if (i === 0) [startX, startY] = [x, y];
      box.left = Math.min(box.left, x);
      box.right = Math.max(box.right, x);
      box.top = Math.min(box.top, y);
      box.bottom = Math.max(box.bottom, y);
    }
  }
  return box;
}

const drawn: Drawn[] = [...svg.matchAll(/<(path|circle) data-country="([A-Z]{2})" ([^>]*)>/g)].map((match) => {
  const [, element, code, attributes] = match;
  const of = (name: string): string => new RegExp(`\\b${name}="([^"]*)"`).exec(attributes!)![1]!;
  if (element === 'path') return { code: code!, dot: false, ...boxOf(of('d')) };
  const [x, y, radius] = ['cx', 'cy', 'r'].map((name) => Number(of(name))) as [number, number, number];
  return { code: code!, dot: true, left: x - radius, top: y - radius, right: x + radius, bottom: y + radius };
});

describe('the world map', () => {
  it('has one shape for each code, with the name of the country', () => {
    expect(drawn.map(({ code }) => code).sort()).toEqual([...countries.keys()]);
    for (const [code, name] of countries)
      expect(svg).toMatch(new RegExp(`data-country="${code}"[^>]*><title>${name.replaceAll(/[()]/g, '\\$&')}</title>`));
  });

  it('shows each of them: at least 5 units wide and high, in a drawing 2,000 units wide', () => {
    const [width, height] = /viewBox="0 0 (\d+) (\d+)"/.exec(svg)!.slice(1).map(Number) as [number, number];
    expect(width).toBe(2_000);
    for (const { code, left, top, right, bottom } of drawn) {
      expect(right - left, code).toBeGreaterThanOrEqual(5);
      expect(bottom - top, code).toBeGreaterThanOrEqual(5);
      expect(Math.min(left, top), code).toBeGreaterThanOrEqual(0);
      expect(right, code).toBeLessThanOrEqual(width);
      expect(bottom, code).toBeLessThanOrEqual(height);
    }
  });

  it('has dots that do not touch', () => {
    const dots = drawn.filter(({ dot }) => dot);
    expect(dots.length).toBeGreaterThan(60);
    for (const a of dots)
      for (const b of dots) {
        if (a !== b) expect(Math.hypot(a.left - b.left, a.top - b.top), `${a.code} ${b.code}`).toBeGreaterThan(10);
      }
  });

  it('stays small, and has no style that a content security policy would forbid', () => {
    expect(gzipSync(svg).length).toBeLessThan(25_000);
    expect(svg).not.toMatch(/style|script|href/);
  });
});

describe('the centers of countries', () => {
  it('are given for each code, in degrees', () => {
    expect([...readCentroids().keys()].sort()).toEqual([...countries.keys()]);
    for (const [code, [longitude, latitude]] of readCentroids()) {
      expect(Math.abs(longitude), code).toBeLessThanOrEqual(180);
      expect(Math.abs(latitude), code).toBeLessThanOrEqual(90);
    }
  });

  it('are in their country on a map of another scale, with three exceptions of unusual shape', () => {
    const file = createRequire(import.meta.url).resolve('world-atlas/countries-110m.json');
    const world = JSON.parse(readFileSync(file, 'utf8')) as Topology<{ countries: GeometryCollection }>;
    const outside: string[] = [];
    for (const country of feature(world, world.objects.countries).features) {
      if (country.id === undefined) continue;
      const code = new Intl.Locale(`und-${country.id}`).region!;
      if (!geoContains(country, [...readCentroids().get(code)!])) outside.push(code);
    }
    // Two crescents and a narrow country.
    expect(outside.sort()).toEqual(['HT', 'IL', 'VN']);
  });

  // Bounding boxes of territories that the map's source has as parts of other countries, and of dots.
  it.each<[string, [west: number, south: number, east: number, north: number]]>([
    ['GF', [-55, 2, -51, 6]],
    ['GP', [-62, 15, -61, 17]],
    ['MQ', [-62, 14, -60, 15]],
    ['RE', [55, -22, 56, -20]],
    ['YT', [45, -14, 46, -12]],
    ['BQ', [-69, 12, -68, 13]],
    ['SJ', [10, 76, 30, 81]],
    ['TK', [-173, -10, -171, -8]],
    ['CX', [105, -11, 106, -10]],
    ['CC', [96, -13, 97, -11]],
    ['XK', [20, 41, 22, 44]],
    ['BV', [3, -55, 4, -54]],
    ['LU', [5, 49, 7, 51]],
    ['SG', [103, 1, 105, 2]],
    ['GI', [-6, 36, -5, 37]],
    ['FR', [-5, 42, 9, 51]],
    ['NL', [3, 50, 8, 54]],
  ])('%s is within its bounding box', (code, [west, south, east, north]) => {
    const [longitude, latitude] = readCentroids().get(code)!;
    expect(longitude).toBeGreaterThan(west);
    expect(longitude).toBeLessThan(east);
    expect(latitude).toBeGreaterThan(south);
    expect(latitude).toBeLessThan(north);
  });
});
