//go:build linux

package pages_test

// referenceBusiness has a business and the configuration files of its processes.
func referenceBusiness() page {
	return page{part: "_business", nouns: "config topology",
		replaced: []string{"history 17", "history $(job)", "stop 17", "stop $(job)", "--version 3", "--version $(version)",
			"--confirm 1200", "--confirm 2"},
		before: `fleet; business; applied; templates
gozzard start --biz 2 -e '*.*.*.*.*'`,
		rules: []rule{
			{begins: "gozzard config diff nginx", how: fails, then: "gozzard config release nginx"}, // they differ
			{begins: "## gozzard config history", first: "gozzard config release nginx"},
			{begins: "gozzard config release nginx -e", first: "echo '# by hand' >>/etc/shop/nginx-1.conf"},
			{begins: "gozzard config release nginx --then reload", first: "new_content 1"},
			{begins: "gozzard config release nginx --then restart", first: "new_content 2"},
			{begins: "## gozzard config remove",
				then: `gozzard config apply -f nginx.yaml; gozzard config release nginx
new_content 3; gozzard config release nginx`},
			{begins: "## gozzard config stop",
				first: "new_content 5; gozzard config release nginx --batch 1 --watch 30s --then reload --detach"},
			{begins: "## gozzard topology apply", first: "gozzard stop --biz 2 -e '*.*.*.*.*'"},
			{begins: "## gozzard topology remove", then: "gozzard topology apply -f shop.yaml"},
		}}
}

// referenceHosts has the membership of hosts, and releases for them. The program of the release only says its
// version, and no host has a release key: hosts refuse it.
func referenceHosts() page {
	const rejoins = "host_gone 2; host_joins 2"
	return page{part: "_hosts", nouns: "conform hosts release",
		replaced: []string{"https://gse.example.org", "https://10.0.0.1:8443", "10.0.0.5", "10.0.0.2", "0:10.0.0.9", "0:10.0.0.3",
			"--confirm 41", "--confirm 2"},
		before: `fleet; processes
cp /var/lib/gozzard/credentials.json gse.json; install -d -o shop /data/conform
passwords; gozzard user create bob --password-file bob.txt --role admin`,
		rules: []rule{
			{begins: "gozzard hosts address 0:10.0.0.2 --add 10.0.0.12 --remove",
				then: "gozzard hosts address 0:10.0.0.12 --add 10.0.0.2 --remove 10.0.0.12"},
			{begins: "## gozzard hosts approve", first: "host_gone 2; host_joins 2 --approve"},
			{begins: "## gozzard hosts confirm-restore", first: "restored",
				then: "host_gone 3; host_joins 3; soon all_online"},
			{begins: "## gozzard hosts forget", first: "agent_ends_on 2"},
			{begins: "## gozzard hosts remove",
				first: rejoins}, {begins: "## gozzard hosts restart", first: rejoins + "; soon all_online"},
			{begins: "## gozzard hosts revoke", then: rejoins + "; soon all_online"},
			{begins: "## gozzard release approve", first: `release_1_2_3
server_again --release-key dist/release.pub --release-two-person; soon all_online
gozzard release publish dist; gozzard release roll 1.2.3
gozzard user login bob --password-file bob.txt --out bob.json; export GOZZARD_CREDENTIALS=/src/bob.json`,
				then: "export GOZZARD_CREDENTIALS=/var/lib/gozzard/credentials.json"},
			{begins: "## gozzard release remove", first: "soon upgrade_ended", then: "gozzard release publish dist"},
			{begins: "gozzard release roll 1.2.3 --stages", first: "gozzard release stop 1.2.3"},
			{begins: "gozzard release roll 1.2.3 --host", first: "gozzard release stop 1.2.3"},
		}}
}

