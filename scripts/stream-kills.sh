#!/usr/bin/env bash
# The long run of test/stream/kills.test.ts: kills 200 workers and 50 servers at random while messages flow, then compares
# the output with "enrich" byte for byte. Takes five to ten minutes. Usage: stream-kills.sh [WORKER_KILLS [SERVER_KILLS]]
set -euo pipefail
cd "$(dirname "$0")/.."
npm run --silent build
STREAM_WORKER_KILLS="${1:-200}" STREAM_SERVER_KILLS="${2:-50}" npx vitest run test/stream/kills.test.ts
