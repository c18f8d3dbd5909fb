//go:build linux

package pages_test

// relays has the server on this machine, the relay on machine 2, and a host on machine 3, which reaches nothing but the relay.
func relays() page {
	return page{file: "docs/relays.md", before: `named 10.0.0.1 server1.example.com
two_more_machines
named 192.168.7.2 relay7.plant.example.com
everything_installed
installed_on 2 3
closed_network
relay_id() { gozzard relays -o json | sed -n 's/.*"id": "\(.*\)".*/\1/p'; }
on_closed() { gozzard hosts | grep '3:192.168.7.4 .* yes'; }`,
		replaced: []string{"k3v7qcm2x5ta", "$(relay_id)"}, rules: []rule{
			{begins: "gozzard server", how: background, then: "export GOZZARD_CREDENTIALS=/var/lib/gozzard/credentials.json; soon gozzard hosts"},
			{begins: "gozzard relay join", how: on2, first: "scp token 10.0.0.2:"},
			{begins: "gozzard relay --data", how: back2, then: "soon inside 2 curl -ks https://127.0.0.1:8443/"},
			{begins: "gozzard relay join", how: on2, first: `inside 2 bash -c 'pkill -x gozzard; rm -r /var/lib/gozzard-relay'
gozzard relays remove "$(relay_id)"; (umask 077; gozzard relays token plant-7 --areas 3 > token); scp token 10.0.0.2:`},
			{begins: "systemctl", how: on2},
			{begins: "gozzard agent join", how: on3, first: "cp token /proc/$(init_of 3)/root/root/",
				then: `background_on 3 0 "gozzard agent --data /var/lib/gozzard-agent"; soon on_closed`},
			{begins: "gozzard relays remove", then: "soon eval '! on_closed'"},
		}}
}

// severalServers has the database and server 1 on this machine, server 2 on machine 2, and a host that joins at server 2 on machine 3.
func severalServers() page {
	return page{file: "docs/several-servers.md", before: `export GOZZARD_CERTIFICATE_LIFE=15s
everything_installed
two_more_machines
installed_on 2 3
named 10.0.0.1 db.example.com server1.example.com
named 10.0.0.2 server2.example.com
database
inside 2 bash -c 'cat >/etc/gozzard/pgpass; chmod 600 /etc/gozzard/pgpass; chown gozzard-server: /etc/gozzard/pgpass' </etc/gozzard/pgpass
cp /etc/gozzard/db-ca.pem "/proc/$(init_of 2)/root/etc/gozzard/"
second() { gozzard servers | awk 'NR > 1 && $1 !~ /[*]$/ { print $2 }'; }
drained() { gozzard servers | grep -q "$(second) .* drained"; }
moved() { gozzard key status | grep -q '^moved  *1 '; }
signs() { "$@" gozzard key list --data /var/lib/gozzard 2>/dev/null | awk '$4 == "yes" || $4 == "是" { print $1, $2 }'; }
same_key() { [[ "$(signs env)" == "2 "* ]] && [ "$(signs env)" = "$(signs inside 2)" ]; }`,
		replaced: []string{" ID", ` "$(second)"`}, rules: []rule{
			{begins: "gozzard server", how: background, then: "export GOZZARD_CREDENTIALS=/var/lib/gozzard/credentials.json; soon gozzard hosts"},
			{begins: "gozzard server join", how: on2, first: "scp token 10.0.0.2:"},
			{begins: "gozzard server --data", how: back2, then: `soon inside 2 curl -ksf https://127.0.0.1:8443/readyz
(umask 077; gozzard token create >token); scp token 10.0.0.3:
inside 3 gozzard agent join --server https://server2.example.com:8443 --token-file token --data /var/lib/gozzard-agent
background_on 3 0 "gozzard agent --data /var/lib/gozzard-agent"
soon online gozzard`},
			{begins: "gozzard servers drain", then: "drained; online gozzard"},
			{begins: "systemctl stop", how: on2},
			{begins: "systemctl start", how: on2, first: `cat >"/proc/$(init_of 2)/root/etc/gozzard/server.yaml" <<'END'
listen: 0.0.0.0:8443
agent-listen: 0.0.0.0:4230
record: postgres://gozzard@db.example.com/gozzard?sslrootcert=/etc/gozzard/db-ca.pem
cluster-listen: 0.0.0.0:4240
cluster-address: server2.example.com:4240
agent-address: server2.example.com:4230
END`, then: "drained"},
			{begins: "gozzard servers undrain", then: "! drained"},
			{begins: "gozzard key status", then: "same_key || fail \"$(signs env), $(signs inside 2)\""},
			{begins: "gozzard key rotate authority --finish", first: "soon moved", then: "soon online gozzard"},
		}}
}

