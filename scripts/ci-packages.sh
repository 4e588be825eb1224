#!/usr/bin/env bash
# Installs the programs that tests run against, on Debian or Ubuntu: servers, readers of exports (docs/exports.md),
# Chromium, shells, what checks the files in deploy/; or the packages that are named, which single parts of "make soak" need.
# Fails if one cannot be installed. Needs root or sudo. usage: ci-packages.sh [PACKAGE…]
set -euo pipefail

packages=(nats-server redis-server gdnsd bind9-dnsutils chromium fonts-dejavu-core zsh fish groff-base openssl
  mmdb-bin python3-maxminddb python3-geoip2 golang-go golang-github-oschwald-maxminddb-golang-dev
  default-jre-headless maven kcat
  nginx caddy libnginx-mod-http-geoip2 haproxy nftables ipset firewalld prometheus systemd)
if [ $# -gt 0 ]; then packages=("$@"); fi

installed() { dpkg-query -W -f '${Status}' "$1" 2>/dev/null | grep -q '^install ok installed$'; }

missing=()
for package in "${packages[@]}"; do
  installed "$package" || missing+=("$package")
done
if [ ${#missing[@]} -eq 0 ]; then exit 0; fi
as_root=()
if [ "$(id -u)" -ne 0 ]; then as_root=(sudo env DEBIAN_FRONTEND=noninteractive); fi

export DEBIAN_FRONTEND=noninteractive
# Services must not start: the tests start what they need.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
  printf '#!/bin/sh\nexit 101\n' | "${as_root[@]}" tee "$policy" >/dev/null
  "${as_root[@]}" chmod +x "$policy"
  trap '"${as_root[@]}" rm -f "$policy"' EXIT
fi
"${as_root[@]}" apt-get -qq update
"${as_root[@]}" apt-get -qq install -y --no-install-recommends "${missing[@]}" >/dev/null
