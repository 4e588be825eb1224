/**
 * Stage `ingest`: reads the files of the sources into ranges. Rows that cannot be parsed are written to
 * `rejects.ndjson`; a source with too many of them fails the build.
 */
import { appendFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { readSource, type SourceInput } from '../source-formats/read-source.js';
import type { IngestedSource, Stage } from '../stage.js';

/** File in the data directory with the rejected rows of the last build, one JSON object a line. */
export const REJECTS_FILE = 'rejects.ndjson';

/**
 * The stage. Its counts are, for each source, `<id>.rows` (ranges read), `.ipv4`, `.ipv6`, `.rejected` and `.skipped`, and
 * the sums of rows and rejected rows.
 */
export const ingestStage: Stage<readonly SourceInput[], IngestedSource[]> = {
  name: 'ingest',
  run: async (inputs, context) => {
    const rejectsPath = path.join(context.dataDir, REJECTS_FILE);
    await writeFile(rejectsPath, '');
    const output: IngestedSource[] = [];
    const counts: Record<string, number> = { rows: 0, rejected: 0 };
    for (const input of inputs) {
      const { ingested, skipped, rejects } = await readSource(input, context.note);
      await appendFile(rejectsPath, rejects.map((reject) => `${JSON.stringify(reject)}\n`).join(''));
      output.push(ingested);
      const { id, rows, rejected, v4, v6 } = ingested;
      for (const [name, value] of Object.entries({ rows, ipv4: v4.count, ipv6: v6.count, rejected, skipped })) {
        counts[`${id}.${name}`] = value;
      }
      counts.rows = counts.rows! + rows;
      counts.rejected = counts.rejected! + rejected;
      context.note(`${id}: ${v4.count} IPv4 and ${v6.count} IPv6 ranges, ${rejected} rows rejected`);
    }
    return { output, counts };
  },
};
