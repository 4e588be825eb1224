/** Reports as pages in one HTML file: of a release, and of the differences between two. */
import type { Delta } from '../database/delta.js';
import { formatSize, formatSizeUnit } from '../database/diff.js';
import { type Html, html } from '../html.js';
import { COUNTRIES_SHOWN, PAIRS_SHOWN } from '../limits.js';
import { counted, grouped, percent } from '../text-table.js';
import { type Changes, type CountryDelta, changedCountries, changedShare, largestBlocks } from './changes.js';
import { type Column, page, tableOf } from './frame.js';
import type { ReleaseReport, ReportedSource } from './release-report.js';
import { type GateFigure, gateText, isExceeded, type StoredReport, stepText } from './stored-report.js';
import { changesMap } from './world-map.js';

/** Length of a bar, in the units of its view box. */
const BAR = 200;

/** Counts of a stage that say what it did not take over; the others say what it read or made. */
const REFUSED_COUNTS = new Set([
  'missing',
  'rejected',
  'skipped',
  'duplicates',
  'conflicts',
  'unknown_codes',
  'refusals',
]);

/** Returns counts of a stage as text, without those of single sources. */
export function countsText(counts: StoredReport['stages'][number]['counts'], refused: boolean): string {
  return Object.entries(counts)
    .filter(([name]) => !name.includes('.') && REFUSED_COUNTS.has(name) === refused)
    .map(([name, value]) => `${name.replaceAll('_', ' ')} ${typeof value === 'number' ? grouped(value) : value}`)
    .join(', ');
}

function gateBar(figure: GateFigure): Html {
  const { value, limit } = figure;
  // The limit is at two thirds of the bar, so that a value above it can be seen as such.
  const scale = limit === 0 ? (value === 0 ? 0 : BAR) : Math.min(BAR, (value / limit) * (BAR * (2 / 3)));
  const kind = isExceeded(figure) ? 'above' : 'value';
  return html`<svg class="bar" viewBox="0 0 ${BAR} 10" preserveAspectRatio="none" aria-hidden="true"><rect class="axis" width="${BAR}" height="10"/><rect class="${kind}" width="${scale.toFixed(1)}" height="10"/><rect class="limit" x="${((BAR * 2) / 3).toFixed(1)}" width="1.5" height="10"/></svg>`;
}

function gatesSection(stored: StoredReport | undefined): Html {
  if (stored?.gates === undefined) return html`<p>The figures of the gates were not recorded.</p>`;
  const rows = stored.gates.map((figure) => [
    figure.gate,
    gateText(figure.gate, figure.value),
    gateText(figure.gate, figure.limit),
    gateBar(figure),
    html`<span class="${isExceeded(figure) ? 'bad' : 'good'}">${isExceeded(figure) ? 'refused' : 'passed'}</span>`,
    figure.subject,
  ]);
  const table = tableOf(
    'The greatest value that each gate found, and its limit',
    [['Gate'], ['Value', 'number'], ['Limit', 'number'], ['Value and limit'], ['Outcome'], ['Found at']],
    rows,
  );
  return html`<p>${stepText(stored)}</p>${table}`;
}

function stagesSection(stored: StoredReport | undefined): Html {
  if (stored === undefined) return html`<p>The stages were not recorded.</p>`;
  return tableOf(
    'What each stage took in or made, and what it refused',
    [['Stage'], ['Seconds', 'number'], ['Taken in or made'], ['Refused or set aside']],
    stored.stages.map(({ stage, seconds, counts }) => [
      stage,
      seconds.toFixed(2),
      countsText(counts, false),
      countsText(counts, true),
    ]),
  );
}

const SOURCE_COLUMNS: readonly Column[] = [
  ['Source'],
  ['Version'],
  ['Rows', 'number'],
  ['Rejected', 'number'],
  ['Skipped', 'number'],
  ['Date of data'],
  ['Age'],
  ['How the date is known'],
  ['License'],
];

