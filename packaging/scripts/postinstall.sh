#!/bin/sh
# Runs after the package is installed or upgraded, and by make install. It starts no unit: the owner of the machine does.
set -eu

# account NAME FOLDER TEXT: makes a system account that cannot log in, unless it exists.
account() {
	getent group "$1" >/dev/null || groupadd --system "$1"
	getent passwd "$1" >/dev/null ||
		useradd --system --gid "$1" --home-dir "$2" --no-create-home --shell /usr/sbin/nologin --comment "$3" "$1"
}

account gozzard-server /var/lib/gozzard "Gozzard server"
account gozzard /var/lib/gozzard-agent "Gozzard agent"
account gozzard-relay /var/lib/gozzard-relay "Gozzard relay"

# The folder for backups that root makes by hand. The server writes to it, so it must not be root's.
install -d -m 0700 -o gozzard-server -g gozzard-server /var/backups/gozzard

# The first installation (deb: no version before, rpm: one version) gets a policy that only root can write: the unit of
# the agent cannot write it there itself. A host that has a policy keeps it.
case ${1:-}/${2:-} in
configure/ | 1/)
	has=no
	for policy in /etc/gozzard/policy.yaml /var/lib/*/policy.yaml; do
		[ ! -e "$policy" ] || has=yes
	done
	if [ $has = no ] && [ -x /usr/bin/gozzard ]; then
		/usr/bin/gozzard agent policy --data /var/lib/gozzard-agent >/dev/null 2>&1 || true # else join writes one
	fi
	;;
esac

# Running units take over the new program. Processes keep running.
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
	for unit in gozzard-server gozzard-relay; do
		if systemctl --quiet is-active "$unit.service"; then
			systemctl restart "$unit.service"
		fi
	done
	for unit in gozzard-agent gozzard-agent-cap gozzard-agent-user; do
		if systemctl --quiet is-active "$unit.service"; then
			systemctl reload "$unit.service"
		fi
	done
fi
