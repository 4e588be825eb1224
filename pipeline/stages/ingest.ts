/**
 * Stage `ingest`: reads the files of the sources into ranges. Rows that cannot be parsed are written to
 * `rejects.ndjson`; a source with too many of them fails the build, or is replaced by an earlier copy.
 */

import { appendFile, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { formatAddress } from '../../src/address/format.js';
import { addressWords, rangeSize } from '../../src/address/words.js';
import { AtlasError } from '../../src/errors.js';
import { counted } from '../../src/text-table.js';
import { RowSample } from '../checking/sample.js';
import type { Reference } from '../config/reference.js';
import { type OwnedRange, OwnerSpace } from '../merging/evidence.js';
import { readSource, type SourceInput, type SourceResult } from '../source-formats/read-source.js';
import { RejectLog } from '../source-formats/rejects.js';
import { storeRows } from '../source-formats/stored-rows.js';
import { checkUsableCountries } from '../source-formats/usable-countries.js';
import type { IngestedSource, StageContext, StageResult } from '../stage.js';

/** File in the data directory with the rejected rows of the last build, one JSON object a line. */
export const REJECTS_FILE = 'rejects.ndjson';

export interface IngestOptions<Input extends SourceInput> {
  reference: Reference;
  /** Returns what to read instead of a source that cannot be read; undefined if there is nothing. */
  findEarlier: (input: Input) => Promise<Input | undefined>;
  /** AS numbers of the owners of sources. */
  asns?: ReadonlySet<number>;
}

export interface IngestResult<Input extends SourceInput> {
  ingested: IngestedSource[];
  /** The inputs that were read: those of the stage, or earlier ones. */
  inputs: Input[];
  /** The ranges that belong to networks, as far as the sources tell. */
  owned: OwnedRange[];
  /** Rows of each source to check before the release is published. */
  samples: RowSample[];
}

/**
 * The stage. Its counts are, for each source, `<id>.rows` (ranges read), `.ipv4`, `.ipv6`, `.rejected` and `.skipped`, and
 * the sums of rows and rejected rows.
 */
export async function ingestSources<Input extends SourceInput>(
  inputs: readonly Input[],
  context: StageContext,
  options: IngestOptions<Input>,
): Promise<StageResult<IngestResult<Input>>> {
  const rejectsPath = path.join(context.dataDir, REJECTS_FILE);
  await rm(rejectsPath, { recursive: true, force: true });
  await writeFile(rejectsPath, '');
  const output: IngestResult<Input> = { ingested: [], inputs: [], owned: [], samples: [] };
  const counts: Record<string, number> = { rows: 0, rejected: 0 };
  const special = OwnerSpace.ofRanges(options.reference.special.filter(({ layer }) => layer === 'over'));
  for (const given of inputs) {
    const { input, result, sample } = await readUsable(given, options, context, rejectsPath);
    const { ingested, skipped } = result;
    output.ingested.push(ingested);
    output.inputs.push(input);
    output.owned.push(...result.owned);
    output.samples.push(sample);
    const { id, rows, rejected } = ingested;
    const hasRows = ingested.v4.count + ingested.v6.count > 0;
    const { v4, v6 } = ingested.networks ?? (hasRows ? ingested : (ingested.listed ?? ingested));
    for (const [name, value] of Object.entries({ rows, ipv4: v4.count, ipv6: v6.count, rejected, skipped })) {
      counts[`${id}.${name}`] = value;
    }
    counts.rows = counts.rows! + rows;
    counts.rejected = counts.rejected! + rejected;
    noteSpecial(ingested, special, context.note);
    context.note(`${id}: ${v4.count} IPv4 and ${v6.count} IPv6 ranges, ${rejected} rows rejected`);
  }
  return { output, counts };
}

/** Reports the rows of a source that have no effect because special-purpose ranges come before all sources. */
function noteSpecial({ id, v4, v6 }: IngestedSource, special: OwnerSpace, note: StageContext['note']): void {
  for (const { family, count, first, last } of [v4, v6]) {
    const words = addressWords(family);
    let rows = 0;
    let addresses = 0n;
    let example = '';
    for (let i = 0; i < count; i++) {
      if (!special.contains(family, first, last, i)) continue;
      const ends = [first, last].map((column) => column.subarray(i * words, (i + 1) * words)) as [
        Uint32Array,
        Uint32Array,
      ];
      rows++;
      addresses += rangeSize(...ends);
      if (rows === 1) example = ends.map((end) => formatAddress(family, end)).join(' – ');
    }
    if (rows === 0) continue;
    note(
      `${id}: ${counted(rows, `IPv${family} row`)} (${addresses} addresses, such as ${example}) in special-purpose ranges, without effect; ` +
        'rows of overrides.csv have priority over these ranges',
    );
  }
}

/**
 * Reads a source, or an earlier copy of it if its files are not what they should be.
 *
 * @throws AtlasError E_BAD_INPUT if there is no earlier copy
 */
async function readUsable<Input extends SourceInput>(
  input: Input,
  { reference, findEarlier, asns }: IngestOptions<Input>,
  { dataDir, note, asOf }: StageContext,
  rejectsPath: string,
): Promise<{ input: Input; result: SourceResult; sample: RowSample }> {
  const read = async (from: Input): Promise<{ input: Input; result: SourceResult; sample: RowSample }> => {
    const log = new RejectLog(from.source.id);
    // As the id of the release does, it follows from the files and the day.
    const sample = new RowSample(asOf, from.source.kind === 'geofeed');
    try {
      const { source, files } = from;
      const result = await readSource(
        { source, files, ...(asns && { asns }) },
        note,
        (range) => sample.add(range),
        log,
      );
      checkUsableCountries(result.ingested, reference);
      storeRows(dataDir, { source, files, ...(asns && { asns }) }, result);
      return { input: from, result, sample };
    } finally {
      await appendFile(rejectsPath, log.rejects.map((reject) => `${JSON.stringify(reject)}\n`).join(''));
    }
  };
  try {
    return await read(input);
  } catch (error) {
    if (!(error instanceof AtlasError) || error.code !== 'E_BAD_INPUT') throw error;
    const earlier = await findEarlier(input);
    if (earlier === undefined) throw error;
    note(`${error.message}. The build continues with the files of an earlier release`);
    return read(earlier);
  }
}
