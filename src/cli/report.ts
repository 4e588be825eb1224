/** `ipatlas report`: what the build of a release did, as text, JSON or one HTML page. */
import { countryNames } from '../country/names.js';
import { formatSize, formatSizeUnit } from '../database/diff.js';
import { CURRENT_LINK, namedRelease } from '../database/release.js';
import { EXIT, misuse } from '../errors.js';
import { COUNTRIES_SHOWN } from '../limits.js';
import { type Changes, changedCountries, changedShare, largestBlocks } from '../report/changes.js';
import { describeRelease, type ReleaseReport, reportJson } from '../report/release-report.js';
import { countsText, outcomeText, reportPage } from '../report/report-page.js';
import { gateText, isExceeded, stepText } from '../report/stored-report.js';
import { grouped, percent, table } from '../text-table.js';
import { type Command, factLines, type Invocation, LANG_FLAG, outputPath, print, text } from './command.js';
import { writePage } from './diff.js';

function gatesText({ stored }: ReleaseReport): string {
  if (stored?.gates === undefined) return 'the figures of the gates were not recorded\n';
  const rows = stored.gates.map((figure) => {
    const { gate, value, limit, subject = '' } = figure;
    return [gate, gateText(gate, value), gateText(gate, limit), isExceeded(figure) ? 'refused' : 'passed', subject];
  });
  return `${stepText(stored)}\n${table([['GATE', 'VALUE', 'LIMIT', 'OUTCOME', 'FOUND AT'], ...rows], [1, 2])}`;
}

function stagesText({ stored }: ReleaseReport): string {
  if (stored === undefined) return 'the stages were not recorded\n';
  const rows = stored.stages.map(({ stage, seconds, counts }) => {
    return [stage, seconds.toFixed(2), countsText(counts, false), countsText(counts, true)];
  });
  return table([['STAGE', 'SECONDS', 'TAKEN IN OR MADE', 'REFUSED OR SET ASIDE'], ...rows], [1]);
}

function sourcesText({ sources, manifest }: ReleaseReport): string {
  const rows = sources.map((source) => [
    source.id,
    source.version,
    grouped(source.rows),
    grouped(source.rejected),
    source.data_date ?? 'unknown',
    source.age_days === undefined ? 'unknown' : grouped(source.age_days),
    source.data_date_evidence ?? '',
  ]);
  const head = ['SOURCE', 'VERSION', 'ROWS', 'REJECTED', 'DATE', 'DAYS OLD', 'HOW THE DATE IS KNOWN'];
  const missing = (manifest.missing ?? []).map(({ id, reason }) => `missing: ${id}: ${reason}\n`);
  return table([head, ...rows], [2, 3, 5]) + missing.join('');
}

function changesText({ before, deltas, nameOf }: Changes): string {
  const parts = deltas.map((delta) => {
    const { family } = delta;
    const countries = changedCountries(delta);
    if (countries.length === 0) return `IPv${family}: no difference\n`;
    const rows = countries.slice(0, COUNTRIES_SHOWN).map((country) => {
      const { code, after, before, kept } = country;
      const sizes = [before, before - kept, after - kept, after].map((size) => formatSize(family, size));
      return [`${code} ${nameOf(code, '')}`.trim(), ...sizes, percent(changedShare(country))];
    });
    const blocks = largestBlocks(family, delta).map(({ cidr, from, to }) => [`  ${cidr}`, from, '→', to]);
    return [
      `IPv${family} ${formatSizeUnit(family)} by country:\n`,
      table([['COUNTRY', 'BEFORE', 'LOST', 'GAINED', 'NOW', 'CHANGED'], ...rows], [1, 2, 3, 4, 5]),
      `largest blocks:\n${table(blocks)}`,
    ].join('');
  });
  return `compared with ${before.id}, as of ${before.as_of}\n${parts.join('')}`;
}

function reportText(report: ReleaseReport): string {
  const { manifest, stored, age, comparedWith, changes } = report;
  const { counts } = manifest;
  const kept = comparedWith === undefined ? 'no release to compare with\n' : `${comparedWith} is not kept any more\n`;
  return [
    factLines([
      ['release', manifest.id],
      ['outcome', outcomeText(report)],
      ['checked', stored?.finished ?? 'not recorded'],
      ['as of', manifest.as_of],
      ['date of the data', `${manifest.data_date ?? 'unknown'}, ${age}`],
      ['ranges', `${grouped(counts.ipv4_ranges)} IPv4, ${grouped(counts.ipv6_ranges)} IPv6`],
    ]),
    ...(stored?.refusals ?? []).map(({ gate, message }) => `refused by ${gate}: ${message}\n`),
    `\n${gatesText(report)}`,
    `\n${stagesText(report)}`,
    `\n${sourcesText(report)}`,
    `\n${changes === undefined ? kept : changesText(changes)}`,
  ].join('');
}

async function run({ dataDir, values, positionals }: Invocation): Promise<number> {
  if (values.json === true && values.html !== undefined) {
    throw misuse('give --json or --html, not both');
  }
  const lang = text(values, 'lang');
  if (lang !== undefined && values.json === true) throw misuse('--json has no names; leave out --lang');
  const names = countryNames(lang ?? 'en', '--lang');
  const report = describeRelease(dataDir, namedRelease(dataDir, positionals[0] ?? CURRENT_LINK), Date.now(), names);
  if (values.html !== undefined) await writePage(outputPath(values, 'html'), reportPage(report));
  else if (values.json === true) await print(`${JSON.stringify(reportJson(report))}\n`);
  else await print(reportText(report));
  return EXIT.ok;
}

export const command: Command = {
  usage: ['report [ID]'],
  description: `Shows what the build of a release did: what each stage took in and refused, the limits of the gates and the values
they found, the age of every source, and what changed by country against the release that was current then. ID is the
id of a release (also of a refused one), "current" (default), or a directory of a release.`,
  options: {
    html: {
      value: 'FILE',
      help: 'write one HTML page with a map, which needs no other file and makes no request; - is standard output',
    },
    json: { help: 'print the facts as JSON' },
    lang: LANG_FLAG,
  },
  examples: {
    'ipatlas report': 'the build of the current release',
    'ipatlas report --html report.html': 'as a page with a map',
  },
  operand: 'release',
  arguments: [0, 1],
  run,
};
