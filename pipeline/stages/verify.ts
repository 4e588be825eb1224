/** Stage `verify`: reads the finished release back and checks that it is whole. The gates check whether it is plausible. */
import { verifyRelease } from '../../src/database/verify.js';
import type { FinishedRelease, Stage } from '../stage.js';

export const verifyStage: Stage<FinishedRelease, FinishedRelease> = {
  name: 'verify',
  run: async (release) => {
    const { file } = verifyRelease(release.dir);
    return { output: release, counts: { ipv4_ranges: file.count4, ipv6_ranges: file.count6 } };
  },
};
