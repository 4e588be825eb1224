import { closeSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { createAccessLog } from '../../src/api/log.js';
import { keptLog } from '../support/api.js';
import { jsonLines } from '../support/cli.js';
import { temporaryDir } from '../support/temporary.js';

const LINE = { method: 'GET', route: '/api/lookup/:ip', status: 200, duration_ms: 0.1234567 };

it('the access log has every line, in order, regardless of when it is flushed', async () => {
  const path = join(temporaryDir(), 'access.log');
  const fd = openSync(path, 'w');
  const log = keptLog();
  const access = createAccessLog(log, fd);
  await access.flush(); // nothing yet
  for (let status = 0; status < 2_000; status++) {
    access.write({ ...LINE, status });
    if (status % 7 === 0) void access.flush();
    if (status % 500 === 0) await access.flush();
  }
  await access.flush();
  closeSync(fd);
  const lines = jsonLines(readFileSync(path, 'utf8')) as (typeof LINE)[];
  expect(lines.map(({ status }) => status)).toEqual(Array.from({ length: 2_000 }, (_, status) => status));
  expect(lines[0]).toMatchObject({ duration_ms: 0.123 });
  expect(log.lines).toEqual([]);
});

it('the access log reports a full disk once, and drops lines instead of using more memory', async () => {
  const fd = openSync('/dev/full', 'w');
  const log = keptLog();
  const access = createAccessLog(log, fd);
  for (let i = 0; i < 5; i++) {
    access.write(LINE);
    await access.flush();
  }
  expect(log.lines).toEqual([[{ code: 'ENOSPC' }, expect.stringMatching(/access log cannot be written/)]]);
  // In one turn of the event loop nothing is written.
  for (let i = 0; i < 50_000; i++) access.write(LINE);
  expect(log.lines.at(-1)).toEqual([{ code: 'dropped' }, expect.any(String)]);
  await access.flush();
  closeSync(fd);
});
