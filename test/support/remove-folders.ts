/** Removes what {@link temporaryDir} made for a test file, after its own hooks. */
import { afterAll } from 'vitest';
import { removeFolders } from './temporary.js';

afterAll(removeFolders);
