say "a fresh Debian"
dpkg -i /dist/*.deb >/tmp/dpkg.log 2>&1 || fail "dpkg -i"
has 1.0.0 gozzard version
for name in gozzard gozzard-server gozzard-relay; do getent passwd $name >/dev/null || fail "no account $name"; done
export GOZZARD_CREDENTIALS=/var/lib/gozzard/credentials.json
unit gozzard-server
server=$pid
soon gozzard hosts
unit gozzard-agent
agent=$pid
soon sh -c 'gozzard hosts | grep "0:127.0.0.1 *yes"'
end "$agent"
end "$server"
dpkg -P gozzard >/tmp/dpkg.log 2>&1 || fail "dpkg -P"
[ ! -e /usr/bin/gozzard ] && [ ! -e /etc/gozzard ] && [ ! -e /var/lib/gozzard-agent ] || fail "something is left"
say "all steps passed"
