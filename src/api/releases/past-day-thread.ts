/** Entry point of the thread that opens the answers of a past day. */
import { parentPort, workerData } from 'node:worker_threads';
import { AtlasError } from '../../errors.js';
import { dayOf, openArchive } from '../../history/archive.js';
import { openDay } from '../../history/day.js';
import type { OpenedDay } from './past-days.js';

const { dataDir, day } = workerData as { dataDir: string; day: string };

function open(): OpenedDay {
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

const opened = open();
const moved =
  'file' in opened
    ? [opened.file.start4, opened.file.record4, opened.file.index4, opened.file.high6, opened.file.low6].map(
        ({ buffer }) => buffer as ArrayBuffer,
      )
    : [];
parentPort?.postMessage(opened, moved);
