/**
 * Refuses to publish the package with a seed that may not be shipped: one for clones and tests, or one with other data than
 * the two sources whose licenses allow it. Run by "npm publish".
 */
import { readFileSync } from 'node:fs';
import { openSeed } from '../dist/src/database/seed.js';

/** The sources of a published seed, and their licenses: public domain, and the registries' CC BY 4.0. */
const LICENSES = { 'user-country': 'PDDL-1.0', 'rir-delegations': 'CC-BY-4.0' };

const { not_for_publication: reason, inputs } = openSeed().manifest;
const others = inputs.filter(({ id, license, seed }) => LICENSES[id] !== license || seed !== undefined);
const { name } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));
if (reason !== undefined || others.length > 0) {
  const why = reason ?? `its data are from ${others.map(({ id, license }) => `${id} (${license})`).join(', ')}`;
  console.error(`${name} is not published: the seed is ${why}`);
  process.exitCode = 1;
}
