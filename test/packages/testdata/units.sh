cp -a /stage/. /
export GOZZARD_CREDENTIALS=/var/lib/gozzard/credentials.json

say "accounts"
sh /packaging/scripts/postinstall.sh configure
sh /packaging/scripts/postinstall.sh configure # again, as an upgrade does
for name in gozzard gozzard-server; do
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
end "$server"
