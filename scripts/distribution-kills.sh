#!/usr/bin/env bash
# The long run of test/distribution/kills.test.ts: kills 200 runs of repo add, 25 each of rotate and refresh, and 200 pulls
# at random moments, and checks the repository or the node after each. Takes about ten minutes on a quiet machine.
# Usage: distribution-kills.sh [KILLS]
set -euo pipefail
cd "$(dirname "$0")/.."
npm run --silent build
DISTRIBUTION_KILLS="${1:-200}" npx vitest run test/distribution/kills.test.ts
