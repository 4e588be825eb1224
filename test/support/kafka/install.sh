#!/usr/bin/env bash
# Puts what the tests of Kafka need into a cache outside of the repository, once for each version: the broker (Maven, Java 17),
# Node 24 and the client (npm). Prints the folder. 350 MB. usage: install.sh
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
id=$(cat "$here"/{pom.xml,install.sh} | sha256sum | cut -c 1-12)
folder="${XDG_CACHE_HOME:-$HOME/.cache}/ipatlas/kafka-$id"
if [ ! -e "$folder/complete" ]; then
  rm -rf "$folder"
  mkdir -p "$folder"
  cp "$here/pom.xml" "$folder"
  cd "$folder"
  mvn -q -B dependency:copy-dependencies -DoutputDirectory=lib -DincludeScope=runtime >&2
  # The package `node` picks one of these by an install script, which npm may block.
  platform=$(node -p 'process.platform + "-" + process.arch')
  npm install --prefix . --no-save --ignore-scripts --no-audit --no-fund --loglevel error \
    @platformatic/kafka@2.12.1 "node-$platform@24" >&2
  ln -s "node_modules/node-$platform/bin/node" node
  touch complete
fi
echo "$folder"
