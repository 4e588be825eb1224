/** The stage `verify`: the release as it stands on disk is whole. Whether its answers are sound is for the gates. */
import { verifyRelease } from '../../src/database/verify.js';
import type { Stage } from '../stage.js';
import type { FinishedRelease } from './publish.js';

export const verifyStage: Stage<FinishedRelease, FinishedRelease> = {
  name: 'verify',
  run: async (release) => {
    const { file } = verifyRelease(release.dir);
    return { output: release, counts: { ipv4_ranges: file.count4, ipv6_ranges: file.count6 } };
  },
};
