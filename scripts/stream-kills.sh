#!/usr/bin/env bash
# The long run of test/soak/stream-kills.test.ts: kills 200 workers and 50 servers at random while messages flow, then compares
# the output with "enrich" byte for byte. Then the same with workers of an ordered output, or only one of the two kinds. Takes
# five to ten minutes for each kind. Usage: stream-kills.sh [WORKER_KILLS [SERVER_KILLS [all|workers|ordered]]]
set -euo pipefail
cd "$(dirname "$0")/.."
case "${3:-all}" in
  all) pattern= ;;
  workers) pattern='workers and' ;;
  ordered) pattern='ordered output' ;;
  *) exit 2 ;;
esac
npm run --silent build
STREAM_WORKER_KILLS="${1:-200}" STREAM_SERVER_KILLS="${2:-50}" \
  npx vitest run --config vitest.soak.config.ts test/soak/stream-kills.test.ts ${pattern:+-t "$pattern"}
