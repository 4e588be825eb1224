#!/usr/bin/env bash
# Compares the kernel with JSON.parse on mutated lines: scripts/json-acceptance.sh [LINES], ten million by default.
set -euo pipefail
cd "$(dirname "$0")/.."
FUZZ_RUNS=$((${1:-10000000} / 250)) npx vitest run test/enrich/json-acceptance.test.ts
