#!/usr/bin/env bash
# Installs what the tests of the exports run against (docs/exports.md), where this machine takes Debian packages. The
# tests do without: whatever cannot be installed is skipped there, with a word about it. So this never fails.
set -uo pipefail

packages=(nats-server mmdb-bin python3-maxminddb nginx libnginx-mod-http-geoip2 haproxy nftables)

installed() { dpkg-query -W -f '${Status}' "$1" 2>/dev/null | grep -q '^install ok installed$'; }

missing=()
for package in "${packages[@]}"; do
  installed "$package" || missing+=("$package")
done
if [ ${#missing[@]} -eq 0 ]; then exit 0; fi
if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
  echo "not installed, and no way to: ${missing[*]}; their tests will be skipped" >&2
  exit 0
fi

export DEBIAN_FRONTEND=noninteractive
# Services must not start: the tests start what they need.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
  printf '#!/bin/sh\nexit 101\n' >"$policy" && chmod +x "$policy"
  trap 'rm -f "$policy"' EXIT
fi
if ! { timeout 60 apt-get -qq update && timeout 180 apt-get -qq install -y --no-install-recommends "${missing[@]}"; } >/dev/null; then
  echo "could not be installed: ${missing[*]}; their tests will be skipped" >&2
fi
exit 0
