/** The folder of the temporary files of one run, made before the first test and removed after the last. */
import { spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';

declare module 'vitest' {
  interface ProvidedContext {
    sharedFolder: string;
  }
}

/** A folder in memory, where it is on Linux. Writers wait for the disk at each step, which would be most of some tests' time. */
const IN_MEMORY = '/dev/shm';
/** Enough for the files of three test files at a time. */
const NEEDED_BYTES = 4 * 2 ** 30;

/** Makes the folder in memory if there is enough, and programs in it can be started; otherwise where temporary files are. */
function makeFolder(): string {
  try {
    const { bavail, bsize } = statfsSync(IN_MEMORY);
    if (bavail * bsize >= NEEDED_BYTES) {
      const folder = mkdtempSync(join(IN_MEMORY, 'ipatlas-test-'));
      const program = join(folder, 'program');
      writeFileSync(program, '#!/bin/sh\n', { mode: 0o755 });
      // Tests that run as another user read in it, as they do in /tmp.
      chmodSync(folder, 0o755);
      if (spawnSync(program).status === 0) return folder;
      rmSync(folder, { recursive: true });
    }
  } catch {
    // There is no such folder, or it cannot be written.
  }
  return mkdtempSync(join(tmpdir(), 'ipatlas-test-'));
}

export default function setup(project: TestProject): () => void {
  const folder = makeFolder();
  const sharedFolder = join(folder, 'shared');
  mkdirSync(sharedFolder);
  process.env.TMPDIR = folder;
  project.provide('sharedFolder', sharedFolder);
  return () => rmSync(folder, { recursive: true });
}
