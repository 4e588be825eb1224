import { readFileSync } from 'node:fs';
import { geoDistance } from 'd3-geo';
import { describe, expect, it } from 'vitest';
import { packageFile } from '../../src/package-root.js';

const svg = readFileSync(packageFile('dist/page/world.svg'), 'utf8');
const centroids = JSON.parse(readFileSync(packageFile('dist/centroids.json'), 'utf8')) as Record<
  string,
  [number, number]
>;
const codes = readFileSync(packageFile('data/reference/countries.csv'), 'utf8')
  .split('\n')
  .filter((line) => /^[A-Z]{2},/.test(line))
  .map((line) => line.slice(0, 2));

interface Box {
  left: number;
  right: number;
  top: number;
  bottom: number;
}

/** The box of path data in relative steps: an m begins a ring, its numbers are steps from the begin of the ring before. */
function boxOf(data: string): Box {
  const box = { left: Infinity, right: -Infinity, top: Infinity, bottom: -Infinity };
  let [ringX, ringY] = [0, 0];
  for (const ring of data.split('m').slice(1)) {
    let [x, y] = [ringX, ringY];
    const numbers = ring.match(/-?\d+/g)!.map(Number);
    for (let i = 0; i < numbers.length; i += 2) {
      x += numbers[i]!;
      y += numbers[i + 1]!;
      if (i === 0) [ringX, ringY] = [x, y];
      box.left = Math.min(box.left, x);
      box.right = Math.max(box.right, x);
      box.top = Math.min(box.top, y);
      box.bottom = Math.max(box.bottom, y);
    }
  }
  return box;
}

const paths = [...svg.matchAll(/<path data-country="(..)" d="([^"]+)"><title>([^<]+)<\/title>/g)];
const dots = [...svg.matchAll(/<circle data-country="(..)" cx="([\d.]+)" cy="([\d.]+)" r="([\d.]+)">/g)];

describe('the world map', () => {
  it('has exactly one shape for each country of the reference table', () => {
    expect(codes.length).toBe(250);
    expect([...paths, ...dots].map(([, code]) => code).sort()).toEqual([...codes].sort());
  });

  it('has no shape that is too small to see, and all shapes are inside the drawing', () => {
    const [, width, height] = /viewBox="0 0 (\d+) (\d+)"/.exec(svg)!.map(Number);
    for (const [, code, data] of paths) {
      const { left, right, top, bottom } = boxOf(data!);
      expect(Math.max(right - left, bottom - top), code).toBeGreaterThanOrEqual(5);
      expect(left, code).toBeGreaterThanOrEqual(0);
      expect(top, code).toBeGreaterThanOrEqual(0);
      expect(right, code).toBeLessThanOrEqual(width!);
      expect(bottom, code).toBeLessThanOrEqual(height!);
    }
    for (const [, code, x, y, radius] of dots) {
      expect(Number(radius), code).toBeGreaterThanOrEqual(5);
      expect(Number(x), code).toBeLessThanOrEqual(width!);
      expect(Number(y), code).toBeLessThanOrEqual(height!);
    }
  });

  it('has no two dots that touch', () => {
    for (const [i, [, code, x, y, radius]] of dots.entries()) {
      for (const [, other, otherX, otherY] of dots.slice(i + 1)) {
        const distance = Math.hypot(Number(x) - Number(otherX), Number(y) - Number(otherY));
        expect(distance, `${code} and ${other}`).toBeGreaterThan(2 * Number(radius));
      }
    }
  });

  it('has no style of its own, which a content security policy would forbid', () => {
    expect(svg).not.toMatch(/style|<script|javascript|href|\son\w+=/i);
  });
});

describe('the centers of the countries', () => {
  it('has one for each country of the reference table', () => {
    expect(Object.keys(centroids).sort()).toEqual([...codes].sort());
  });

  // Coordinates of capitals and main towns, from the CIA World Factbook; a center is not far from them.
  it.each([
    ['LU', 6.12, 49.6],
    ['SG', 103.86, 1.28],
    ['GI', -5.35, 36.13],
    ['BV', 3.4, -54.43],
    ['GF', -52.33, 4.93],
    ['SJ', 15.63, 78.22],
    ['RE', 55.45, -20.88],
    ['IE', -6.25, 53.32],
    ['XK', 21.17, 42.67],
  ])('puts %s where it is', (code, longitude, latitude) => {
    const earthRadius = 6371;
    expect(geoDistance(centroids[code]!, [longitude, latitude]) * earthRadius).toBeLessThan(200);
  });
});
