/** The members of a result as a list with commas, as on the command line. */
import type { Addable } from '../../src/enrich/members.js';
import { checkAdd } from '../../src/enrich/options.js';

export function parseAdd(list?: string): Addable[] {
  return checkAdd(list?.split(','));
}
