cp -a /stage/. /
export GOZZARD_CREDENTIALS=/var/lib/gozzard/credentials.json

say "accounts"
sh /packaging/scripts/postinstall.sh configure
sh /packaging/scripts/postinstall.sh configure # again, as an upgrade does
for name in gozzard gozzard-server gozzard-relay; do
	getent passwd $name >/dev/null || fail "no account $name"
done

say "the server, as shipped"
unit gozzard-server
server=$pid
soon test -e /var/lib/gozzard/credentials.json
soon gozzard hosts
same "account of the server" "$(stat -c %U /proc/$server)" gozzard-server

say "root uses the commands that read the folder of the server"
has "1 " gozzard key list --data /var/lib/gozzard
has "epoch 2" gozzard key rotate --data /var/lib/gozzard
has "" gozzard audit verify --data /var/lib/gozzard
has "" gozzard audit list --data /var/lib/gozzard
has "OK    record" gozzard doctor --data /var/lib/gozzard
recipient=$(gozzard backup keygen --to /root/backup.key)
has "bytes" gozzard backup create --data /var/lib/gozzard --to /var/backups/gozzard/one.age --recipient "$recipient"
gozzard backup verify /var/backups/gozzard/one.age --identity /root/backup.key >/dev/null || fail "the backup cannot be read"
foreign=$(find /var/lib/gozzard /var/backups/gozzard ! -user gozzard-server)
same "files of other accounts in the folder of the server" "$foreign" ""

say "nothing that the owner of the folder prepares makes root write elsewhere"
ln -s /etc/cron.d/evil /var/lib/gozzard/backup.json.x
gozzard backup create --data /var/lib/gozzard --to /root/two.age --recipient "$recipient" >/tmp/two.out 2>&1 &&
	fail "root wrote outside of what the account of the server can write"
has "runs as gozzard-server" cat /tmp/two.out

say "an agent of root beside the server, as shipped: it finds the server by itself"
unit gozzard-agent
agent=$pid
soon sh -c 'gozzard hosts | grep "0:127.0.0.1 *yes"'
end "$agent"

say "the server for other hosts: two lines of its settings without their comment sign"
end "$server"
sed -i 's/^#listen: 0.0.0.0:8443/listen: 0.0.0.0:8443/; s/^#agent-listen: 0.0.0.0:4230/agent-listen: 0.0.0.0:4230/' /etc/gozzard/server.yaml
rm -rf /var/lib/gozzard/join.secret /var/lib/gozzard-agent /etc/gozzard/policy.yaml
unit gozzard-server
server=$pid
soon gozzard token list

say "no agent unit starts on a host that has not joined"
for name in gozzard-agent gozzard-agent-cap gozzard-agent-user; do
	unit $name
	same "pid of $name" "$pid" ""
done

# joined NAME ACCOUNT IP: joins as an account, starts the unit and waits until the host is online.
joined() {
	install -d -m 0700 -o "$2" -g "$2" /var/lib/gozzard-agent
	(umask 077; gozzard token create >/var/lib/gozzard-agent/token)
	chown "$2" /var/lib/gozzard-agent/token
	setpriv --reuid "$2" --regid "$2" --init-groups gozzard agent join --server https://127.0.0.1:8443 --ip "$3" \
		--token-file /var/lib/gozzard-agent/token --data /var/lib/gozzard-agent >/tmp/join.out 2>&1 || fail "join: $(cat /tmp/join.out)"
	unit "$1"
	soon sh -c "gozzard hosts -o wide | grep '0:$3 *yes'"
	same "account of $1" "$(stat -c %U "/proc/$pid")" "$2"
}

say "the agent of root, as shipped, after the join"
joined gozzard-agent root 10.9.0.1
end "$pid"
rm -rf /var/lib/gozzard-agent

say "the agent with capabilities, as shipped, after the join and with a policy of root"
install -m 0644 /usr/share/doc/gozzard/policy.yaml /etc/gozzard/policy.yaml
joined gozzard-agent-cap gozzard 10.9.0.2
has " cap " sh -c "gozzard hosts -o wide | grep 10.9.0.2"
end "$pid"
rm -rf /var/lib/gozzard-agent

say "the agent of one account, as shipped, after the join"
joined gozzard-agent-user gozzard 10.9.0.3
end "$pid"
rm -rf /var/lib/gozzard-agent /etc/gozzard/policy.yaml

say "the relay, as shipped, after the join, and a host behind it"
unit gozzard-relay
same "pid of a relay that has not joined" "$pid" ""
end "$server"
echo "relay-listen: 127.0.0.1:4250" >>/etc/gozzard/server.yaml
printf 'listen: 127.0.0.1:4330\napi-listen: 127.0.0.1:8543\n' >>/etc/gozzard/relay.yaml
unit gozzard-server
server=$pid
soon gozzard token list
(umask 077; gozzard relays token plant --areas 3 >/tmp/relay.token)
gozzard relay join --server https://127.0.0.1:8443 --token-file /tmp/relay.token --data /var/lib/gozzard-relay >/tmp/join.out 2>&1 ||
	fail "relay join: $(cat /tmp/join.out)"
