#!/usr/bin/env bash
# Runs test/soak/stream-cluster.test.ts: workers, plain and ordered, on three nodes with three replicas, with output that is
# split, undisturbed and while nodes are killed. Needs nats-server. Usage: stream-cluster.sh [SOAK_SCALE]   (default 1: 10 kills each)
set -euo pipefail
cd "$(dirname "$0")/.."
SOAK_SCALE="${1:-1}" npx vitest run --config vitest.soak.config.ts test/soak/stream-cluster.test.ts
