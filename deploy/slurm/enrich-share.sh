#!/bin/sh
# Enriches one share of a list of files: every COUNT-th, from number INDEX on, counted from 0.
# usage: enrich-share.sh LIST OUTPUT INDEX COUNT [FLAG of "ipatlas enrich"]…
#
# LIST has one path a line; the output of logs/a.jsonl is OUTPUT/logs/a.jsonl. A file gets its name when it is whole, and one that
# is there is done. So a share that was killed may run again, on any machine and also twice at the same time: it does what is
# missing, and the files are the same. Fails if a file could not be enriched, after it has tried all others.
set -eu
list=$1 output=$2 index=$3 count=$4
shift 4
number=0
failed=0
while IFS= read -r input; do
  mine=$((number % count == index))
  number=$((number + 1))
  target=$output/$input
  if [ "$mine" -eq 0 ] || [ -e "$target" ]; then continue; fi
  case /$input/ in */../*)
    echo "enrich-share.sh: $list, line $number: $input leads out of the output; use a path without .." >&2
    exit 2
    ;;
  esac
  mkdir -p "$(dirname "$target")"
  # No other process has this name, be it on another machine, where the same process id may exist.
  own=$target.$(uname -n).$$.part
  if ipatlas enrich "$input" -o "$own" "$@" </dev/null; then mv "$own" "$target"; else failed=1; fi
done <"$list"
exit "$failed"