chown -R gozzard-relay: /var/lib/gozzard-relay # systemd does it, because another account has the folder of StateDirectory=
unit gozzard-relay
relay=$pid
soon sh -c "gozzard relays | grep 'plant .* 3 *active *[0-9]'" # and when it was seen
same "account of the relay" "$(stat -c %U "/proc/$relay")" gozzard-relay
install -d -m 0700 /var/lib/gozzard-agent
(umask 077; gozzard token create --cloud 3 >/var/lib/gozzard-agent/token)
gozzard agent join --server https://127.0.0.1:8543 --ip 10.9.0.5 --token-file /var/lib/gozzard-agent/token --data /var/lib/gozzard-agent >/tmp/join.out 2>&1 ||
	fail "join through the relay: $(cat /tmp/join.out)"
unit gozzard-agent
soon sh -c "gozzard hosts | grep '3:10.9.0.5 *yes'"
end "$pid"
end "$relay"
rm -rf /var/lib/gozzard-agent /etc/gozzard/policy.yaml

say "the script of the server, on a host that has no program yet"
cp /usr/bin/gozzard /tmp/gozzard # for this test
rm /usr/bin/gozzard /usr/lib/systemd/system/gozzard-agent.service /etc/gozzard/agent.yaml
mkdir -p /run/systemd/system /etc/systemd/system
printf '#!/bin/sh\necho "$@" >>/tmp/systemctl.calls\n' >/usr/bin/systemctl.new
chmod 755 /usr/bin/systemctl.new && mv /usr/bin/systemctl.new /usr/bin/systemctl
fetch() { curl -fsSL --cacert /var/lib/gozzard/ca.pem https://127.0.0.1:8443/join; }
curl -fsSL https://127.0.0.1:8443/join >/dev/null 2>&1 && fail "curl trusts the server without its certificate"
fetch >/tmp/join.sh
half=$(($(wc -c </tmp/join.sh) / 2))
head -c $half /tmp/join.sh | sh >/dev/null 2>&1 || true
[ ! -e /usr/bin/gozzard ] && [ ! -e /var/lib/gozzard-agent ] || fail "half a script did something"
sed "s/= '[0-9a-f]\{64\}'/= '$(printf %064d 0)'/" /tmp/join.sh | GOZZARD_TOKEN=gz1.x sh >/tmp/join.out 2>&1 && fail "a wrong checksum was accepted"
has "nothing was installed" cat /tmp/join.out
[ ! -e /usr/bin/gozzard ] || fail "a program with a wrong checksum was installed"
setsid -w sh /tmp/join.sh </dev/null >/tmp/join.out 2>&1 && fail "the script joined without a token"
has "there is no token" cat /tmp/join.out
LC_ALL=zh_CN.UTF-8 setsid -w sh /tmp/join.sh </dev/null >/tmp/join.out 2>&1 && fail "the script joined without a token"
has "没有令牌" cat /tmp/join.out
token=$(/tmp/gozzard token create 2>/dev/null)
fetch | GOZZARD_TOKEN=$token GOZZARD_JOIN_FLAGS="--ip 10.9.0.4 --allow-user games --allow-path /var/games" sh >/tmp/join.out 2>&1 ||
	fail "the script failed: $(cat /tmp/join.out)"
cmp /usr/bin/gozzard /tmp/gozzard || fail "another program was installed"
has "enable --now gozzard-agent.service" cat /tmp/systemctl.calls
has '"games"' grep '^users:' /etc/gozzard/policy.yaml
cmp /packaging/gozzard-agent.service /etc/systemd/system/gozzard-agent.service || fail "another unit was installed"
cp /etc/systemd/system/gozzard-agent.service /usr/lib/systemd/system/ # where this test looks for units
unit gozzard-agent
soon sh -c "gozzard hosts | grep '0:10.9.0.4 *yes'"
fetch | GOZZARD_TOKEN=$token sh >/tmp/join.out 2>&1 && fail "a member joined again"
has "gozzard agent leave" cat /tmp/join.out

say "the host leaves: the server, the unit and the state forget it"
end "$pid"
has "removed /etc/systemd/system/gozzard-agent.service" gozzard agent leave --data /var/lib/gozzard-agent --stop
has "disable --now gozzard-agent.service" cat /tmp/systemctl.calls
gozzard hosts | grep 10.9.0.4 && fail "the server knows the host still"
[ ! -e /var/lib/gozzard-agent ] && [ ! -e /etc/systemd/system/gozzard-agent.service ] || fail "something is left"
end "$server"
