#!/bin/sh
# Runs before the package is removed. $1 is remove (deb) or 0 (rpm); an upgrade has other words and changes nothing.
set -eu
case ${1:-} in
remove | 0) ;;
*) exit 0 ;;
esac

# What Python of root has compiled there is in no package.
rm -rf /usr/share/gozzard/python/gozzard/__pycache__

# The end of an agent touches no process: they keep running, without supervision.
if [ -d /run/systemd/system ]; then
	for unit in gozzard-agent gozzard-agent-cap gozzard-agent-user gozzard-relay gozzard-server; do
		systemctl --quiet disable --now "$unit.service" || true # it may have been removed by hand
	done
fi
