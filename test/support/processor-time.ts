/**
 * Appends a line for each test file to the file that PROCESSOR_TIME names: the processor seconds that it took, with those of
 * the processes that it started and waited for. Unlike the time on a clock, they do not depend on what else the machine does.
 */
import { appendFileSync, readFileSync } from 'node:fs';
import { relative } from 'node:path';
import { afterAll, expect } from 'vitest';

/** Ticks a second of the times in /proc; 100 on every Linux (sysconf(_SC_CLK_TCK)). */
const TICKS = 100;

/** Returns the processor seconds of this process so far, and of its children. */
function seconds(): { own: number; children: number } {
  // The name, in parentheses, may contain spaces; the fields after it are the third and so on of proc(5).
  const fields = readFileSync('/proc/self/stat', 'utf8').split(') ').at(-1)!.split(' ').map(Number);
  return { own: (fields[11]! + fields[12]!) / TICKS, children: (fields[13]! + fields[14]!) / TICKS };
}

const path = process.env.PROCESSOR_TIME;
if (path !== undefined) {
  // A worker runs one file after the other, and this module anew before each.
  const start = seconds();
  afterAll(() => {
    const end = seconds();
    const [own, children] = [end.own - start.own, end.children - start.children];
    const file = relative(process.cwd(), expect.getState().testPath!);
    appendFileSync(path, `${(own + children).toFixed(1)}\t${own.toFixed(1)}\t${children.toFixed(1)}\t${file}\n`);
  });
}
