/** What a command loads before it runs: each file takes about half a millisecond, each dependency much more. */
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { packageFile } from '../../src/package-root.js';

const MAIN = packageFile('dist/src/cli/main.js');
const CHUNKS = packageFile('dist/src/cli/chunks');

/** Returns the files of the package that a command loads when it starts, and all else that they import. */
function loadedBy(command: string): { files: string[]; others: string[] } {
  const files: string[] = [];
  const others = new Set<string>();
  const visit = (path: string): void => {
    if (files.includes(path)) return;
    files.push(path);
    for (const [, name] of readFileSync(path, 'utf8').matchAll(/^(?:import|export) [^;]*?["']([^"']+)["'];$/gm)) {
      if (name!.startsWith('.')) visit(join(dirname(path), name!));
      else others.add(name!);
    }
  };
  visit(MAIN);
  const chunk = readdirSync(CHUNKS).find((name) => name.startsWith(`${command}-`));
  visit(join(CHUNKS, chunk!));
  return { files, others: [...others].sort() };
}

describe('the start of a command that processes records', () => {
  it.each(['lookup', 'enrich', 'filter', 'summarize'])('%s loads three files and no dependency', (command) => {
    const { files, others } = loadedBy(command);
    expect(files).toHaveLength(3);
    expect(others.length).toBeGreaterThan(0);
    expect(others.filter((name) => !name.startsWith('node:'))).toEqual([]);
  });

  it('enrich does not load what only some runs need', () => {
    const { others } = loadedBy('enrich');
    expect(others).not.toContain('node:worker_threads');
    expect(others).not.toContain('node:readline');
  });
});
