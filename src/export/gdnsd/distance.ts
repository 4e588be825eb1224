/** Orders places by their distance from a country. */
import { readFileSync } from 'node:fs';
import { orThrow } from '../../errors.js';
import { packageFile } from '../../package-root.js';

/** [longitude, latitude] in degrees. */
export type Position = readonly [lon: number, lat: number];

/** Mean radius of the earth in kilometers (IUGG). */
const EARTH_RADIUS_KM = 6371.0088;

/**
 * Returns the center of each country and territory, by code: that of its largest piece of land, so that it lies where most people are
 * rather than in the sea between islands.
 */
export function readCentroids(): ReadonlyMap<string, Position> {
  const path = packageFile('dist/centroids.json');
  const read = () => new Map(Object.entries<Position>(JSON.parse(readFileSync(path, 'utf8'))));
  return orThrow(read, 'E_INSTALL', `${path} cannot be read`, 'install ipatlas again, or compile it');
}

function unitVector([lon, lat]: Position): [number, number, number] {
  const [lambda, phi] = [(lon * Math.PI) / 180, (lat * Math.PI) / 180];
  return [Math.cos(phi) * Math.cos(lambda), Math.cos(phi) * Math.sin(lambda), Math.sin(phi)];
}

/** Returns the distance on the surface of the earth in kilometers. */
export function distance(a: Position, b: Position): number {
  const [ax, ay, az] = unitVector(a);
  const [bx, by, bz] = unitVector(b);
  // By the length of the chord: accurate for small distances, unlike the arc cosine.
  const chord = Math.hypot(ax - bx, ay - by, az - bz);
  return 2 * EARTH_RADIUS_KM * Math.asin(Math.min(1, chord / 2));
}

/** Returns the items, the closest first; of equally close ones, the earlier first. */
export function byDistance<Item>(from: Position, items: readonly Item[], position: (item: Item) => Position): Item[] {
  return items
    .map((item) => ({ item, km: distance(from, position(item)) }))
    .sort((a, b) => a.km - b.km)
    .map(({ item }) => item);
}
