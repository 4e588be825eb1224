/** Entry point of the thread that reads the history: it opens the answers of a past day, or finds the history of an address. */
import { parentPort, workerData } from 'node:worker_threads';
import { AtlasError } from '../../errors.js';
import { dayOf, openArchive } from '../../history/archive.js';
import { openDay } from '../../history/day.js';
import { periodsOf } from '../../history/periods.js';
import type { HistoryJob, OpenedDay } from './past-days.js';

function open(dataDir: string, day: string): OpenedDay {
  const archive = openArchive(dataDir);
  try {
    const { file, entry } = openDay(archive, day);
    const { release, data_date } = archive.read(entry).about;
    return { file, release, dataDate: data_date ?? dayOf(entry.time) };
  } catch (error) {
    if (!(error instanceof AtlasError) || !['E_USAGE', 'E_DAMAGED'].includes(error.code)) throw error;
    return { span: archive.span };
  }
}

const job = workerData as HistoryJob;
if ('address' in job) parentPort?.postMessage(periodsOf(openArchive(job.dataDir), job.address));
else {
  const opened = open(job.dataDir, job.day);
  const moved =
    'file' in opened
      ? [opened.file.start4, opened.file.record4, opened.file.index4, opened.file.high6, opened.file.low6].map(
          ({ buffer }) => buffer as ArrayBuffer,
        )
      : [];
  parentPort?.postMessage(opened, moved);
}
