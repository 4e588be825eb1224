/** Temporary folders, which are removed after the last test of the file that made them; see remove-folders.ts. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const folders: string[] = [];

/** Creates a new temporary folder. */
export function temporaryDir(): string {
  const folder = mkdtempSync(join(tmpdir(), 'ipatlas-test-'));
  folders.push(folder);
  return folder;
}

export function removeFolders(): void {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
}
