/** `ipatlas enrich`: adds the country to every line, record or item of a stream. */
import { manifestOfDatabase } from '../database/origin.js';
import { enrich } from '../enrich/enrich.js';
import { otherPartitionsOf } from '../enrich/members.js';
import { type Command, type Invocation, noteMissing } from './command.js';
import { ADD_FLAGS, ENRICH_INPUT_FLAGS, OUTPUT_FLAGS, POLICY_FLAGS, REDACT_FLAGS, withLogs } from './records/flags.js';
import { planOf } from './records/plan.js';
import { runPlan } from './records/run.js';

function run(invocation: Invocation): Promise<number> {
  return withLogs(invocation, () => {
    const plan = { ...planOf(invocation), needsAddress: invocation.values['none-ok'] !== true };
    const { at, add } = plan.options;
    const others = otherPartitionsOf(add);
    if (at === undefined && others.length > 0) noteMissing(manifestOfDatabase(plan.database), others);
    return runPlan(plan, (work) => enrich({ ...plan, ...work }));
  });
}

export const command: Command = {
  usage: ['enrich [FILE…]'],
  description: `Adds the country of an address to every line, record or item, and leaves all other bytes unchanged. Reads several files
one after the other; without a file, or for "-", it reads stdin. gzip is recognized, and zstd from Node 22.15 on. Writes to
stdout.`,
  options: {
    ...ENRICH_INPUT_FLAGS,
    ...ADD_FLAGS,
    inline: { help: 'for text: add the result directly after each address, in brackets; by default country_code' },
    'inline-template': {
      value: 'TEXT',
      help: 'for text: put TEXT in the place of each address, with members of the result in braces: "{address} ({country_code})"',
    },
    ...REDACT_FLAGS,
    ...POLICY_FLAGS,
    ...OUTPUT_FLAGS,
  },
  examples: {
    'ipatlas enrich access.jsonl > enriched.jsonl': 'adds "geo" to each line that has an address at "ip"',
    'ipatlas enrich --field client.ip=client.geo -o out.jsonl in.jsonl.gz':
      'takes the address from an object, and puts the result into it',
    'ipatlas enrich --format csv --field address --add country_code users.csv':
      'appends the column geo_country_code to a table',
    'ipatlas enrich --format text --inline app.log': 'writes the country after each address of a line',
    'tail -f access.log | ipatlas enrich --format combined': 'appends the country to each line of a log',
  },
  arguments: [0, Number.POSITIVE_INFINITY],
  answersFromSeed: true,
  run,
};
