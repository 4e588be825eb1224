#!/usr/bin/env bash
# Sends gigabytes of generated CSV through a pipe into "ipatlas enrich --jobs 2" and samples its resident memory. Fails if it
# exceeds a limit.
# usage: scripts/stream-memory.sh DATA_DIR [GIGABYTES [LIMIT_MB [FORMAT]]]   (default: 20 GB, 120 MB, csv; or jsonl)
set -euo pipefail
cd "$(dirname "$0")/.."
data=$1
gigabytes=${2:-20}
limit=${3:-120}
format=${4:-csv}

# The same records again and again: 1000 distinct ones.
records() {
  node -e '
    const [format, gigabytes] = process.argv.slice(1);
    const rows = Array.from({ length: 1000 }, (_, i) => {
      const ip = `${(i % 223) + 1}.${i % 256}.${(7 * i) % 256}.${i % 251}`;
      return format === "csv"
        ? `${i},"${ip}","a text, with ""quotes""\r\nand two lines",${"x".repeat(i % 150)}\r\n`
        : `${JSON.stringify({ n: i, ip, text: "x".repeat(i % 150) })}\n`;
    });
    const block = Buffer.from(rows.join("").repeat(5));
    const { writeSync } = require("node:fs");
    if (format === "csv") writeSync(1, "n,ip,text,more\r\n");
    for (let left = gigabytes * 1e9; left > 0; left -= block.length) {
      for (let done = 0; done < block.length; ) done += writeSync(1, block, done);
    }
  ' "$format" "$gigabytes"
}

started=$SECONDS
pipe=$(mktemp -u)
mkfifo "$pipe"
trap 'rm -f "$pipe"' EXIT
records > "$pipe" &
node dist/src/cli/start.cjs enrich --data "$data" --format "$format" --jobs 2 < "$pipe" > /dev/null &
enrich=$!
peak=0
while kill -0 "$enrich" 2> /dev/null; do
  now=$(awk '/^VmHWM/ { print int($2 / 1024) }' "/proc/$enrich/status" 2> /dev/null || true)
  [ "${now:-0}" -gt "$peak" ] && peak=$now
  sleep 1
done
wait "$enrich"
echo "$gigabytes GB of $format in $((SECONDS - started)) s, peak memory $peak MB (limit $limit MB)"
[ "$peak" -gt 0 ] && [ "$peak" -le "$limit" ]
