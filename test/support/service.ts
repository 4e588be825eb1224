/** The service that `ipatlas serve` runs, in the process of the test. */
import type { LogFields } from '../../src/api/log.js';
import { runService } from '../../src/api/service.js';
import type { OptionValues } from '../../src/cli/command.js';
import { readSettings } from '../../src/cli/serve.js';
import type { SeedUse } from '../../src/database/origin.js';
import { verifyRelease } from '../../src/database/verify.js';
import { keptLog } from './api.js';
import { until } from './serve.js';

export interface RunningService {
  port: number;
  /** Its base address, on the IPv4 loopback address. */
  url: string;
  /** The log's lines. */
  log: [LogFields, string][];
  /** Resolves to the fields of a line with this message. */
  logged(message: RegExp | string): Promise<LogFields>;
  /** Stops it as a signal does; resolves to whether all requests were answered in time. */
  stop(): Promise<boolean>;
}

/**
 * Starts a service on a free port and waits until it listens. It differs from `ipatlas serve` in its log, which is kept
 * here, and in the thread that verifies a release: the test does that itself.
 *
 * @param values flags, by their names without dashes
 * @param seed when the seed answers
 * @throws AtlasError as the command
 */
export async function startService(
  dataDir: string,
  values: OptionValues = {},
  seed: SeedUse = 'never',
): Promise<RunningService> {
  const settings = readSettings({ dataDir, seed, values: { port: '0', ...values }, positionals: [] });
  const log = keptLog();
  const logged = (message: RegExp | string): Promise<LogFields> =>
    until(
      () => log.lines.find(([, text]) => (typeof message === 'string' ? text === message : message.test(text))),
      `the message ${message}`,
    ).then(([fields]) => fields);
  let stop = (): void => {};
  const untilStopped = new Promise<void>((resolve) => {
    stop = resolve;
  });
  const { ended, url } = await new Promise<{ ended: Promise<boolean>; url: string }>((resolve, reject) => {
    const ended = runService(settings, {
      log,
      verify: async (dir) => void verifyRelease(dir),
      onListening: (url) => resolve({ ended, url }),
      untilStopped,
    });
    ended.catch(reject);
  });
  const port = Number(new URL(url).port);
  return {
    port,
    url: `http://127.0.0.1:${port}`,
    log: log.lines,
    logged,
    stop() {
      stop();
      return ended;
    },
  };
}