// referenceDev has what needs no fleet: servers of "gozzard dev", simulated hosts and imported definitions.
func referenceDev() page {
	return page{part: "_dev", nouns: "console demo dev import sim version",
		before: `unset GOZZARD_CREDENTIALS
background 0 "gozzard dev --demo"
soon online gozzard
import_files`,
		rules: []rule{
			{begins: "gozzard console --open", first: "xdg-open() { :; }; export -f xdg-open"},
			{begins: "## gozzard demo remove", first: "soon eval 'gozzard ps | grep -q running'"},
			{begins: "gozzard dev", how: background, first: "everything_ends", then: "soon online gozzard"},
			{begins: "gozzard dev --demo", how: background, first: "everything_ends", then: "soon online gozzard"},
			{begins: "gozzard dev --data", how: background, first: "everything_ends",
				then: "soon online gozzard --credentials /tmp/fleet/dev.json"},
			{begins: "gozzard sim --hosts 2000 --secret-file", how: follow, first: `everything_ends; rm -rf data
background 0 "gozzard server --data data"; soon test -s data/join.secret`},
			{begins: "gozzard sim --hosts 2000 --first", how: follow, first: `everything_ends
background 0 "gozzard server --data /var/lib/gozzard --listen 0.0.0.0:8443 --agent-listen 0.0.0.0:4230"
export GOZZARD_CREDENTIALS=/var/lib/gozzard/credentials.json; soon gozzard hosts
(umask 077; gozzard token create --uses 2000 >token)`},
			{begins: "gozzard sim --hosts 100", how: follow, first: `everything_ends
background 0 "gozzard server --data data"; soon test -s data/join.secret`},
		}}
}

// referenceAudit has the audit and the tokens of hosts. The server signs its newest row
// every second instead of every hour.
func referenceAudit() page {
	return page{part: "_audit", nouns: "audit token",
		replaced: []string{"4711:6f0c…", "$row", "4711", "1", "gzk1.1.kYx…", "$(checkpoint_key)", "10.0.0.5", "10.0.0.1"},
		before: `enrolled
mkdir -p /var/log/gozzard
server_again --audit-checkpoint 1s --audit-file /var/log/gozzard/audit.jsonl
row=$(newest_row)`,
		rules: []rule{
			{begins: "gozzard audit verify --checkpoints",
				first: "soon cp /var/lib/gozzard/audit.checkpoints collected.log"},
			{begins: "gozzard audit verify-export --expect", first: `head -n 3 /var/log/gozzard/audit.jsonl >audit.jsonl.1
tail -n +4 /var/log/gozzard/audit.jsonl >audit.jsonl`},
		}}
}

// referenceNotify has a receiver that takes everything, at http://10.0.0.1:9000, and one that rejects everything.
func referenceNotify() page {
	return page{part: "_notify", nouns: "notify",
		replaced: []string{"https://pager.example.com", "http://10.0.0.1:9000", " 17", " $(dead_letter)"},
		before: `enrolled
shop_policy >/etc/gozzard/policy.yaml
alerts_arrive
script /srv/page 'cat >/dev/null'; mkdir /srv/commands; mv /srv/page /srv/commands/
server_again --notify-commands /srv/commands --notify-account nobody
soon online gozzard
dead_letters`,
		rules: []rule{
			{begins: "## gozzard notify receivers change", first: "pager"},
			{begins: "## gozzard notify receivers create", first: "gozzard notify receivers remove pager"},
			{begins: "## gozzard notify receivers test", first: "pager"},
			{begins: "## gozzard notify subscriptions change",
				first: "gozzard notify subscriptions create night --receiver pager"},
			{begins: "## gozzard notify subscriptions create", first: "gozzard notify subscriptions remove night"},
		}}
}

