// The tables of docs/scale.md, from the figures of the last `make bench` (results.json) and from assumptions.json, so that the page
// cannot differ from them. Each figure is marked (m), measured, or (c), computed here. `node bench/scale-page.js` rewrites the tables.
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const PAGE = new URL('../docs/scale.md', import.meta.url);
const RESULTS = new URL('results.json', import.meta.url);
const ASSUMPTIONS = new URL('assumptions.json', import.meta.url);
const DAY = 86_400;

const read = (url) => readFileSync(url, 'utf8');
const table = (head, rows) =>
  [head, head.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n');

/** A number with two significant digits, or whole from 10 on. */
function rounded(value) {
  if (!Number.isFinite(value)) throw new Error(`no figure: ${value}`);
  if (value !== 0 && Math.abs(value) < 10) return String(Number(value.toPrecision(2)));
  return Math.round(value).toLocaleString('en-US');
}
/** A number with the prefix of its unit, such as 1.3 TB. */
function scaled(value, unit) {
  const power = Math.max(0, Math.min(5, Math.floor(Math.log10(Math.max(1, value)) / 3)));
  return `${rounded(value / 1000 ** power)} ${['', 'k', 'M', 'G', 'T', 'P'][power]}${unit}`.trim();
}
const computed = (text) => `${text} (c)`;
const measured = (text) => `${text} (m)`;

/** Returns the tables by name. @throws Error if a run has no such figure */
function tablesOf({ day, machine, parts }, given) {
  const assumed = Object.fromEntries(Object.entries(given).map(([name, { value }]) => [name, value]));
  const row = (part, name) => {
    const found = parts[part]?.find((each) => each.name.startsWith(name));
    if (found === undefined)
      throw new Error(`bench/results.json has no "${name}" of ${part}; run "node bench/run.js ${part}"`);
    return found;
  };
  const text = (part, name) => measured(row(part, name).value);
  /** The `index`-th number of a figure. */
  const number = (part, name, index = 0) =>
    Number(
      row(part, name)
        .value.replaceAll(/(?<=\d),(?=\d)/g, '')
        .match(/\d+(?:\.\d+)?/g)[index],
    );
  const { busyShare, linesADay, addedBytes, serverCores, regions } = assumed;

  const shapes = [
    ['flat JSON', 'enrich-shapes', 'flat', assumed.flatBytes],
    ['JSON, nested field', 'enrich-shapes', 'nested field', assumed.nestedBytes],
    ['JSON, arrays and escapes', 'enrich-shapes', 'arrays and escapes', assumed.arraysBytes],
    ['JSON of 2 kB', 'enrich-shapes', '2 kB', assumed.longBytes],
    ['CSV', 'enrich-formats', 'CSV plain', assumed.csvBytes],
    ['access log', 'enrich-formats', 'access log', assumed.accessBytes],
    ['free text', 'enrich-formats', 'free text', assumed.textBytes],
  ];
  const lines = table(
    [
      'shape of line',
      'bytes',
      'MB/s of a core',
      'lines/s of a core',
      `cores for ${scaled(linesADay, 'lines')} a day`,
      'memory',
      'read a day',
      'written a day',
      'wire, both ways',
    ],
    shapes.map(([name, part, found, bytes]) => {
      const speed = number(part, found);
      const cores = (linesADay * bytes) / (speed * 1e6) / DAY / busyShare;
      return [
        name,
        bytes,
        measured(speed),
        computed(scaled((speed * 1e6) / bytes, '')),
        computed(Math.ceil(cores)),
        computed(scaled(Math.ceil(cores) * number('enrich', 'peak memory over') * 1e6, 'B')),
        computed(scaled(linesADay * bytes, 'B')),
        computed(scaled(linesADay * (bytes + addedBytes), 'B')),
        computed(scaled((8 * linesADay * (2 * bytes + addedBytes)) / DAY, 'bit/s')),
      ];
    }),
  );

  const perDay = [1e6, 1e9, 1e11, 1e12, 1e13].map((count) => {
    const speed = number('enrich-shapes', 'flat') * 1e6;
    const cores = (count * assumed.flatBytes) / speed / DAY / busyShare;
    const [engine, bottleneck] =
      cores <= 1
        ? ['`ipatlas enrich` on the machine that has the logs', 'nothing: a fraction of a core']
        : cores <= serverCores
          ? ['`ipatlas enrich --jobs` on one machine', 'disks: they read and write all of it']
          : [
              'a [job array](#batch), or the [warehouse](warehouses.md) that has the lines',
              'the storage that all machines share',
            ];
    return [
      scaled(count, ''),
      computed(scaled((count * assumed.flatBytes) / DAY, 'B/s')),
      computed(cores < 1 ? rounded(cores) : Math.ceil(cores)),
      computed(scaled(count * (assumed.flatBytes + addedBytes), 'B')),
      engine,
      bottleneck,
    ];
  });
  const byLines = table(['lines a day', 'read', 'cores', 'written a day', 'engine', 'first bottleneck'], perDay);

  const cost = number('api', 'single lookups, key in the header', 1) / 1e6;
  const redisCalls = number('scale', 'Redis: reservations');
  const byRequests = table(
    [
      'requests/s',
      'cores',
      `servers of ${serverCores} cores`,
      `in ${regions} regions, each safe without one server`,
      'wire, out',
      'reservations of Redis/s',
      'first bottleneck',
    ],
    [1e3, 1e4, 1e5, 1e6].map((rate) => {
      const cores = (rate * cost) / busyShare;
      const servers = Math.ceil(cores / serverCores);
      // A process reserves a thousandth of a key's rate at once.
      const calls = rate / (assumed.keyRate / 1000);
      return [
        scaled(rate, ''),
        computed(cores < 1 ? rounded(cores) : Math.ceil(cores)),
        computed(servers),
        computed(regions * (Math.ceil(cores / regions / serverCores) + 1)),
        computed(scaled(8 * rate * assumed.responseBytes, 'bit/s')),
        computed(rounded(calls)),
        servers <= 1
          ? 'one server is no server when it is lost'
          : `processor time of TLS and load balancers before them`,
      ];
    }),
  );
  const keys = table(
    ['keys', 'busy at the same time', 'reservations/s', 'of one Redis'],
    [1e3, 1e5, 1e6].map((count) => {
      // A key with few requests reserves once a minute in each process that it meets.
      const calls = (count * assumed.busyKeys * assumed.processesAKey) / 60;
      return [
        scaled(count, ''),
        computed(rounded(count * assumed.busyKeys)),
        computed(rounded(calls)),
        computed(`${rounded((100 * calls) / redisCalls)} %`),
      ];
    }),
  );

  const fleetRows = [100, 1_000, 10_000, 100_000].map((nodes) => {
    const name = nodes.toLocaleString('en-US');
    const value = (what) => row('fleet', `${name} nodes through caches: ${what}`).value;
    const pullBytes = number('fleet', 'a pull of a new release', 1);
    return [
      name,
      computed(value('origin, peak')),
      computed(value('busiest cache, peak')),
      computed(value('half, 99 %, all')),
      computed(scaled(nodes * pullBytes, 'B')),
    ];
  });
  const fleet = table(
    ['nodes', 'origin, busiest second', 'busiest cache', 'half, 99 %, all have the release', 'wire for one release'],
    fleetRows,
  );
  const herd = table(
    ['100,000 nodes', 'origin, busiest second', 'busiest cache', 'half, 99 %, all', 'oldest timestamp'],
    ['through caches', 'within 10 s', 'without caches', 'bad caches', 'after an outage'].map((what) => {
      const value = (name) => parts.fleet.find((each) => each.name === `100,000 nodes ${what}: ${name}`)?.value ?? '–';
      return [what, ...['origin, peak', 'busiest cache, peak', 'half, 99 %, all', 'oldest timestamp'].map(value)].map(
        (cell, index) => (index === 0 || cell === '–' ? cell : computed(cell)),
      );
    }),
  );
  const releases = table(
    ['releases a day', 'a node a day', '100,000 nodes a day', 'origin, if caches share'],
    [1, 4, 24].map((count) => {
      const bytes = number('fleet', 'a pull of a new release', 1);
      const idle =
        number('fleet', 'a pull of nothing new', 1) + number('fleet', 'a pull of nothing new') * assumed.headerBytes;
      const pulls = DAY / assumed.scheduleSeconds - count;
      const aNode = count * bytes + pulls * idle;
      return [
        count,
        computed(scaled(aNode, 'B')),
        computed(scaled(1e5 * aNode, 'B')),
        computed(scaled((1e5 / assumed.nodesPerCache) * count * bytes, 'B')),
      ];
    }),
  );

  const history = table(
    ['years of nights', 'bytes', 'opening a day', 'import of one more night'],
    [1, 2, 5, 10].map((years) => [
      years,
      ...['bytes', 'opening a day', 'one more night'].map((what) =>
        text('scale', `history of ${years} years: ${what}`),
      ),
    ]),
  );
  const builds = table(
    ['ranges', 'processor time', 'peak memory', 'where the time goes', 'range file'],
    [1, 2, 5, 10].map((factor) => [
      ...['ranges', 'processor time', 'peak memory', 'stages', 'range file'].map((what) =>
        text('scale', `build × ${factor}: ${what}`),
      ),
    ]),
  );

  const workers = table(
    ['messages of 100 KB', 'MB/s of input'],
    ['one worker', 'two workers', 'four workers', 'eight workers', 'two partitions', 'four partitions'].map((name) => [
      `${name}${name.endsWith('partitions') ? ', a worker each' : ''}`,
      text('stream', `100 KB: ${name}`),
    ]),
  );
  const workerCost = number('stream', '100 KB: core seconds');
  const serverCost = number('stream', '100 KB: core seconds', 2);
  const streams = table(
    ['input', 'partitions', 'cores of workers', 'cores of servers', 'written to disk', 'first bottleneck'],
    [1e8, 1e9, 1e10].map((bytes) => {
      const growth = 1 + addedBytes / assumed.flatBytes;
      const best = Math.max(...['one worker', 'two workers'].map((name) => number('stream', `100 KB: ${name}`)));
      const partitions = Math.ceil(bytes / (best * 1e6) / busyShare);
      return [
        scaled(bytes, 'B/s'),
        computed(partitions),
        computed(Math.ceil((workerCost * bytes) / 1e9 / busyShare)),
        computed(Math.ceil((serverCost * bytes) / 1e9 / busyShare)),
        computed(scaled(bytes * (1 + growth), 'B/s')),
        partitions === 1
          ? 'processor time'
          : bytes < 1e10
            ? 'one stream: partition it'
            : 'disks of the servers: each byte is stored twice, with three replicas six times',
      ];
    }),
  );

  const assumptions = table(
    ['name in bench/assumptions.json', 'value', 'meaning'],
    Object.entries(given).map(([name, { value, meaning }]) => [`\`${name}\``, value.toLocaleString('en-US'), meaning]),
  );
  return {
    run: `The run was on ${day}, ${machine}.`,
    ...{ 'by-lines': byLines, lines, 'by-requests': byRequests, keys, fleet, herd, releases },
    ...{ history, builds, workers, streams, assumptions },
    redis: `One Redis answers ${text('scale', 'Redis: reservations')} reservations a second from one core. A million keys take ${text('scale', 'keys: 1,000,000: file')} in \`keys.sqlite\`, and a server that has them starts in ${text('scale', 'keys: 1,000,000: start')}.`,
  };
}

/** Returns a text of the page with the tables of these figures. @throws Error if the page has no place for one */
export function scalePage(page, results, assumptions) {
  let text = page;
  for (const [name, content] of Object.entries(tablesOf(results, assumptions))) {
    const place = new RegExp(`<!-- ${name} -->[\\s\\S]*?<!-- /${name} -->`);
    if (!place.test(text)) throw new Error(`docs/scale.md has no place for ${name}`);
    text = text.replace(place, () => `<!-- ${name} -->\n${content}\n<!-- /${name} -->`);
  }
  return text;
}

/** Rewrites the tables. */
export function writeScale() {
  writeFileSync(PAGE, scalePage(read(PAGE), JSON.parse(read(RESULTS)), JSON.parse(read(ASSUMPTIONS))));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) writeScale();