function sourceRow(source: ReportedSource) {
  const { id, version, license, attribution, rows, rejected, skipped, seed } = source;
  const date = source.data_date ?? 'unknown';
  const age = source.age_days === undefined ? 'unknown' : counted(source.age_days, 'day');
  const evidence = [source.data_date_evidence, seed && `Only for a first build: ${seed}`].filter(Boolean).join('. ');
  const rights = attribution === '' ? license : `${license}. ${attribution}`;
  const counts = [grouped(rows), grouped(rejected), skipped === undefined ? 'unknown' : grouped(skipped)];
  return [id, version, ...counts, date, age, evidence, rights];
}

function sourcesSection({ sources, manifest: { missing = [] } }: ReleaseReport): Html {
  const table = tableOf('Sources in order of priority', SOURCE_COLUMNS, sources.map(sourceRow));
  if (missing.length === 0) return table;
  const rows = missing.map(({ id, reason }) => [id, reason]);
  return html`${table}${tableOf('Optional sources that the build did without', [['Source'], ['Reason']], rows)}`;
}

/** A bar to the left for lost and to the right for gained addresses. */
function countryBar({ before, after, kept }: CountryDelta, most: bigint): Html {
  const half = BAR / 2;
  const length = (size: bigint): number => (Number(size) / Number(most)) * half;
  const [lost, gained] = [length(before - kept), length(after - kept)];
  return html`<svg class="bar" viewBox="0 0 ${BAR} 10" preserveAspectRatio="none" aria-hidden="true"><rect class="axis" x="${half - 0.5}" width="1" height="10"/><rect class="loss" x="${(half - lost).toFixed(1)}" width="${lost.toFixed(1)}" height="10"/><rect class="gain" x="${half}" width="${gained.toFixed(1)}" height="10"/></svg>`;
}

function familySection(delta: Delta, nameOf: Changes['nameOf']): Html {
  const { family, assigned, changed, lost, gained, pairs } = delta;
  const countries = changedCountries(delta);
  const unit = formatSizeUnit(family);
  if (pairs.length === 0) return html`<h3>IPv${family}</h3><p>No address has another country.</p>`;
  const size = (addresses: bigint): string => formatSize(family, addresses);
  const most = countries
    .flatMap(({ before, after, kept }) => [before - kept, after - kept])
    .reduce((a, b) => (a > b ? a : b));
  const shown = countries.slice(0, COUNTRIES_SHOWN);
  const more = countries.length - shown.length;
  const share = (part: bigint): string => (assigned === 0n ? '' : ` (${percent(Number(part) / Number(assigned))})`);
  return html`<h3>IPv${family}</h3>
<p>Of ${size(assigned)} ${unit} with a country, ${size(changed)}${share(changed)} have another country and ${size(lost)}${share(lost)} have none now; ${size(gained)}${share(gained)} that had none have one.</p>
${tableOf(
  `IPv${family} ${unit} by country, the largest changes first${more > 0 ? `; ${grouped(more)} more countries changed` : ''}`,
  [
    ['Country'],
    ['Before', 'number'],
    ['Lost', 'number'],
    ['Gained', 'number'],
    ['Now', 'number'],
    ['Changed', 'number'],
    ['Lost and gained'],
  ],
  shown.map((country) => [
    `${country.code} ${nameOf(country.code, '')}`,
    size(country.before),
    size(country.before - country.kept),
    size(country.after - country.kept),
    size(country.after),
    percent(changedShare(country)),
    countryBar(country, most),
  ]),
)}
${tableOf(
  `IPv${family}: from one result to another${pairs.length > PAIRS_SHOWN ? `; ${grouped(pairs.length - PAIRS_SHOWN)} more pairs` : ''}`,
  [['From'], ['To'], [unit, 'number'], ['Ranges', 'number']],
  pairs.slice(0, PAIRS_SHOWN).map(({ from, to, addresses, ranges }) => [from, to, size(addresses), grouped(ranges)]),
)}
${tableOf(
  `IPv${family}: the largest blocks that changed`,
  [['Block'], ['From'], ['To']],
  largestBlocks(family, delta).map(({ cidr, from, to }) => [cidr, from, to]),
)}`;
}

