/** Entry point of the thread that reads the history. It keeps the archive open as long as its state is the same. */
import { parentPort, workerData } from 'node:worker_threads';
import { dayOf } from '../../day.js';
import { AtlasError } from '../../errors.js';
import { type Archive, openArchive } from '../../history/archive.js';
import { openDay, partitionAt } from '../../history/day.js';
import { periodsOf } from '../../history/periods.js';
import { otherPartitions } from '../../rangefile/partitions.js';
import type { KeptDays, Question } from './history-queue.js';
import type { OpenedAnswers } from './served-release.js';

const dataDir = workerData as string;
let opened: { archive: Archive; state: string } | undefined;

function open(archive: Archive, day: string, parts: readonly string[]): OpenedAnswers | 'damaged' {
  try {
    const { file: found, entry } = openDay(archive, day);
    const { recordAt: _, ...file } = found;
    const { release, data_date } = archive.read(entry).about;
    const others = otherPartitions().flatMap((partition) => {
      const { name } = partition;
      const bytes = parts.includes(name) ? partitionAt(dataDir, day, partition)?.bytes : undefined;
      return bytes === undefined ? [] : [{ name, bytes }];
    });
    return { file, release, dataDate: data_date ?? dayOf(entry.time), others };
  } catch (error) {
    if (!(error instanceof AtlasError) || !['E_USAGE', 'E_DAMAGED'].includes(error.code)) throw error;
    return 'damaged';
  }
}

function answer(archive: Archive, question: Question): unknown {
  switch (question.asks) {
    case 'days':
      return archive.spans().map((span): KeptDays => ({ from: span.from, to: span.to, isKept: 'entry' in span }));
    case 'open':
      return open(archive, question.day, question.parts);
    case 'periods':
      return periodsOf(archive, question.address);
  }
}

parentPort?.on('message', (question: Question) => {
  if (opened?.state !== question.state) opened = { archive: openArchive(dataDir), state: question.state };
  const answered = answer(opened.archive, question);
  const moved: ArrayBufferView[] = [];
  if (question.asks === 'open' && answered !== 'damaged') {
    const { file, others } = answered as OpenedAnswers;
    moved.push(file.start4, file.record4, file.index4, file.high6, file.low6);
    moved.push(...others.map(({ bytes }) => bytes));
  }
  parentPort?.postMessage(
    answered,
    moved.map(({ buffer }) => buffer as ArrayBuffer),
  );
});
