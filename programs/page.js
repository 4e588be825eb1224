/** Makes docs/programs.md of the entries and of what the last run found. `node programs/page.js` rewrites it. */
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { NOT_TESTED, PROGRAMS } from './entries/entries.js';

const RESULTS = new URL('results.json', import.meta.url);
const PAGE = new URL('../docs/programs.md', import.meta.url);

/** Info strings of code blocks by the end of a file's name. */
const LANGUAGES = { py: 'python', pl: 'perl', rb: 'ruby', mjs: 'js', cfg: 'haproxy', list: 'text', vcl: 'vcl' };

/** Returns what identifies the text of an entry as it ran. */
export function textHash({ exports, files, load, start, reload, command, before }) {
  const text = JSON.stringify([exports, files, load, start, reload, command, before]);
  return createHash('sha256').update(text).digest('hex').slice(0, 12);
}

/** Files that no program of the entries reads. */
const OTHER_FILES = `### asn-mmdb

Who announces an address, for the readers of [mmdb](#mmdb): [exports.md](exports.md#networks).

### parquet

DuckDB, Spark, Trino and warehouses: [warehouses.md](warehouses.md).`;

const anchor = (heading) =>
  heading
    .toLowerCase()
    .replaceAll(/[^\w -]/g, '')
    .replaceAll(' ', '-');
const link = ({ name }) => `[${name}](#${anchor(name)})`;
const fence = (language, text) => `\`\`\`${language}\n${text.replace(/\n?$/, '\n')}\`\`\``;
const number = (value, digits = 0) =>
  value.toLocaleString('en-US', { minimumFractionDigits: digits, maximumFractionDigits: digits });
const megabytes = (bytes) => (bytes < 10e6 ? number(bytes / 1e6, 1) : number(bytes / 1e6));
const formatsOf = ({ exports }) => [
  ...new Set([...exports.matchAll(/ipatlas export ([\w-]+)/g)].map(([, format]) => format)),
];

/** How a newer release gets in. */
function releaseText({ release, reload, start }, { noticed }) {
  if (start === undefined) return release ?? 'with the next start';
  if (reload === 'restart') return `by a restart, ${number(noticed, 1)} s`;
  const how = release ?? (reload === undefined ? 'by itself' : reload.includes('\n') ? 'as below' : `\`${reload}\``);
  return `${how}, ${number(noticed, 1)} s`;
}

function row(program, result) {
  const { version, answers, differences, memory, seconds } = result;
  const ready = seconds === undefined ? '' : `${number(seconds, 1)} s`;
  return `| ${link(program)} | ${version} | ${number(answers)} | ${differences} | ${memory === undefined ? '' : `${megabytes(memory)} MB`} | ${ready} | ${releaseText(program, result)} |`;
}

function section(program) {
  const { name, exports, files = {}, before, load, start, isService, reload, command, note } = program;
  const parts = [`### ${name}`, fence('sh', exports + (before ?? ''))];
  for (const [path, text] of Object.entries(files)) {
    const ending = /\.(\w+)$/.exec(path)?.[1];
    parts.push(`\`${path}\`:`, fence(program.language ?? LANGUAGES[ending] ?? ending ?? 'text', text));
  }
  if (command !== undefined) parts.push('The question:', fence(program.commandLanguage ?? 'sh', command));
  if (start !== undefined && !isService) parts.push(`Start: \`${start}\``);
  if (load !== undefined)
    parts.push(reload === load ? 'Then, and after each export:' : 'Then, once:', fence('sh', load));
  if (reload !== load && reload?.includes('\n')) parts.push('After a newer export:', fence('sh', reload));
  if (note !== undefined) parts.push(note);
  return parts.join('\n\n');
}

/** Returns the page. @throws Error if the results are not those of the entries as they are now */
export function programsPage({ day, system, programs }) {
  const ran = [];
  const skipped = [...NOT_TESTED];
  for (const program of PROGRAMS) {
    const result = programs.find(({ name }) => name === program.name);
    if (result?.text !== textHash(program) || result.failure !== undefined) {
      throw new Error(`programs/results.json has no result of "${program.name}" as it is; run "node programs/run.js"`);
    }
    if (result.skipped === undefined) ran.push([program, result]);
    else skipped.push([program.name, result.skipped]);
  }
  const formats = [...new Set(ran.flatMap(([program]) => formatsOf(program)))];
  const jobs = [...new Set(ran.map(([{ job }]) => job))];
  return `<!-- Printed by programs/page.js from what ran: change programs/entries and run "node programs/run.js", see CONTRIBUTING.md. -->
# Programs that read it

The country of an address in ${ran.length} programs of Debian and npm, from exports of \`ipatlas\`. All of them ran exactly as they are printed here, last on
${day} (${system}): started, asked for addresses of both families, given a newer release, asked again. Each answer was compared with \`ipatlas
lookup\`; ${number(ran.reduce((sum, [, { answers }]) => sum + answers, 0))} answers, no difference. \`make soak\` repeats it, and this page is printed from it.

${jobs
  .map((job) => {
    const rows = ran.filter(([program]) => program.job === job).map(([program, result]) => row(program, result));
    return `**${job}**\n\n| program | version | answers | differences | memory | ready | newer release, noticed after |\n|---|---|--:|--:|--:|--:|---|\n${rows.join('\n')}`;
  })
  .join('\n\n')}

Memory is that of all processes of a server with the database loaded, what they share counted once (proportional set size). Ready is the time from the start to the first right answer, on two busy cores. Addresses of 6to4, Teredo, NAT64 and IPv4-mapped
ones are not among those asked for; [exports.md](exports.md#ipv6-addresses-that-embed-an-ipv4-address) says what each export does with them.

## By file

${formats
  .map((format) => {
    const readers = ran.filter(([program]) => formatsOf(program).includes(format)).map(([program]) => link(program));
    return `### ${format}\n\n${readers.join(', ')}`;
  })
  .join('\n\n')}

${OTHER_FILES}

## Not tested

${skipped.map(([name, reason]) => `- ${name}: ${reason}`).join('\n')}

${jobs
  .map((job) => {
    const sections = ran.filter(([program]) => program.job === job).map(([program]) => section(program));
    return `## ${job}\n\n${sections.join('\n\n')}`;
  })
  .join('\n\n')}
`;
}

/** Rewrites the page. */
export function writePage() {
  writeFileSync(PAGE, programsPage(JSON.parse(readFileSync(RESULTS, 'utf8'))));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) writePage();