// referenceBackup has backups, the record, and its copy in PostgreSQL.
func referenceBackup() page {
	return page{part: "_backup", nouns: "backup doctor record",
		replaced: []string{"age1…", "$(public_key)", "FILE", "alice.txt", " …", ""},
		before: `named 10.0.0.1 db.example.com
enrolled; passwords
mkdir /backup
public_key() { sed -n 's/.*public key: //p' backup.key; }
gozzard backup keygen --to backup.key`,
		rules: []rule{
			{begins: "gozzard backup create"}, {begins: "gozzard backup create", first: "mv /backup/gozzard-1.age ."},
			{begins: "## gozzard backup keygen", first: "mv backup.key first.key",
				then: "mv first.key backup.key; mv gozzard-1.age /backup/"},
			{begins: "gozzard backup restore",
				first: "cp /var/lib/gozzard/credentials.json .; everything_ends; export GOZZARD_CREDENTIALS=/src/credentials.json"},
			{begins: "gozzard server --data", how: background,
				first: "export GOZZARD_LISTEN=0.0.0.0:8443 GOZZARD_AGENT_LISTEN=0.0.0.0:4230", then: "soon gozzard hosts"},
			{begins: "gozzard doctor --data /var/lib/gozzard --backup-to", first: `openssl req -x509 -newkey rsa:2048 -nodes \
  -days 90 -subj /CN=api -addext subjectAltName=DNS:api.example.com \
  -keyout /etc/gozzard/api.key -out /etc/gozzard/api.pem 2>/tmp/openssl.log`},
			{begins: "## gozzard record mark-restored",
				first: `psql -qc 'DROP DATABASE gozzard' -c 'CREATE DATABASE gozzard OWNER gozzard'
gozzard record copy --data /var/lib/gozzard --to postgres://gozzard@db.example.com/gozzard`},
			{begins: "gozzard record copy --data /var/lib/gozzard --to",
				first: "database; unit_ends server; export PGSSLROOTCERT=/etc/gozzard/db-ca.pem"},
		}}
}

// referenceServers has keys, relays and servers. A relay and the second server are on machine 2.
func referenceServers() page {
	const relays = `--relay-listen 0.0.0.0:4250 --relay-address 10.0.0.1:4250`
	return page{part: "_servers", nouns: "key relay relays server servers",
		replaced: []string{"k3v7qcm2x5ta", "$(relay_id)", "4k2vqhzl3a7n6m5xw2bt4y6cde", "$(second)"},
		before: `export GOZZARD_CERTIFICATE_LIFE=15s
fleet
named 10.0.0.1 db.example.com server1.example.com
named 10.0.0.2 server2.example.com
inside 2 ip address add 192.168.5.2/24 dev eth0
moved() { gozzard key status | grep -qE '^(moved|已转移).* 3 '; }
relay_id() { gozzard relays -o json | sed -n 's/.*"id": "\(.*\)".*/\1/p'; }
second() { gozzard servers | awk 'NR > 1 && $1 !~ /[*]$/ { print $2 }'; }`,
		rules: []rule{
			{begins: "gozzard key rotate authority --finish", first: "soon moved", then: "soon all_online"},
			{begins: "gozzard key rotate --data", first: `printf 'listen: 0.0.0.0:8443\nagent-listen: 0.0.0.0:4230\n' >/etc/gozzard/server.yaml
unit_ends server; systemctl start gozzard-server`, then: "soon all_online"},
			{begins: "gozzard relay join", how: on2,
				first: "unit_ends server; chown -R root: /var/lib/gozzard; server_again " + relays + "; relay_token"},
			{begins: "gozzard relay --data", how: back2, then: "soon inside 2 curl -ks https://192.168.5.2:8443/"},
			{begins: "## gozzard relay join", first: `inside 2 pkill -f '[g]ozzard relay --'; inside 2 rm -r /var/lib/gozzard-relay
gozzard relays remove "$(relay_id)"; relay_token`},
			{begins: "gozzard relay join", how: on2},
			{begins: "gozzard server --data /var/lib/gozzard", how: background, first: "everything_ends",
				then: "export GOZZARD_CREDENTIALS=/var/lib/gozzard/credentials.json; soon gozzard hosts"},
			{begins: "gozzard agent  --data", how: background, then: "soon online gozzard"},
			{begins: "gozzard server --data", how: background, first: "everything_ends",
				then: "export GOZZARD_CREDENTIALS=/var/lib/gozzard/credentials.json; soon gozzard hosts"},
			{begins: "gozzard server join", how: on2, first: `everything_ends; inside 2 rm -rf /var/lib/gozzard; database
export GOZZARD_CREDENTIALS=/var/lib/gozzard/credentials.json
background 0 "gozzard server --data /var/lib/gozzard $(in_cluster 1)"; soon gozzard hosts
(umask 077; gozzard servers token >token); scp token 10.0.0.2:
cp -p /etc/gozzard/pgpass /etc/gozzard/db-ca.pem "/proc/$(init_of 2)/root/etc/gozzard/"`,
				then: `background_on 2 0 "gozzard server --data /var/lib/gozzard $(in_cluster 2)"; soon eval '[ -n "$(second)" ]'`},
		}}
}
