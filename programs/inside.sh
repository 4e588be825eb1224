#!/bin/sh
# Runs a command on a copy of this machine's file system and in a network of its own: what it and its children write, listen on and
# send stays there and is gone at the end, and so are they. That is why programs run with the paths, ports and client addresses
# that docs/programs.md prints. Needs root.
#
# Usage: inside.sh FOLDER REPOSITORY OLD NEW COMMAND…
# FOLDER takes what is written and must not be on an overlay itself. The command finds the repository and two data directories in
# /srv/ipatlas, /srv/old and /srv/new.
set -eu
mkdir "$1/written" "$1/work" "$1/root"
exec setpriv --pdeathsig KILL unshare --mount --net --pid --fork --kill-child sh -euc '
  root=$1/root
  mount -t overlay overlay -o "lowerdir=/,upperdir=$1/written,workdir=$1/work" "$root"
  mkdir -p "$root/srv/ipatlas" "$root/srv/old" "$root/srv/new" "$root/var/lib/ipatlas"
  mount --bind "$2" "$root/srv/ipatlas"
  mount --bind "$3" "$root/srv/old"
  mount --bind "$4" "$root/srv/new"
  mount -t proc proc "$root/proc"
  mount --rbind /dev "$root/dev"
  mount --bind /sys "$root/sys"
  for path in run tmp var/tmp; do mount -t tmpfs -o mode=1777 tmpfs "$root/$path"; done
  # Every address is local, so that clients can have any address. The network has no way out.
  ip link set lo up
  ip route add local 0.0.0.0/0 dev lo
  ip -6 route add local ::/0 dev lo
  echo 1 >"$root/proc/sys/net/ipv6/ip_nonlocal_bind"
  shift 4
  exec env -i PATH="$PATH" HOME=/root chroot "$root" "$@"
' inside "$@"
