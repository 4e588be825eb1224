/** Runs a command that processes records. */
import { seedFacts } from '../../database/origin.js';
import { type EnrichCounts, emptyCounts, type HidingCounts, warningOf } from '../../enrich/counts.js';
import type { EnrichRequest } from '../../enrich/enrich.js';
import { hasFields, type InputOptions } from '../../enrich/options.js';
import type { Output } from '../../enrich/output/output.js';
import { showProgress, summaryText } from '../../enrich/progress.js';
import { EXIT } from '../../errors.js';
import { makeFolder } from '../../files.js';
import type { Damage } from '../../history/over-time.js';
import { endBySignal, watchStopSignals } from '../../signals.js';
import { isTerminal, STANDARD_FD } from '../../standard-streams.js';
import { counted, grouped } from '../../text-table.js';
import { NOTES, printNote, printNotice } from '../command.js';
import { awaitReaders, OutputClosed, openOutput, openSideOutput } from './outputs.js';
import { type RecordPlan, STDOUT_PATH } from './plan.js';
import { NOTHING_FOUND } from './recognition.js';

/** What a run reads from and writes to. */
export type RecordWork = Pick<EnrichRequest, 'inputs' | 'rejects' | 'counts' | 'signal' | 'kept'> & { output: Output };

/** Shows the progress, unless its line would be among records on the same terminal. */
function startProgress({ targets, rejects, total }: RecordPlan, counts: EnrichCounts): () => void {
  const usesStdout = rejects === STDOUT_PATH || targets.some(({ output }) => output === undefined);
  const isHidden = NOTES.areQuiet || (usesStdout && isTerminal(STANDARD_FD.output));
  return isHidden ? () => {} : showProgress(counts, total);
}

/** Says which days of the history are damaged, and what to do. */
function damageText({ damaged_history: count }: EnrichCounts, damage: readonly Damage[]): string {
  const days = damage.map(({ from, to, problem }) => `  ${from === to ? from : `${from} to ${to}`}: ${problem}\n`);
  return (
    `ipatlas: E_DAMAGED: ${grouped(count)} ${count === 1 ? 'address has' : 'addresses have'} no result, because the history of their dates is damaged; ` +
    `all others have theirs. Restore the files of these days, then run this again:\n${days.join('')}`
  );
}

/** Says how many addresses were hidden, and how many records have others. */
function hiddenText({ hidden }: HidingCounts, { redaction, input }: InputOptions): string {
  const { addresses, searched_records, records_with_others } = hidden;
  const advice = redaction?.isOfAll === true || input.kind === 'text' ? '' : '; --redact-all hides these, too';
  const searched = `${counted(searched_records, 'record')} searched for others`;
  const verb = records_with_others === 1 ? 'has' : 'have';
  const others =
    records_with_others === 0
      ? `none in ${searched}`
      : `of ${searched}, ${grouped(records_with_others)} still ${verb} text that looks like one${advice}`;
  return `ipatlas: ${counted(addresses, 'address', 'addresses')} hidden; ${others}\n`;
}

/** Says what a complete run has not found. @returns the exit code */
function verdict({ guess, needsAddress }: RecordPlan, counts: EnrichCounts, damage: readonly Damage[]): number {
  const { found, no_country, invalid_address, missing_field, invalid_line, missing_date, damaged_history } = counts;
  if (damaged_history > 0) {
    printNote(damageText(counts, damage));
    return EXIT.noDatabase;
  }
  const { publicElsewhere, find, takesJson } = guess ?? {};
  if (found === 0 && no_country > 0 && publicElsewhere !== undefined)
    printNotice(
      `ipatlas: all addresses that were looked up are private, as those of a proxy are; other addresses of the same records are public: ${publicElsewhere}\n`,
    );
  const hasAddress = found + no_country + missing_date > 0;
  // Not even text with an address was found.
  const isUnused = takesJson === true && !hasAddress && invalid_address + missing_field === 0 && invalid_line > 0;
  const isEmpty = needsAddress === true && !hasAddress && invalid_address + missing_field + invalid_line > 0;
  if (find !== undefined && (isUnused || (!hasAddress && missing_field > 0)))
    (isEmpty ? printNote : printNotice)(`ipatlas: ${NOTHING_FOUND}\n`);
  if (isEmpty)
    printNote('ipatlas: no record has an address; the output is written, and --none-ok says that this is no error\n');
  return isEmpty || (needsAddress === undefined && isUnused) ? EXIT.badInput : EXIT.ok;
}

/**
 * Opens the outputs, runs a command's work, and writes the statistics.
 *
 * @param finish what to do at the end; by default, the counts are printed to stderr
 * @returns the exit code
 */
export async function runPlan(
  plan: RecordPlan,
  work: (work: RecordWork) => Promise<readonly Damage[]>,
  finish?: (counts: EnrichCounts) => Promise<void>,
): Promise<number> {
  const { targets, rejects: rejected, stats: counted } = plan;
  if (plan.folder !== undefined) makeFolder(plan.folder);
  const releasePipes = awaitReaders([...targets.map(({ output }) => output), rejected, counted]);
  let output: Output | undefined;
  // What was read is processed and written; a second signal ends the process.
  const signals = watchStopSignals((name) => {
    output?.abandon();
    signals.stop();
    endBySignal(name);
  });
  output = targets[0] && openOutput(targets[0]);
  const rejects = openSideOutput(rejected);
  const stats = openSideOutput(counted);
  releasePipes();
  const counts = emptyCounts(plan.options.redaction !== undefined);
  const shared = { rejects, counts, signal: signals.signal, kept: {} };
  const startedAt = process.uptime();
  const stopProgress = startProgress(plan, counts);
  const seconds = () => process.uptime() - startedAt;
  let warning: string | undefined;
  const damage: Damage[] = [];
  try {
    for (const target of targets) {
      output ??= openOutput(target);
      try {
        damage.push(...(await work({ ...shared, inputs: target.inputs, output })));
        await output.end();
      } catch (error) {
        // What was written stays a complete compressed file. If the output itself has failed, its first error counts.
        if (target.compression !== undefined) await output.end().catch(() => {});
        throw error;
      }
      if (signals.received() !== undefined) break;
      output.commit();
      output = undefined;
    }
    const { fields, input, lenient } = plan.guess?.options ?? plan.options;
    // Without a database, no address has a country.
    const isLookedUp = plan.database !== undefined || counts.found + counts.no_country === 0;
    warning = isLookedUp ? warningOf(counts, hasFields(input) ? fields : [], lenient === true) : undefined;
    stopProgress();
    await finish?.(counts);
  } catch (error) {
    if (error instanceof OutputClosed) return EXIT.ok;
    throw error;
  } finally {
    stopProgress();
    signals.stop();
    output?.abandon();
    rejects?.commit();
    const facts = { ...counts, seconds: seconds(), warning, ...(plan.database && seedFacts(plan.database)) };
    await stats?.write(Buffer.from(`${JSON.stringify(facts)}\n`));
    stats?.commit();
  }
  if (finish === undefined) printNotice(summaryText(counts, seconds()));
  if ('hidden' in counts) printNotice(hiddenText(counts as HidingCounts, plan.options));
  if (warning !== undefined) printNotice(`ipatlas: warning: ${warning}\n`);
  const received = signals.received();
  if (received === undefined) return verdict(plan, counts, damage);
  printNotice(`ipatlas: stopped by ${received} before the end of the input\n`);
  if (received !== 'SIGINT') endBySignal(received);
  return EXIT.interrupted;
}
