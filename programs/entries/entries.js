/**
 * The programs that read an export, as data: the page prints them and run.js runs them.
 *
 * @typedef {object} Program
 * @property {string} name
 * @property {string} job the heading under which the page has it
 * @property {string[]} [packages] Debian's packages; the version is that of the first
 * @property {string} [npm] the package of npm, for libraries of Node.js
 * @property {string} exports the commands that write the export; for a newer release, they run again
 * @property {Record<string, string>} [files] path and text of files that the page prints
 * @property {Record<string, string>} [harness] other files, which any installation has in some form
 * @property {string} [before] more commands before the start, once
 * @property {string} [load] commands that run once, after `start`
 * @property {string} [start] starts a server in the foreground
 * @property {string} [ready] succeeds when a server has started and `load` can run
 * @property {boolean} [isService] whether `start` is only what starts it here, which the page leaves out
 * @property {string} [command] the question for 8.8.8.8 as the page prints it, in `commandLanguage`
 * @property {string} [reload] commands after a newer export, or `restart`; without them, the program notices by itself or opens the file each time
 * @property {(addresses: string[]) => Promise<string[]>} ask returns the answer for each address
 * @property {(code: string, ip: string) => string} [expects] the right answer, from the country's code; by default the code itself
 * @property {(ip: string) => boolean} [holds] which addresses it can be asked for
 * @property {number} [count] how many addresses it is asked for, by default 1,200
 * @property {string} [release] how a newer release gets in, if it is not `reload`
 * @property {string} [note] what to know, and what does not work
 */
import { ACCESS } from './access.js';
import { DATABASES } from './databases.js';
import { DNS } from './dns.js';
import { LIBRARIES } from './libraries.js';
import { LOGS } from './logs.js';
import { WEB } from './web.js';

/** Programs that could not be started here, with the reason. */
export const NOT_TESTED = [
  ['Logstash, Vector', 'neither Debian nor npm has them; their configuration is in [exports.md](exports.md#mmdb)'],
  ['DuckDB', 'runs with the joins of [warehouses.md](warehouses.md#duckdb) in another part of `make soak`'],
  ['lua-mmdb 0.1', 'refuses IPv6 addresses such as `2a00:1450:4001::1` as not valid'],
  ['pf, RouterOS', 'Debian has neither'],
  ['Varnish, InspIRCd, rsyslog, prelude-manager, ocserv', 'not run to the end'],
];

/** @type {Program[]} */
export const PROGRAMS = [...LIBRARIES, ...DATABASES, ...LOGS, ...DNS, ...WEB, ...ACCESS];
