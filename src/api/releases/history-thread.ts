/** Entry point of the thread that reads the history: it opens the answers of a past day, or finds the history of an address. */
import { parentPort, workerData } from 'node:worker_threads';
import { AtlasError } from '../../errors.js';
import { dayOf, openArchive } from '../../history/archive.js';
import { openDay, partitionAt } from '../../history/day.js';
import { periodsOf } from '../../history/periods.js';
import { NETWORKS } from '../../rangefile/partitions.js';
import type { HistoryJob, OpenedDay } from './past-days.js';

function open(dataDir: string, day: string, wantsNetworks: boolean): OpenedDay {
  const archive = openArchive(dataDir);
  try {
    const { file: opened, entry } = openDay(archive, day);
    const { recordAt: _, ...file } = opened;
    const { release, data_date } = archive.read(entry).about;
    const networks = wantsNetworks ? partitionAt(dataDir, day, NETWORKS)?.bytes : undefined;
    return { file, release, dataDate: data_date ?? dayOf(entry.time), networks };
  } catch (error) {
    if (!(error instanceof AtlasError) || !['E_USAGE', 'E_DAMAGED'].includes(error.code)) throw error;
    return { span: archive.span };
  }
}

const job = workerData as HistoryJob;
if ('address' in job) parentPort?.postMessage(periodsOf(openArchive(job.dataDir), job.address));
else {
  const opened = open(job.dataDir, job.day, job.wantsNetworks);
  const moved: ArrayBufferView[] = [];
  if ('file' in opened) {
    const { start4, record4, index4, high6, low6 } = opened.file;
    moved.push(start4, record4, index4, high6, low6);
    if (opened.networks !== undefined) moved.push(opened.networks);
  }
  parentPort?.postMessage(
    opened,
    moved.map(({ buffer }) => buffer as ArrayBuffer),
  );
}
