/** Writes the report of a build as an HTML page, for operators who look at builds rather than at messages. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { messageOf } from '../src/errors.js';
import { replaceFile } from '../src/files.js';
import { describeRelease } from '../src/report/release-report.js';
import { reportPage } from '../src/report/report-page.js';
import type { FinishedRelease, StageContext } from './stage.js';

/** Name of the copy of the newest report. */
const LATEST = 'latest.html';

/**
 * Writes `<id>.html` and `latest.html`, each in one step. If that fails, the build goes on with a note: a release must not
 * be held back, nor the reason of a refusal hidden, because a page about it cannot be written.
 *
 * @param directory for reports; made if it does not exist
 * @param release that the gates have checked, with its `report.json`
 */
export function writeReportPage(
  directory: string,
  dataDir: string,
  release: FinishedRelease,
  note: StageContext['note'],
): void {
  try {
    const page = reportPage(describeRelease(dataDir, release.dir));
    mkdirSync(directory, { recursive: true });
    for (const name of [`${release.id}.html`, LATEST]) replaceFile(join(directory, name), [page]);
    note(`report: ${join(directory, LATEST)}`);
  } catch (error) {
    note(`the report cannot be written in ${directory}: ${messageOf(error)}`);
  }
}
