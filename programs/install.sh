#!/usr/bin/env bash
# Installs the programs of entries/ from Debian, without starting one. Needs root.
set -euo pipefail
cd "$(dirname "$0")"
packages=$(node -e "import('./entries/entries.js').then(({ PROGRAMS }) => console.log(...new Set(PROGRAMS.flatMap(({ packages = [] }) => packages))))")
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
  printf '#!/bin/sh\nexit 101\n' >"$policy"
  chmod +x "$policy"
  trap 'rm -f "$policy"' EXIT
fi
apt-get -qq update
# shellcheck disable=SC2086
DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends $packages
