/**
 * Draws the world map, dist/page/world.svg, and writes the center of each country, dist/centroids.json. Run by
 * "npm run build".
 *
 * The shapes are those of Natural Earth (public domain) as packed by world-atlas. Every code of data/reference/countries.csv
 * has one element: a path, or a dot if the path would be too small to see. Colors are left to the style sheet: an element is
 * selected by its attribute data-country.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { parse } from 'csv-parse/sync';
import { geoArea, geoCentroid, geoEqualEarth, geoPath } from 'd3-geo';
import { feature } from 'topojson-client';

/** Width of the drawing, in units of its view box; coordinates are whole units. One unit is 17 km at the equator. */
const WIDTH = 2000;
/**
 * A country whose path has a smaller area, in square units, or is narrower, in units, is a dot. The area of El Salvador is
 * 70, of Luxembourg 9.
 */
const SMALLEST_AREA = 24;
const SMALLEST_WIDTH = 6;
/** Radius of a dot, and the free space between two dots, in units. */
const RADIUS = 5;
const GAP = 1;
/** Steps of moving dots apart. Fewer than 100 are used; more would be an error of the data. */
const MAX_STEPS = 1_000;

/** Territories that Natural Earth does not separate by code: its name there, and a box that has its islands only, in degrees. */
const PARTS = [
  // code, name of the feature, west, south, east, north
  ['BQ', 'Netherlands', -69, 12, -62, 18],
  ['CC', 'Indian Ocean Ter.', 96, -13, 98, -11],
  ['CX', 'Indian Ocean Ter.', 105, -11, 106, -10],
  ['GF', 'France', -55, 2, -51, 6],
  ['GP', 'France', -62, 15.8, -61, 16.6],
  ['MQ', 'France', -61.3, 14.3, -60.7, 15],
  ['RE', 'France', 55, -22, 56, -20],
  ['YT', 'France', 45, -13.1, 45.4, -12.5],
  // Svalbard with Bear Island, and Jan Mayen.
  ['SJ', 'Norway', -9.5, 70.7, -7, 71.5],
  ['SJ', 'Norway', 10, 74, 35, 81],
  ['TK', 'New Zealand', -173, -10, -171, -8],
];

/** Features without an ISO 3166-1 numeric code in Natural Earth. Any other such feature is not drawn. */
const BY_NAME = { Kosovo: 'XK', 'N. Cyprus': 'CY', Somaliland: 'SO' };

/** Places that Natural Earth 4.1 lacks. */
const MISSING = {
  // Bouvet Island: SCAR Composite Gazetteer of Antarctica, Bouvetøya, 54°25'S 3°22'E.
  BV: [3.37, -54.42],
};

/** Returns the code of a feature; undefined if it has none. The mapping of numeric codes is CLDR's, by ECMA-402. */
function codeOf({ id, properties }) {
  if (id === undefined) return BY_NAME[properties.name];
  return new Intl.Locale(`und-${id}`).region;
}

/**
 * Returns the polygons of each country code.
 *
 * @param scale `110m`, `50m` or `10m`, the scale of the map that it was drawn for
 * @returns by code, polygons as lists of rings of [longitude, latitude] in degrees
 */
function readShapes(scale) {
  const world = JSON.parse(
    readFileSync(new URL(`../node_modules/world-atlas/countries-${scale}.json`, import.meta.url)),
  );
  const shapes = new Map();
  for (const country of feature(world, world.objects.countries).features) {
    const { type, coordinates } = country.geometry;
    for (const polygon of type === 'Polygon' ? [coordinates] : coordinates) {
      const [lon, lat] = geoCentroid({ type: 'Polygon', coordinates: polygon });
      const part = PARTS.find(
        ([, name, west, south, east, north]) =>
          name === country.properties.name && west < lon && lon < east && south < lat && lat < north,
      );
      const code = part?.[0] ?? codeOf(country);
      if (code === undefined) continue;
      if (!shapes.has(code)) shapes.set(code, []);
      shapes.get(code).push(polygon);
    }
  }
  return shapes;
}

/** Returns the center of the largest piece of land, [longitude, latitude] in degrees. */
function centerOf(polygons) {
  const areas = polygons.map((coordinates) => geoArea({ type: 'Polygon', coordinates }));
  const largest = polygons[areas.indexOf(Math.max(...areas))];
  return geoCentroid({ type: 'Polygon', coordinates: largest }).map((degrees) => Number(degrees.toFixed(2)));
}