// backupAndRestore has a server on this machine and hosts on machines 2 and 3, of which 3 is the one that was revoked.
func backupAndRestore() page {
	const (
		hosts = `export GOZZARD_CREDENTIALS=/var/lib/gozzard/credentials.json
soon gozzard hosts
hosts_join
`
		// Two hosts wait before they are confirmed. Afterwards one is online and the other one is revoked.
		waits    = `[ "$(gozzard hosts | grep -c ' restored')" = 2 ] || fail "no hosts wait: $(gozzard hosts)"`
		admitted = `soon eval 'gozzard hosts | grep "10.0.0.2 .* yes .* active"'; gozzard hosts | grep '10.0.0.3 .* revoked'`
	)
	return page{file: "docs/backup-and-restore.md", before: `two_more_machines
everything_installed
installed_on 2 3
named 10.0.0.1 db.example.com server1.example.com
printf 'listen: 0.0.0.0:8443\nagent-listen: 0.0.0.0:4230\n' >/etc/gozzard/server.yaml
public_key() { sed -n 's/.*public key: //p' backup.key; }
newest() { ls /var/lib/gozzard/backups/*.age | tail -1; }
hosts_join() {
	local n
	(umask 077; gozzard token create --uses 2 >token)
	for n in 2 3; do
		inside $n bash -c 'pkill -x gozzard; rm -rf /var/lib/gozzard-agent' || true
		scp token 10.0.0.$n:
		inside $n gozzard agent join --server https://10.0.0.1:8443 --token-file token --data /var/lib/gozzard-agent
		background_on $n 0 "gozzard agent --data /var/lib/gozzard-agent"
	done
	soon both_online
}
both_online() { [ "$(gozzard hosts | grep -c ' yes ')" = 2 ]; }
systemctl start gozzard-server
` + hosts,
		replaced: []string{"age1…", "$(public_key)", "gozzard-20261115T030000.000Z.age", "$(newest)", "FILE", "$(newest)", "0:10.0.0.9", "0:10.0.0.3", "--confirm 41", "--confirm 1"},
		rules: []rule{
			{begins: "gozzard backup keygen", then: `sed "s/\$(public_key)/$(public_key)/" /stage/example-0.yaml >>/etc/gozzard/server.yaml
systemctl restart gozzard-server
soon eval 'test -s "$(newest)"'`},
			{begins: "gozzard backup restore", first: "systemctl stop gozzard-server; mv /var/lib/gozzard/backups/*.age .; newest() { ls *.age | tail -1; }"},
			{begins: "gozzard server --data", how: background, then: "soon ready"},
			{begins: "gozzard hosts confirm-restore", first: waits}, {begins: "gozzard hosts confirm-restore --confirm", then: admitted},
			{begins: "runuser", how: background, first: "unit_ends server; rm /var/lib/gozzard/gozzard.db*",
				then: hosts + "unit_ends server; systemctl start gozzard-server; soon both_online"},
			{begins: "gozzard server --data", how: background, first: "everything_ends; database; export GOZZARD_LISTEN=0.0.0.0:8443 GOZZARD_AGENT_LISTEN=0.0.0.0:4230", then: hosts},
			{begins: "systemctl stop", first: "gozzard hosts remove 0:10.0.0.3"},
			{begins: "pg_restore", then: `unset GOZZARD_LISTEN GOZZARD_AGENT_LISTEN
printf 'listen: 0.0.0.0:8443\nagent-listen: 0.0.0.0:4230\n' >/etc/gozzard/server.yaml
echo 'record: postgres://gozzard@db.example.com/gozzard?sslrootcert=/etc/gozzard/db-ca.pem' >>/etc/gozzard/server.yaml
chown gozzard-server: /etc/gozzard/pgpass; chown -R gozzard-server: /var/lib/gozzard`},
			{begins: "gozzard hosts confirm-restore", first: waits}, {begins: "gozzard hosts confirm-restore --confirm", then: admitted},
		}}
}

// trySeveralServers runs the shell commands of load before it removes everything.
func trySeveralServers(load string) page {
	return page{file: "docs/try-several-servers.md", before: `PATH=$PATH:/src/bin
five_online() { [ "$(on me gozzard hosts | grep -c ' yes ')" = 5 ]; }
known_to() { [ "$(on me gozzard ps web --url "https://10.77.1.1$1:8443" | grep -c web)" = 5 ]; }
starts() {
	counts=$(sort web/starts | uniq -c)
	[ "$(awk '{ print $1 }' <<<"$counts" | uniq -c | xargs)" = "5 $1" ] || fail "starts: $counts"
}
nothing_left() {
	[ ! -e /srv/try ] || fail "the folder is left"
	! ls /run/netns/gz-* 2>/dev/null || fail "namespaces are left"
	for name in gozzard haproxy postgres sleep; do ! pgrep -x $name || fail "$name is left"; done
}`, rules: []rule{
		{begins: "apt-get", how: elsewhere, why: ".ci/deps installs them for all tests"},
		{begins: "on me gozzard hosts", first: "soon five_online"},
		{begins: "on me gozzard ps", then: "for n in 1 2 3; do soon known_to $n; done"},
		{begins: "sort web/starts", then: "starts 4"},
		{begins: "sort web/starts", then: "starts 9"},
		{begins: "on me gozzard stop", first: load},
		{begins: "cd /; rm", then: "nothing_left"},
	}}
}
