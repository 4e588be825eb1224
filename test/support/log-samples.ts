/** The commands of docs/logs.md: a name of a log, what goes in, what `enrich` prints. */
import { readFileSync } from 'node:fs';
import { packageFile } from '../../src/package-root.js';
import { consoleSteps } from './console.js';

export interface LogSample {
  name: string;
  input: string;
  output: string;
}

/** Returns what a command `printf` with arguments in single quotes prints. */
function printed(command: string): string {
  const [format = '', ...values] = [...command.matchAll(/'([^']*)'/g)].map(([, text]) => text!);
  const escapes: Record<string, string> = { '\\n': '\n', '\\t': '\t', '\\\\': '\\', '%%': '%' };
  if (format === '%s\\n') return values.map((value) => `${value}\n`).join('');
  return format.replaceAll(/\\[nt\\]|%%/g, (one) => escapes[one]!);
}

/** Returns the samples, in the order of the guide. */
export function logSamples(): LogSample[] {
  return consoleSteps(readFileSync(packageFile('docs/logs.md'), 'utf8')).map(({ command, output }) => {
    const [, write, name] =
      /^(printf [\s\S]*) \|\n {2}ipatlas enrich --log (\S+) --add country_code 2> \/dev\/null$/.exec(command)!;
    return { name: name!, input: printed(write!), output };
  });
}