/** Moves dots apart until no two touch. The order of the dots decides nothing but ties. */
function moveApart(dots) {
  const distance = 2 * RADIUS + GAP;
  for (let step = 0; step < MAX_STEPS; step++) {
    let moved = false;
    for (const [i, a] of dots.entries()) {
      for (const b of dots.slice(i + 1)) {
        const [dx, dy] = [b.x - a.x, b.y - a.y];
        const length = Math.hypot(dx, dy);
        if (length >= distance - 0.1) continue;
        const push = (distance - length) / 2 / (length || 1);
        a.x -= dx * push;
        a.y -= dy * push;
        b.x += (dx || 1) * push;
        b.y += dy * push;
        moved = true;
      }
    }
    if (!moved) return;
  }
  throw new Error('the dots of the map cannot be moved apart');
}

/** Draws what d3-geo draws on a canvas as path data in relative whole units, a third of the size of d3-geo's own path data. */
class RelativePath {
  data = '';
  #ring = [];
  #last = [0, 0];

  moveTo(x, y) {
    this.#ring = [[Math.round(x), Math.round(y)]];
  }

  lineTo(x, y) {
    const point = [Math.round(x), Math.round(y)];
    const [lastX, lastY] = this.#ring.at(-1);
    if (point[0] !== lastX || point[1] !== lastY) this.#ring.push(point);
  }

  closePath() {
    // A ring that rounding has made a point or a line cannot be seen.
    if (this.#ring.length < 3) return;
    const steps = this.#ring.map(([x, y], i) => {
      const [fromX, fromY] = i === 0 ? this.#last : this.#ring[i - 1];
      return `${x - fromX}${y < fromY ? '' : ' '}${y - fromY}`;
    });
    const [first, ...rest] = steps;
    this.data += `m${first}l${rest.join(' ').replaceAll(' -', '-')}z`;
    this.#last = this.#ring[0];
  }
}

const escapeText = (text) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');

const table = readFileSync(new URL('../data/reference/countries.csv', import.meta.url));
const names = new Map(parse(table, { comment: '#' }).slice(1));
const [coarse, middle, fine] = ['110m', '50m', '10m'].map(readShapes);
const projection = geoEqualEarth().fitWidth(WIDTH, { type: 'Sphere' });
const plane = geoPath(projection);
const [, [, bottom]] = plane.bounds({ type: 'Sphere' });

const centroids = {};
const paths = [];
const dots = [];
for (const [code, name] of names) {
  const center = MISSING[code] ?? centerOf(fine.get(code));
  centroids[code] = center;
  const shape = { type: 'MultiPolygon', coordinates: coarse.get(code) ?? middle.get(code) ?? fine.get(code) ?? [] };
  const title = `<title>${escapeText(name)}</title>`;
  const [[left, top], [right, lower]] = plane.bounds(shape);
  if (plane.area(shape) >= SMALLEST_AREA && Math.min(right - left, lower - top) >= SMALLEST_WIDTH) {
    const path = new RelativePath();
    geoPath(projection, path)(shape);
    paths.push(`<path data-country="${code}" d="${path.data}">${title}</path>`);
  } else {
    const [x, y] = projection(center);
    dots.push({ code, title, x, y });
  }
}
moveApart(dots);
const circles = dots.map(
  ({ code, title, x, y }) =>
    `<circle data-country="${code}" cx="${x.toFixed(1)}" cy="${y.toFixed(1)}" r="${RADIUS}">${title}</circle>`,
);

const svg = [
  `<svg xmlns="http://www.w3.org/2000/svg" class="world" viewBox="0 0 ${WIDTH} ${Math.ceil(bottom)}" role="img" aria-label="World map">`,
  // Attributes, not styles: any style sheet overrides them, and no content security policy forbids them.
  '<g class="countries" fill="#b8c2cc" stroke="#fff" stroke-width="1">',
  ...paths,
  ...circles,
  '</g>',
  '</svg>',
  '',
].join('\n');
mkdirSync(new URL('../dist/page/', import.meta.url), { recursive: true });
writeFileSync(new URL('../dist/page/world.svg', import.meta.url), svg);
writeFileSync(new URL('../dist/centroids.json', import.meta.url), `${JSON.stringify(centroids)}\n`);
