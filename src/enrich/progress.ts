/** The progress line and the summary of an enrichment, for people. */
import { CLEAR_LINE, isTerminal, PROGRESS, STANDARD_FD } from '../standard-streams.js';
import { counted, grouped } from '../text-table.js';
import type { EnrichCounts } from './counts.js';

const BAR_WIDTH = 20;
/** Time between two updates of the line, in milliseconds: smooth to the eye at no cost. */
const REDRAW_MS = 200;
const UNITS = ['kB', 'MB', 'GB', 'TB'];

/** Formats a number of bytes in powers of 1000. */
export function formatBytes(bytes: number): string {
  if (bytes < 999.5) return `${Math.round(bytes)} B`;
  let value = bytes;
  let unit = -1;
  do {
    value /= 1000;
    unit++;
  } while (value >= 999.95 && unit < UNITS.length - 1);
  return `${value.toFixed(1)} ${UNITS[unit]}`;
}

/** Formats seconds as `8 s`, `2 min 5 s` or `1 h 20 min`. */
export function formatDuration(seconds: number): string {
  const whole = Math.ceil(seconds);
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
}

/**
 * Formats the progress line.
 *
 * @param total bytes in all inputs, if known
 * @param seconds since the start
 */
export function progressLine({ bytes, lines }: EnrichCounts, total: number | undefined, seconds: number): string {
  const rate = `${grouped(seconds > 0 ? Math.round(lines / seconds) : 0)} lines/s`;
  if (total === undefined || total === 0) return `${formatBytes(bytes)}  ${grouped(lines)} lines  ${rate}`;
  const share = Math.min(bytes / total, 1);
  const done = Math.round(share * BAR_WIDTH);
  const bar = `[${'#'.repeat(done)}${'-'.repeat(BAR_WIDTH - done)}]`;
  const left = bytes === 0 ? '' : `  ${formatDuration((seconds / bytes) * Math.max(total - bytes, 0))} left`;
  const percent = `${Math.floor(share * 100)} %`.padStart(5);
  return `${bar} ${percent}${left}  ${formatBytes(bytes)} of ${formatBytes(total)}  ${rate}`;
}

/**
 * Shows the progress if stderr is a terminal.
 *
 * @param counts read at each update
 * @returns a function that stops the updates and clears the line
 */
export function showProgress(counts: EnrichCounts, total: number | undefined): () => void {
  // Asking `process.stderr` would load the streams, which takes 3 ms.
  if (!isTerminal(STANDARD_FD.error)) return () => {};
  const terminal = process.stderr;
  const begun = performance.now();
  const timer = setInterval(() => {
    const line = progressLine(counts, total, (performance.now() - begun) / 1000);
    terminal.write(CLEAR_LINE + line.slice(0, terminal.columns - 1));
  }, REDRAW_MS);
  timer.unref();
  PROGRESS.isShown = true;
  return () => {
    clearInterval(timer);
    PROGRESS.isShown = false;
    terminal.write(CLEAR_LINE);
  };
}

/** Formats the summary at the end. */
export function summaryText(counts: EnrichCounts, seconds: number): string {
  const rate = seconds > 0 ? formatBytes(counts.bytes / seconds) : '-';
  const rows: [string, number][] = [
    ['found', counts.found],
    ['no country', counts.no_country],
    ['invalid address', counts.invalid_address],
    ['missing field', counts.missing_field],
    ['invalid lines', counts.invalid_line],
    ...(counts.missing_date > 0 ? [['missing date', counts.missing_date] as [string, number]] : []),
    ...(counts.damaged_history > 0 ? [['damaged history', counts.damaged_history] as [string, number]] : []),
  ];
  const width = grouped(Math.max(...rows.map(([, count]) => count))).length;
  const head = `${counted(counts.lines, 'line')}, ${formatBytes(counts.bytes)} in ${seconds.toFixed(1)} s (${rate}/s)\n`;
  return head + rows.map(([name, count]) => `  ${name.padEnd(15)}  ${grouped(count).padStart(width)}\n`).join('');
}
