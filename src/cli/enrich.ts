/** `ipatlas enrich`: adds the country to every line, record or item of a stream. */
import { enrich } from '../enrich/enrich.js';
import { FORMAT_NAMES, INVALID_POLICIES, parseAdd } from '../enrich/options.js';
import { type Command, type Invocation, text } from './command.js';
import {
  INPUT_OPTIONS,
  JOBS_HELP,
  OUTPUT_HELP,
  OUTPUT_OPTIONS,
  parseStreamRequest,
  runStream,
  SHAPE_HELP,
} from './records.js';

async function run(invocation: Invocation): Promise<number> {
  const add = parseAdd(text(invocation.values, 'add'));
  const request = parseStreamRequest(invocation);
  const { fields, lenient, onInvalid } = request;
  return runStream(request, (work) => enrich({ ...request, ...work, options: { fields, add, lenient, onInvalid } }));
}

export const command: Command = {
  help: `Usage: ipatlas enrich [FILE…]

Adds the country of an address to every line, record or item, and leaves all
other bytes unchanged. Reads several files one after the other; without a file,
or for "-", it reads stdin. gzip is recognized, and zstd from Node 22.15 on.
Writes to stdout.

  --field PATH[=TARGET]
                       where the address is: a key, a path with dots
                       (client.ip), an element of an array (hops[0]), its
                       first element with a country (hops[]), or a column;
                       repeatable, default ip. A dot in a key is written as
                       \\. (client\\.ip). TARGET is the key of the result, or
                       its path in an object of PATH (client.ip=client.geo):
                       default geo or, with several fields, the path and _geo
  --lenient            also find addresses with a port, brackets or a prefix
                       length, and the first one in a list with commas, such
                       as that of X-Forwarded-For
  --add LIST           what to add: of country,country_code,is_eu,reason,
                       confidence; default the first three
  --format FORMAT      jsonl  one JSON object per line (default)
                       json   one array of objects, or a document with such an
                              array (--items)
                       csv    a table with a header; columns such as
                              NAME_country are appended
                       tsv    the same with tabs
                       list   one address per line; the result is appended
                              after tabs
                       combined  access logs of nginx and Apache; the result
                              is appended as quoted fields
                       text   any lines; the result of the first address that
                              has a country is appended after tabs
${SHAPE_HELP}
  --on-invalid POLICY  for a line that is not a JSON object, or a record that
                       does not match the header: keep (default), drop, or
                       fail (exit code 4)
  --rejects FILE       also write such lines to FILE
${JOBS_HELP}. The order of lines is kept
${OUTPUT_HELP}
  --stats FILE         write the summary to FILE as JSON; "-" is stdout, if the
                       output is a file
`,
  options: {
    ...INPUT_OPTIONS,
    ...OUTPUT_OPTIONS,
    add: { type: 'string' },
    'on-invalid': { type: 'string' },
    rejects: { type: 'string' },
  },
  arguments: [0, Number.POSITIVE_INFINITY],
  writesToDescriptor: true,
  choices: { format: FORMAT_NAMES, 'on-invalid': INVALID_POLICIES },
  needsDatabase: true,
  run,
};
