#!/usr/bin/env node
/** The entry of the program with all commands. */
import { program } from './program.js';
import { runProgram } from './run.js';

await runProgram(() => program(process.argv.slice(2)));
