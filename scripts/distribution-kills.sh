#!/usr/bin/env bash
# The long run of test/distribution/kills.test.ts: kills 200 pulls, 200 runs of repo add, and 50 each of
# rotate and refresh, at random moments, and checks node and repository after each. Takes about a quarter of an hour. Usage: distribution-kills.sh [KILLS]
set -euo pipefail
cd "$(dirname "$0")/.."
npm run --silent build
DISTRIBUTION_KILLS="${1:-200}" npx vitest run test/distribution/kills.test.ts
