/** A folder for what the test files of one run share, made before the first and removed after the last. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';

declare module 'vitest' {
  interface ProvidedContext {
    sharedFolder: string;
  }
}

export default function setup(project: TestProject): () => void {
  const folder = mkdtempSync(join(tmpdir(), 'ipatlas-shared-'));
  project.provide('sharedFolder', folder);
  return () => rmSync(folder, { recursive: true });
}
