#!/usr/bin/env bash
# Compares the kernel with csv-parse on millions of records: the property tests of tables, with many runs.
# usage: scripts/fuzz-tables.sh [RUNS]   (default 60000: about two million records)
set -euo pipefail
cd "$(dirname "$0")/.."
FUZZ_RUNS=${1:-60000} npx vitest run test/enrich/tables.test.ts --testTimeout=7200000
