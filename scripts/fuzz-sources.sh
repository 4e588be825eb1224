#!/usr/bin/env bash
# Reads many damaged and hostile copies of source files in every built-in format: the property tests, with many runs.
# usage: scripts/fuzz-sources.sh [RUNS]   (default 20000: a thousand damaged copies for each format)
set -euo pipefail
cd "$(dirname "$0")/.."
FUZZ_RUNS=${1:-20000} npx vitest run test/pipeline/hostile-sources.test.ts --testTimeout=7200000
