#!/usr/bin/env bash
# Installs the programs that tests run against: readers of exports (docs/exports.md), nats-server, Redis, gdnsd,
# Chromium, shells. If a program cannot be installed, its tests are skipped and say so. So this script never fails.
set -uo pipefail

packages=(nats-server redis-server gdnsd bind9-dnsutils chromium fonts-dejavu-core zsh fish groff-base openssl
  mmdb-bin python3-maxminddb nginx libnginx-mod-http-geoip2 haproxy nftables)

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
if ! { timeout 60 apt-get -qq update && timeout 300 apt-get -qq install -y --no-install-recommends "${missing[@]}"; } >/dev/null; then
  echo "could not be installed: ${missing[*]}; their tests will be skipped" >&2
fi
exit 0
