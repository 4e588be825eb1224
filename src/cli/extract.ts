/** `ipatlas extract`: the addresses in records and in any text. */
import { isPublicAddress } from '../address/parse.js';
import { enrich } from '../enrich/enrich.js';
import type { InputOptions } from '../enrich/options.js';
import type { ByteSink } from '../enrich/output/sink.js';
import { EVERY_RECORD } from '../enrich/query.js';
import { misuse } from '../errors.js';
import { type Command, type Invocation, text } from './command.js';
import { INPUT_FLAGS, OUTPUT_FLAGS, withLogs } from './records/flags.js';
import { planWithoutDatabase } from './records/plan.js';
import { runPlan } from './records/run.js';

/** Lines that are written at once. */
const LINES_AT_ONCE = 4096;

interface Selection {
  isUnique: boolean;
  isCounted: boolean;
  isPublic: boolean;
  withLine: boolean;
}

/** Selects among the lines of the kernel: addresses, and with lines, after those of each line, a tab and the line. */
class AddressSelector implements ByteSink {
  readonly #output: ByteSink;
  readonly #selection: Selection;
  /** The number of times that an address was there, in the order of the first. */
  readonly #counts = new Map<string, number>();
  #rest = '';
  #addresses: string[] = [];
  #lines: string[] = [];

  constructor(output: ByteSink, selection: Selection) {
    this.#output = output;
    this.#selection = selection;
  }

  async write(bytes: Uint8Array): Promise<void> {
    const lines = (this.#rest + Buffer.from(bytes).toString('latin1')).split('\n');
    this.#rest = lines.pop()!;
    for (const line of lines) {
      if (line.startsWith('\t')) {
        this.#lines.push(...this.#addresses.map((address) => `${address}${line}\n`));
        this.#addresses = [];
      } else if (this.#isSelected(line)) {
        if (this.#selection.withLine) this.#addresses.push(line);
        else this.#lines.push(`${line}\n`);
      }
      if (this.#lines.length >= LINES_AT_ONCE) await this.#flush();
    }
    await this.#flush();
  }

  #isSelected(line: string): boolean {
    const { isUnique, isCounted, isPublic } = this.#selection;
    if (isPublic && !isPublicAddress(/^[^/-]*/.exec(line)![0])) return false;
    if (!isUnique && !isCounted) return true;
    const count = this.#counts.get(line) ?? 0;
    this.#counts.set(line, count + 1);
    return !isCounted && count === 0;
  }

  /** Writes the counts, if addresses are counted. */
  async end(): Promise<void> {
    if (!this.#selection.isCounted) return;
    const counts = [...this.#counts].sort(([, a], [, b]) => b - a);
    for (let at = 0; at < counts.length; at += LINES_AT_ONCE) {
      this.#lines = counts.slice(at, at + LINES_AT_ONCE).map(([address, count]) => `${count}\t${address}\n`);
      await this.#flush();
    }
  }

  async #flush(): Promise<void> {
    const bytes = Buffer.from(this.#lines.join(''), 'latin1');
    this.#lines = [];
    if (bytes.length > 0) await this.#output.write(bytes);
  }
}

function selectionOf({ values }: Invocation): Selection {
  const withLine = text(values, 'with') === 'line';
  const selection = {
    isUnique: values.unique === true,
    isCounted: values.count === true,
    isPublic: values.public === true,
    withLine,
  };
  if (withLine && (selection.isUnique || selection.isCounted))
    throw misuse('--with line does not go with --unique or --count');
  return selection;
}

function extract(invocation: Invocation): Promise<number> {
  const { values } = invocation;
  const selection = selectionOf(invocation);
  const { withLine } = selection;
  const plan = { ...planWithoutDatabase(invocation), needsAddress: false };
  const extracts = { isOfAll: values.field === undefined, withLine };
  const options: InputOptions = { ...plan.options, add: [], query: EVERY_RECORD, onInvalid: 'keep', extracts };
  const isSelected = Object.values(selection).includes(true);
  return runPlan(
    plan,
    async (work) => {
      const selector = isSelected ? new AddressSelector(work.output, selection) : undefined;
      const damage = await enrich({ ...plan, ...work, options, output: selector ?? work.output });
      await selector?.end();
      return damage;
    },
    async () => {},
  );
}

export const command: Command = {
  usage: ['extract [--unique|--count] [--public] [FILE…]'],
  description: `Prints the addresses in files of any format that "ipatlas enrich" reads, and in any text, one a line, in their order; ranges such as
192.0.2.1-192.0.2.9 and prefixes such as 192.0.2.0/24 as they are. Without --field, those of all values of a record.`,
  options: {
    unique: { help: 'each address once' },
    count: { help: 'each address once, after the number of times that it is there, the most frequent first' },
    public: { help: 'only public addresses, not those of private networks, loopback and the like' },
    with: { value: 'line', choices: ['line'], help: 'also print the line that an address is in, after a tab' },
    ...INPUT_FLAGS,
    ...OUTPUT_FLAGS,
  },
  examples: {
    'ipatlas extract --count app.log': 'how often each address is in a log',
    'ipatlas extract --public --unique report.txt | ipatlas lookup -': 'the countries of the addresses in a text',
  },
  arguments: [0, Number.POSITIVE_INFINITY],
  withoutData: true,
  run: (invocation) => withLogs(invocation, () => extract(invocation)),
};
