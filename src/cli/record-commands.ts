/**
 * The commands that process records, and nothing else that they do not load. This module is built as one file, of which V8's
 * compiled code is stored as well; see start.cts.
 */
import type { Command } from './command.js';
import { command as enrich } from './enrich.js';
import { command as filter } from './filter.js';
import { command as lookup } from './lookup.js';
import { type RareParts, runCommand, runProgram } from './run.js';
import { command as summarize } from './summarize.js';

const COMMANDS: Readonly<Record<string, Command>> = { lookup, enrich, filter, summarize };

/**
 * Runs one of the commands.
 *
 * @param args the arguments after its name
 */
export function run(name: string, args: string[], rare: RareParts): Promise<void> {
  return runProgram(() => runCommand(name, COMMANDS[name]!, args, rare));
}
