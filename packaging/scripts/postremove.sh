#!/bin/sh
# Runs after the package is removed. Only a purge of Debian removes settings and the state of agent and relay. The data of a
# server stays in every case: without it, every host of the fleet would have to join again.
set -eu
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
fi
[ "${1:-}" = purge ] || exit 0

rm -rf /var/lib/gozzard-agent /var/lib/gozzard-relay
rm -f /etc/gozzard/policy.yaml /etc/gozzard/release.pub
if [ -d /etc/gozzard ]; then
	rmdir --ignore-fail-on-non-empty /etc/gozzard
fi
if [ -d /var/backups/gozzard ]; then
	rmdir --ignore-fail-on-non-empty /var/backups/gozzard
fi
if [ -e /var/lib/gozzard ]; then
	echo "gozzard: the record and the keys of the server stay in /var/lib/gozzard. To delete them: rm -rf /var/lib/gozzard" >&2
fi
