# files: everything in the folders of packages that has the name, but for the record of the server.
files() { find /usr /etc /var /opt -xdev -path /var/lib/gozzard -prune -o -name '*gozzard*' -print | grep -v '^/var/log/' | sort; }
before=$(files)
install_old() { dpkg -i --force-confold --force-downgrade /stage/old/*.deb >/tmp/dpkg.log 2>&1 || fail "dpkg -i"; }
install_new() { dpkg -i --force-confold /stage/new/*.deb >/tmp/dpkg.log 2>&1 || fail "dpkg -i"; }
remove() { dpkg -r gozzard >/tmp/dpkg.log 2>&1 || fail "dpkg -r"; }
. /tests/fleet.sh
[ -e /etc/gozzard/server.yaml ] || fail "remove took the settings"

say "purge: settings and the state of the agent go, the record of the server stays"
dpkg -P gozzard >/tmp/dpkg.log 2>&1 || fail "dpkg -P"
[ ! -e /etc/gozzard ] || fail "/etc/gozzard is there still: $(ls /etc/gozzard)"
[ -e /var/lib/gozzard/gozzard.db ] || fail "the record is gone"
has "stay in /var/lib/gozzard" cat /tmp/dpkg.log
same "files that the package left" "$(files)" "$before"
