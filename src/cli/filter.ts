/** `ipatlas filter`: passes on the records whose address is in certain countries. */
import { enrich } from '../enrich/enrich.js';
import { FORMAT_NAMES } from '../enrich/options.js';
import type { Filter } from '../enrich/query.js';
import { AtlasError } from '../errors.js';
import type { Command, Invocation, OptionValues } from './command.js';
import {
  FIELD_HELP,
  INPUT_OPTIONS,
  JOBS_HELP,
  OUTPUT_HELP,
  OUTPUT_OPTIONS,
  PLAIN_FORMAT_HELP,
  parseStreamRequest,
  runStream,
  SHAPE_HELP,
} from './records.js';

function parseFilter(values: OptionValues): Filter {
  const codes = ((values.country ?? []) as string[]).flatMap((list) => list.split(','));
  const invalid = codes.find((code) => !/^[A-Za-z]{2}$/.test(code));
  if (invalid !== undefined) {
    throw new AtlasError(
      'E_USAGE',
      `--country has ${JSON.stringify(invalid)}; write ISO 3166-1 alpha-2 codes with commas between them, such as DE,FR`,
    );
  }
  const selectsEu = values.eu === true;
  if (codes.length === 0 && !selectsEu) {
    throw new AtlasError('E_USAGE', 'choose the countries with --country LIST, or --eu; see "ipatlas filter --help"');
  }
  const countries = new Set(codes.map((code) => code.toUpperCase()));
  return { kind: 'filter', countries, selectsEu, isInverted: values.not === true };
}

async function run(invocation: Invocation): Promise<number> {
  const query = parseFilter(invocation.values);
  const request = parseStreamRequest(invocation);
  const { fields, lenient } = request;
  // An invalid line has no address.
  const onInvalid = query.isInverted ? 'keep' : 'drop';
  return runStream(request, (work) =>
    enrich({ ...request, ...work, options: { fields, add: [], lenient, onInvalid, query } }),
  );
}

export const command: Command = {
  help: `Usage: ipatlas filter --country LIST|--eu [--not] [FILE…]

Passes on the lines, records or items whose address is in one of the countries,
byte for byte; the header of a table is always passed on. Reads several files
one after the other; without a file, or for "-", it reads stdin. gzip is
recognized, and zstd from Node 22.15 on. Writes to stdout.

  --country LIST       ISO 3166-1 alpha-2 codes, such as DE,FR; repeatable
  --eu                 all countries of the European Union
  --not                pass on all other lines instead, including those without
                       an address
${FIELD_HELP}
                       repeatable, default ip. With several, one address in
                       the countries is enough
${PLAIN_FORMAT_HELP}
${SHAPE_HELP}
${JOBS_HELP}. The order of lines is kept
${OUTPUT_HELP}
  --stats FILE         write the counts to FILE as JSON; "-" is stdout, if the
                       output is a file
`,
  options: {
    ...INPUT_OPTIONS,
    ...OUTPUT_OPTIONS,
    country: { type: 'string', multiple: true },
    eu: { type: 'boolean' },
    not: { type: 'boolean' },
  },
  arguments: [0, Number.POSITIVE_INFINITY],
  writesToDescriptor: true,
  choices: { format: FORMAT_NAMES },
  needsDatabase: true,
  run,
};