function renamedSection({ countries }: Changes): Html {
  if (countries.length === 0) return html``;
  const yes = (is: boolean): string => (is ? 'in the EU' : 'not in the EU');
  return tableOf(
    'Countries whose name or EU membership changed: all their results changed',
    [['Code'], ['Before'], ['Now']],
    countries.map(({ code, name, is_eu }) => [code, `${name[0]}, ${yes(is_eu[0])}`, `${name[1]}, ${yes(is_eu[1])}`]),
  );
}

function changesSection(changes: Changes): Html {
  return html`<p>Color: the share of a country's addresses that changed, IPv4 or IPv6, whichever is larger.</p>
${changesMap(changes)}
${renamedSection(changes)}
${changes.deltas.map((delta) => familySection(delta, changes.nameOf))}`;
}

function noChangesText({ stored, comparedWith }: ReleaseReport): string {
  if (comparedWith !== undefined) return `It was compared with release ${comparedWith}, which is not kept any more.`;
  return stored === undefined
    ? 'The release to compare with was not recorded.'
    : 'There was no release to compare with.';
}

function facts(entries: [string, string][]): Html {
  return html`<dl>${entries.map(([name, value]) => html`<dt>${name}</dt><dd>${value}</dd>\n`)}</dl>`;
}

/** Returns what became of a release, as a sentence. */
export function outcomeText({ manifest: { forced }, stored }: ReleaseReport): string {
  if (forced !== undefined)
    return `Published by force${forced.by === undefined ? '' : ` by ${forced.by}`} at ${forced.at}, ${forced.refusals.length === 0 ? 'although nothing had changed' : 'although gates refused it'}.`;
  if (stored?.outcome === 'refused') return 'Refused by gates; not published.';
  return stored?.outcome === 'published' ? 'Passed the gates.' : 'The outcome was not recorded.';
}

/** Returns the report of a release as a page. */
export function reportPage(report: ReleaseReport): string {
  const { manifest, stored, changes, age } = report;
  const { counts } = manifest;
  const refusals = stored?.refusals ?? [];
  const alert =
    refusals.length === 0
      ? html``
      : html`<section class="alert" aria-labelledby="refusals"><h2 id="refusals">Reasons against publishing</h2>
<ul>${refusals.map(({ gate, message }) => html`<li><strong>${gate}</strong>: ${message}</li>\n`)}</ul></section>`;
  return page(
    `ipatlas release ${manifest.id}`,
    html`<h1>Release ${manifest.id}</h1>
<p class="${refusals.length > 0 ? 'bad' : 'good'}">${outcomeText(report)}</p>
${alert}
${facts([
  ['As of', manifest.as_of],
  ['Checked', stored?.finished ?? 'not recorded'],
  ['Date of the data', `${manifest.data_date ?? 'unknown'}, ${age}`],
  ['Made by', `ipatlas ${manifest.tool_version}`],
  ['Ranges', `${grouped(counts.ipv4_ranges)} IPv4, ${grouped(counts.ipv6_ranges)} IPv6`],
  ['Countries', grouped(counts.countries)],
  [
    'With a country',
    `${grouped(BigInt(counts.ipv4_addresses_with_country))} IPv4 addresses, ${grouped(BigInt(counts.ipv6_48s_with_country))} IPv6 /48s`,
  ],
])}
<h2>Gates</h2>
${gatesSection(stored)}
<h2>Stages</h2>
${stagesSection(stored)}
<h2>Sources</h2>
${sourcesSection(report)}
<h2>What changed</h2>
${
  changes === undefined
    ? html`<p>${noChangesText(report)}</p>`
    : html`<p>Compared with release ${changes.before.id}, as of ${changes.before.as_of}.</p>${changesSection(changes)}`
}`,
  );
}

/** Returns the differences between two releases as a page. */
export function diffPage(changes: Changes): string {
  const { before, after } = changes;
  return page(
    `ipatlas: ${before.id} and ${after.id}`,
    html`<h1>From release ${before.id} to ${after.id}</h1>
${facts([
  ['Before', `${before.id}, as of ${before.as_of}, data of ${before.data_date ?? 'unknown date'}`],
  ['Now', `${after.id}, as of ${after.as_of}, data of ${after.data_date ?? 'unknown date'}`],
])}
<h2>What changed</h2>
${changesSection(changes)}`,
  );
}
