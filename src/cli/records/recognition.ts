/** What the commands that process records find in their inputs if no flag says it. */
import { describe, optionsOf } from '../../enrich/detection.js';
import type { EnrichRequest } from '../../enrich/enrich.js';
import { splitSpec } from '../../enrich/field-path.js';
import { type Detected, findFields } from '../../enrich/find-fields.js';
import { addressNames } from '../../enrich/known-logs.js';
import { formsOf, logOf, withoutJson } from '../../enrich/logs.js';
import type { FormatName, InputOptions } from '../../enrich/options.js';
import { recognizeLog } from '../../enrich/recognize-log.js';
import { type OptionValues, printNotice, text } from '../command.js';
import { flagOf, logsOf, requestedOptions } from './flags.js';

/** How long a pipe is waited for after its first line, in ms. */
const FIRST_LINE_WAIT_MS = 50;

/** Returns a function that finds what the flags do not say. */
function finderOf(values: OptionValues): (text: string, isWhole: boolean, name: string) => Detected {
  const { format, delimiter, lenient, field } = requestedOptions(values);
  const specs = field as string[] | undefined;
  const given = { format, delimiter, lenient, field: specs?.map((spec) => splitSpec(spec).path) };
  return (head, isWhole, name) => {
    const found = findFields(head, isWhole, given, addressNames(), name);
    return found && specs ? { ...found, field: specs } : found;
  };
}

/** Says what was looked for, and what to do. */
export const NOTHING_FOUND =
  'no addresses were found in the first 64 KiB or 100 lines as a log by name, JSON, a table, a list, key=value or text; if there are some further on, say where with --format and --field';

/** How inputs are recognized, and the options for the one that was recognized last. */
export type Recognition = NonNullable<EnrichRequest['guess']> & { options?: InputOptions };

/** Returns how the inputs are recognized, undefined if the format is known. */
export function recognitionOf(values: OptionValues): Recognition | undefined {
  const format = text(values, 'format') as FormatName | undefined;
  const name = text(values, 'log');
  const isFixed = ['log', 'items', 'no-header', 'no-guess'].some((flag) => values[flag] !== undefined);
  // With a format, only its fields can be found.
  const isFound =
    format === undefined || (values.field === undefined && ['jsonl', 'json', 'csv', 'tsv'].includes(format));
  const find = isFound && !isFixed ? finderOf(values) : undefined;
  if (format !== undefined && find === undefined) return undefined;
  const forms = name === undefined ? undefined : formsOf(name, logsOf(values));
  if (forms !== undefined && Object.keys(forms).length < 2) return undefined;
  const requested = { ...requestedOptions(values), log: undefined };
  return {
    find,
    patience: () =>
      new Promise((resolve) => {
        setTimeout(resolve, FIRST_LINE_WAIT_MS).unref();
      }),
    takesJson: name === undefined && format === undefined,
    // JSON is recognized by its first byte.
    recognize: (input, head, isWhole) => {
      if (format !== undefined) return undefined;
      const found = recognizeLog(input, head, isWhole, forms ?? withoutJson(logsOf(values)));
      return name !== undefined && found?.log === logOf(name, logsOf(values)) ? undefined : found;
    },
    onLog(input, guessed) {
      printNotice(`ipatlas: ${input}: ${describe(guessed)}\n`);
      this.publicElsewhere ??= guessed.publicElsewhere;
    },
    optionsFor(guessed) {
      this.options = optionsOf(guessed, requested, flagOf);
      return this.options;
    },
  };
}
