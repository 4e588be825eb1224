// The table of README.md, from the figures of the last `make bench`, so that it cannot differ from them. `node bench/readme.js` rewrites it.
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const README = new URL('../README.md', import.meta.url);
const RESULTS = new URL('results.json', import.meta.url);
const PLACE = /<!-- bench -->[\s\S]*<!-- \/bench -->/;

/** Returns the part of README.md with the figures. @throws Error if a run has no such figure */
export function speedTable({ day, machine, parts }) {
  const row = (part, name) => {
    const found = parts[part]?.find((each) => each.name.startsWith(name));
    if (found === undefined)
      throw new Error(`bench/results.json has no "${name}" of ${part}; run "node bench/run.js ${part}"`);
    return found;
  };
  const value = (part, name) => row(part, name).value;
  const memory = row('enrich', 'peak memory over');
  const rows = [
    [
      'enriching flat log lines as JSON, one thread',
      `${value('enrich', 'ipatlas enrich, one job')}, ${value('enrich', 'one job / JSON.parse')} the speed of \`readline\`, \`JSON.parse\` and \`maxmind\``,
    ],
    ['enriching CSV, one thread', `${value('enrich-formats', 'CSV plain')} the speed of \`csv-parse\` and \`maxmind\``],
    [`memory while enriching${memory.name.slice('peak memory over'.length)}`, memory.value],
    [
      'a lookup of text as a library',
      `IPv4 in ${value('lookup', 'IPv4 text: ipatlas country')}, IPv6 in ${value('lookup', 'IPv6 text: ipatlas country')}: ${value('lookup', 'IPv4 text: mmdb-lib / ipatlas country')} and ${value('lookup', 'IPv6 text: mmdb-lib / ipatlas country')} the speed of \`mmdb-lib\``,
    ],
    [
      '`ipatlas lookup`, `ipatlas enrich` of one line, from cold',
      `${value('lookup', 'cold start: lookup')} and ${value('lookup', 'cold start: enrich')} the time of an empty Node program`,
    ],
    [
      'a lookup over HTTP',
      `${value('api', 'single lookups, key in the header').split(', ')[1]} of processor time; a Fastify route that only sends the same response takes ${value('api', '    processor time: Fastify').trim()} of that`,
    ],
    ['batches over HTTP', `${value('api', 'batches of 1000')} from one process`],
  ].map(([what, figure]) => `| ${what} | ${figure} |`);
  return `<!-- bench -->\nThe last run, on ${day}, ${machine}:\n\n| | |\n|---|---|\n${rows.join('\n')}\n<!-- /bench -->`;
}

/** Rewrites the table. */
export function writeReadme() {
  const text = readFileSync(README, 'utf8');
  writeFileSync(README, text.replace(PLACE, speedTable(JSON.parse(readFileSync(RESULTS, 'utf8')))));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) writeReadme();
