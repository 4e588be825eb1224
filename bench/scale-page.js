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
const computed = (text) => `${text} (c)`;
const measured = (text) => `${text} (m)`;

/** A number with two significant digits below 10, and whole from 10 on. */
function rounded(value) {
  if (!Number.isFinite(value)) throw new Error(`no figure: ${value}`);
  return Math.abs(value) < 10 ? String(Number(value.toPrecision(2))) : Math.round(value).toLocaleString('en-US');
}
/** Cores and the like: a part of the first one, else whole ones. */
const whole = (value) => computed(value < 1 ? rounded(value) : rounded(Math.ceil(value)));
/** A number with the prefix of its unit, such as 1.3 TB. */
function scaled(value, unit) {
  const power = Math.max(0, Math.min(5, Math.floor(Math.log10(Math.max(1, value)) / 3)));
  return computed(`${rounded(value / 1000 ** power)} ${['', 'k', 'M', 'G', 'T', 'P'][power]}${unit}`.trim());
}
/** A power of ten. */
const power = (value) => `10^${Math.round(Math.log10(value))}`;

/** A figure that the last run did not have. */
class MissingFigure extends Error {}

/** Returns the tables by name, each as a function. */
function tablesOf({ day, machine, days = {}, parts }, given) {
  const assumed = Object.fromEntries(Object.entries(given).map(([name, { value }]) => [name, value]));
  const { busyShare, linesADay, addedBytes, flatBytes, serverCores, regions } = assumed;
  const figure = (part, name) => {
    const found = parts[part]?.find((each) => each.name.startsWith(name));
    if (found !== undefined) return found.value;
    throw new MissingFigure(`The last run has no figure "${name}"; \`node bench/run.js ${part}\` measures it.`);
  };
  /** The `index`-th number of a figure. */
  const number = (part, name, index = 0) =>
    Number(
      figure(part, name)
        .replaceAll(/(?<=\d),(?=\d)/g, '')
        .match(/\d+(?:\.\d+)?/g)[index],
    );

  function byLines() {
    const rows = [1e6, 1e9, 1e11, 1e12, 1e13].map((count) => {
      const cores = (count * flatBytes) / (number('enrich-shapes', 'flat') * 1e6) / DAY / busyShare;
      const bits = (8 * count * (2 * flatBytes + addedBytes)) / DAY;
      const machines = Math.ceil(Math.max(cores / serverCores, bits / assumed.serverBitsPerSecond / busyShare));
      const [engine, bottleneck] =
        cores < 0.1
          ? ['`ipatlas enrich` where the lines are', 'none']
          : machines === 1
            ? ['`ipatlas enrich --jobs` on one machine', 'its disks, which read and write all of it']
            : [
                'a [job array](#batch), or the [warehouse](warehouses.md) that has the lines',
                'the wire, then the storage that all machines share',
              ];
      const read = scaled((count * flatBytes) / DAY, 'B/s');
      const written = scaled(count * (flatBytes + addedBytes), 'B');
      return [power(count), read, whole(cores), scaled(bits, 'bit/s'), whole(machines), written, engine, bottleneck];
    });
    return table(
      ['lines a day', 'read', 'cores', 'wire', 'machines', 'written a day', 'engine', 'first bottleneck'],
      rows,
    );
  }

  function byShape() {
    const rows = [
      ['flat JSON', 'enrich-shapes', 'flat', flatBytes],
      ['JSON, nested field', 'enrich-shapes', 'nested field', assumed.nestedBytes],
      ['JSON, arrays and escapes', 'enrich-shapes', 'arrays and escapes', assumed.arraysBytes],
      ['JSON of 2 kB', 'enrich-shapes', '2 kB', assumed.longBytes],
      ['CSV', 'enrich-formats', 'CSV plain', assumed.csvBytes],
      ['access log', 'enrich-formats', 'access log', assumed.accessBytes],
      ['free text', 'enrich-formats', 'free text', assumed.textBytes],
    ].map(([name, part, found, bytes]) => {
      const speed = number(part, found) * 1e6;
      const cores = (linesADay * bytes) / speed / DAY / busyShare;
      return [
        ...[name, bytes, measured(speed / 1e6), scaled(speed / bytes, ''), whole(cores)],
        scaled(Math.ceil(cores) * number('enrich', 'peak memory over') * 1e6, 'B'),
        ...[scaled(linesADay * bytes, 'B'), scaled(linesADay * (bytes + addedBytes), 'B')],
        scaled((8 * linesADay * (2 * bytes + addedBytes)) / DAY, 'bit/s'),
      ];
    });
    return table(
      [
        ...[
          'shape of line',
          'bytes',
          'MB/s of a core',
          'lines/s of a core',
          `cores for ${power(linesADay)} lines a day`,
        ],
        ...['memory', 'read a day', 'written a day', 'wire, both ways'],
      ],
      rows,
    );
  }

  function byRequests() {
    const cost = number('api', 'single lookups, key in the header', 1) / 1e6;
    const rows = [1e3, 1e4, 1e5, 1e6].map((rate) => {
      const cores = (rate * cost) / busyShare;
      const servers = Math.ceil(cores / serverCores);
      return [
        ...[power(rate), whole(cores), whole(servers), whole(regions * (Math.ceil(cores / regions / serverCores) + 1))],
        scaled(8 * rate * assumed.responseBytes, 'bit/s'),
        // A process reserves a thousandth of a key's rate at once.
        computed(rounded(rate / (assumed.keyRate / 1000))),
        servers === 1
          ? 'none: a second server is for the loss of the first'
          : 'what ends TLS and shares the requests among the servers',
      ];
    });
    return table(
      [
        ...['requests/s', 'cores', `servers of ${serverCores} cores`, `in ${regions} regions, each safe without one`],
        ...['wire, out', 'reservations of Redis/s', 'first bottleneck'],
      ],
      rows,
    );
  }

  function byKeys() {
    const rows = [1e3, 1e5, 1e6].map((count) => {
      // A key with few requests reserves once a minute in each process that it meets.
      const calls = (count * assumed.busyKeys * assumed.processesAKey) / 60;
      const share = computed(`${rounded((100 * calls) / number('scale-api', 'Redis: reservations'))} %`);
      return [power(count), computed(rounded(count * assumed.busyKeys)), computed(rounded(calls)), share];
    });
    return table(['keys', 'used in the same minute', 'reservations/s', 'of what one Redis answers'], rows);
  }

  function keyCost() {
    const [calls, file, start, memory] = [
      figure('scale-api', 'Redis: reservations'),
      ...['file', 'start', 'memory'].map((what) => figure('scale-api', `keys: 1,000,000: ${what}`)),
    ].map(measured);
    return `One Redis answers ${calls} reservations from one core. A million keys take ${file} in \`keys.sqlite\`; a server that has them starts in ${start} of processor time, with ${memory} of memory.`;
  }

  const FLEET = ['origin, peak', 'busiest cache, peak', 'half, 99 %, all', 'oldest timestamp'];
  const fleetCells = (name) =>
    FLEET.map((what) => {
      figure('fleet', `${name}: `);
      const found = parts.fleet.find((each) => each.name === `${name}: ${what}`);
      return found === undefined ? '–' : computed(found.value);
    });
  const fleetHead = ['origin, busiest second', 'busiest cache', 'half, 99 %, all have it', 'oldest timestamp'];
  const pullBytes = () => number('fleet', 'a pull of a new release', 1);

  /** What serves a number of nodes, and what ends first. */
  function serversOf(nodes) {
    // Each node pulls within a period of the schedule.
    const most = (assumed.originBitsPerSecond / 8 / pullBytes()) * assumed.scheduleSeconds * busyShare;
    if (nodes <= most) return ['one web server', 'none'];
    const caches = Math.ceil(nodes / assumed.nodesPerCache);
    const peak = number('fleet', `${nodes.toLocaleString('en-US')} nodes through caches: origin, peak`, 1);
    const isFull = 8e6 * peak > assumed.originBitsPerSecond * busyShare;
    return [
      `one web server behind ${caches} caches`,
      isFull ? 'the wire of the origin, when its caches ask at once: put a second row of caches between' : 'none',
    ];
  }

  function byNodes() {
    const rows = [100, 1_000, 10_000, 100_000].map((nodes) => {
      const name = nodes.toLocaleString('en-US');
      const cells = fleetCells(`${name} nodes through caches`);
      return [name, ...cells, scaled(nodes * pullBytes(), 'B'), ...serversOf(nodes).map(computed)];
    });
    return table(['nodes', ...fleetHead, 'wire for one release', 'engine', 'first bottleneck'], rows);
  }

  function herd() {
    const kinds = ['through caches', 'within 10 s', 'without caches', 'bad caches', 'after an outage'];
    return table(
      ['100,000 nodes', ...fleetHead],
      kinds.map((kind) => [kind, ...fleetCells(`100,000 nodes ${kind}`)]),
    );
  }

  function byReleases() {
    const nothing = 'a pull of nothing new';
    const idleBytes = () => number('fleet', nothing, 1) + number('fleet', nothing) * assumed.headerBytes;
    const rows = [1, 4, 24].map((count) => {
      const node = count * pullBytes() + (DAY / assumed.scheduleSeconds - count) * idleBytes();
      const caches = 1e5 / assumed.nodesPerCache;
      return [count, scaled(node, 'B'), scaled(1e5 * node, 'B'), scaled(caches * count * pullBytes(), 'B')];
    });
    return table(['releases a day', 'a node a day', '100,000 nodes a day', 'files from the origin, by caches'], rows);
  }

  /** The rows of a series: measured where the run has them, else on the straight line through its last two figures. */
  function series(part, sizes, nameOf, whats) {
    const known = sizes.filter((size) => parts[part]?.some(({ name }) => name === `${nameOf(size)}: ${whats.at(-1)}`));
    const [from, to] = known.slice(-2);
    return sizes.map((size) =>
      whats.map((what) => {
        if (known.includes(size)) return measured(figure(part, `${nameOf(size)}: ${what}`));
        const [a, b] = [from, to].map((each) => number(part, `${nameOf(each ?? sizes[1])}: ${what}`));
        const unit = figure(part, `${nameOf(to)}: ${what}`).replace(/^[\d.,]+/, '');
        return computed(`${rounded(a + ((b - a) * (size - from)) / (to - from))}${unit}`);
      }),
    );
  }

  function byYears() {
    const years = [1, 2, 5, 10];
    const nameOf = (count) => `history of ${count} years`;
    const rows = series('scale-history', years, nameOf, ['bytes', 'opening a day', 'one more night']);
    return table(
      ['years of nights', 'bytes', 'opening a day', 'import of one more night'],
      rows.map((row, index) => [years[index], ...row]),
    );
  }

  const FACTORS = [1, 2, 5, 10];
  function byRanges() {
    const whats = ['ranges', 'processor time', 'peak memory', 'range file'];
    return table(
      whats,
      series('scale-build', FACTORS, (factor) => `build × ${factor}`, whats),
    );
  }

  function stages() {
    const shares = FACTORS.flatMap((factor) =>
      (parts['scale-build'] ?? []).filter(({ name }) => name === `build × ${factor}: stages`),
    );
    return `The time of the largest that was measured: ${measured(shares.at(-1)?.value ?? figure('scale-build', 'build'))}.`;
  }

  function byWorkers() {
    const names = ['one worker', 'two workers', 'four workers', 'eight workers', 'two partitions', 'four partitions'];
    return table(
      ['messages of 100 KB', 'input'],
      names.map((name) => [
        name.replace('partitions', 'partitions, a worker each'),
        measured(figure('stream', `100 KB: ${name}`)),
      ]),
    );
  }

  function byBytes() {
    const coreSeconds = (index) => number('stream', '100 KB: core seconds', index) / 1e9 / busyShare;
    const best = Math.max(...['one worker', 'two workers'].map((name) => number('stream', `100 KB: ${name}`)));
    const rows = [1e9, 1e10, 1e11, 1e12].map((lines) => {
      const bytes = (lines * flatBytes) / DAY;
      const partitions = Math.ceil(bytes / (best * 1e6) / busyShare);
      return [
        ...[power(lines), scaled(bytes, 'B/s'), whole(partitions)],
        ...[whole(coreSeconds(0) * bytes), whole(coreSeconds(2) * bytes)],
        scaled(bytes * (2 + addedBytes / flatBytes), 'B/s'),
        partitions === 1
          ? 'none'
          : 'what one stream carries, then the disks of the servers: each byte is stored twice, with three replicas six times',
      ];
    });
    return table(
      [
        'flat lines a day, 100 KB a message',
        'input',
        'partitions',
        'cores of workers',
        'cores of servers',
        'written to disk',
        'first bottleneck',
      ],
      rows,
    );
  }

  /** The largest rows of the tables by lines, requests and nodes. */
  function short() {
    const rowOf = (make, name) =>
      make()
        .split('\n')
        .map((line) => line.slice(2, -2).split(' | '))
        .find(([first]) => first === name);
    const lines = rowOf(byLines, '10^12');
    const requests = rowOf(byRequests, '10^6');
    const nodes = rowOf(byNodes, '100,000');
    return table(
      ['what', 'takes', 'engine', 'first bottleneck'],
      [
        ['[10^12 lines a day](#lines-a-day)', `machines of ${serverCores} cores: ${lines[4]}`, ...lines.slice(-2)],
        [
          ...[
            '[10^6 requests a second](#requests)',
            `servers of ${serverCores} cores in ${regions} regions: ${requests[3]}`,
          ],
          ...['`ipatlas serve`, behind [DNS that routes](routing.md)', requests.at(-1)],
        ],
        ['[10^5 nodes](#nodes-that-pull)', `wire for one release: ${nodes[5]}`, ...nodes.slice(-2)],
      ],
    );
  }

  return {
    short,
    run: () => {
      const later = Object.entries(days).map(([part, date]) => `${part} on ${date}`);
      return `The last whole run was on ${day}, ${machine}${later.length === 0 ? '' : `; ${later.join(', ')}`}.`;
    },
    ...{ 'by-lines': byLines, 'by-shape': byShape, 'by-requests': byRequests, 'by-keys': byKeys, 'key-cost': keyCost },
    ...{ 'by-nodes': byNodes, herd, 'by-releases': byReleases, 'by-ranges': byRanges, stages, 'by-years': byYears },
    ...{ 'by-workers': byWorkers, 'by-bytes': byBytes },
    assumptions: () =>
      table(
        ['name in bench/assumptions.json', 'value', 'meaning'],
        Object.entries(given).map(([name, { value, meaning }]) => [
          ...[`\`${name}\``, value.toLocaleString('en-US'), meaning],
        ]),
      ),
  };
}

/** Returns a text of the page with the tables of these figures. @throws Error if the page has no place for one */
export function scalePage(page, results, assumptions) {
  let text = page;
  for (const [name, make] of Object.entries(tablesOf(results, assumptions))) {
    const place = new RegExp(`<!-- ${name} -->[\\s\\S]*?<!-- /${name} -->`);
    if (!place.test(text)) throw new Error(`docs/scale.md has no place for ${name}`);
    let content;
    try {
      content = make();
    } catch (error) {
      if (!(error instanceof MissingFigure)) throw error;
      content = error.message;
    }
    text = text.replace(place, () => `<!-- ${name} -->\n${content}\n<!-- /${name} -->`);
  }
  return text;
}

/** Rewrites the tables. */
export function writeScale() {
  writeFileSync(PAGE, scalePage(read(PAGE), JSON.parse(read(RESULTS)), JSON.parse(read(ASSUMPTIONS))));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) writeScale();
