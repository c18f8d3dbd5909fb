# reference.sh: what the examples of the command reference take for granted.
export GOZZARD_CREDENTIALS=/var/lib/gozzard/credentials.json
for account in shop www app; do useradd --system --no-create-home "$account"; done
PATH=$PATH:/src/bin

# fleet: a server at https://10.0.0.1:8443, and an agent on each of the hosts 10.0.0.1, 10.0.0.2 and 10.0.0.3. Their policy allows the processes
# of the examples, and files in /etc/shop.
fleet() {
	local n
	two_more_machines
	enrolled
	shop_policy >/etc/gozzard/policy.yaml
	installed_on 2 3
	(umask 077; gozzard token create --uses 2 >token)
	for n in 2 3; do joined $n; done
	soon all_online
}

shop_policy() {
	cat <<'POLICY'
allow_root: true
users: ["*"]
deny_uids: ""
path_prefixes: ["/"]
trusted_paths: false
shell: true
max_processes: 2000
files: {paths: [/etc/shop], owners: [shop], max_size: 1048576}
POLICY
}

# joined N: the agent of machine N joins with the file token, and runs.
joined() {
	scp token 10.0.0.$1:
	inside $1 gozzard agent join --server https://10.0.0.1:8443 --token-file token --data /var/lib/gozzard-agent >/tmp/join-$1.log 2>&1 || fail "join"
	background_on $1 0 "gozzard agent --data /var/lib/gozzard-agent"
}

# example_of VERB: the file that the help of a command shows.
example_of() { awk -v h="## gozzard $1" '$0 == h {s=1} s && /^```text/ {f=1; next} f && /^```/ {exit} f' docs/command-reference.md | sed 's/^  //'; }

# script FILE LINE...: a shell script that everyone may run.
script() {
	printf '%s\n' '#!/bin/sh' "${@:2}" >"$1"
	chmod 755 "$1"
}

# processes: the namespace shop has web on the host 10.0.0.1, web-1 on 10.0.0.1, and worker and game-1 on 10.0.0.1 and 10.0.0.2.
processes() {
	process web 10.0.0.1
	process web-1 10.0.0.1
	process worker 10.0.0.1 10.0.0.2
	process game-1 10.0.0.1 10.0.0.2
}

# process NAME HOST...: a process of the namespace shop runs on these hosts.
process() {
	local host hosts=()
	for host in "${@:2}"; do hosts+=(--host "$host"); done
	printf '%s\n' "name: $1" 'namespace: shop' 'command: sleep 10000' 'user: root' 'folder: /' 'reload: "true"' 'start_check: 1s' 'labels: {tier: front}' |
		gozzard register -f - "${hosts[@]}" >/tmp/register.log 2>&1 || fail "register $1"
	gozzard start "$1" -n shop "${hosts[@]}" >/tmp/start.log 2>&1 || fail "start $1"
}

# one_web: the process web is on the host 10.0.0.1 only, and runs, as the others do.
one_web() {
	gozzard stop web -n shop --host 10.0.0.2 && gozzard unregister web -n shop --host 10.0.0.2
	gozzard start web worker 'game-*' -n shop --all-hosts
	gozzard start --biz 2 -e 'front.*.*.nginx.*'
} >/tmp/one_web.log 2>&1

# all_stop: the processes are stopped.
all_stop() {
	gozzard stop web worker 'game-*' -n shop --all-hosts
	gozzard stop --biz 2 -e 'front.*.*.nginx.*'
} >/tmp/all_stop.log 2>&1

# two_webs: web runs on two hosts.
two_webs() { process web 10.0.0.1 10.0.0.2; }

# business: the business of the help, with its commands in /opt/nginx.
business() {
	mkdir -p /opt/nginx
	cp /usr/bin/sleep /opt/nginx/nginx
	script /opt/nginx/start.sh './nginx 10000 &' 'echo $! >"/run/nginx-$1.pid"'
	script /opt/nginx/stop.sh 'kill $(cat "/run/nginx-$1.pid")'
	script /opt/nginx/restart.sh './stop.sh "$1"' 'exec ./start.sh "$1"'
	script /opt/nginx/reload.sh 'kill -0 $(cat "/run/nginx-$1.pid")'
	script /opt/nginx/kill.sh 'kill -9 $(cat "/run/nginx-$1.pid")'
	chmod 1777 /run
	example_of "topology apply" >shop.yaml
	sed -i 's/start_check_secs: 5/start_check_secs: 1/; s/proc_num: 1/proc_num: 2/; s|/run/nginx.pid|"/run/nginx-${local_inst_id}.pid"|
s|[.]/[a-z]*[.]sh|"& ${local_inst_id}"|g' shop.yaml
}

applied() { gozzard topology apply -f shop.yaml >/tmp/apply.log 2>&1 || fail "apply"; }

# web_file: the definition that the help of "gozzard register" shows, of a web that takes port 8080.
web_file() {
	mkdir -p /opt/web /opt/worker
	: >/opt/web/ping
	script /opt/web/web 'exec /usr/bin/python3 -m http.server "$2"'
	script /opt/worker/worker 'while :; do sleep 1000; done'
	script /srv/serve 'while :; do sleep 1000; done'
	script backup.sh 'exit 0'
	example_of register | sed 's/127.0.0.1}/10.0.0.1}/' >web.yaml
	echo 'start_check: 1s' >>web.yaml
}

# on_terminal LINE TEXT: a command of the page on a terminal, on which a person answers y.
on_terminal() { command_of_page "$1" "{ sleep 1; echo y; } | command script -qec $(printf %q "$2") /dev/null" "${3:-}"; }

# broken_task: a start that fails, because its program is missing. It prints the number of the task.
broken_task() {
	gozzard run --name broken --user root --dir /srv --host 10.0.0.1 -- /srv/broken >/tmp/broken.log 2>&1 || true
	gozzard tasks --state failed | awk 'NR == 2 { print $2 }'
}

# agent_ends_on N: the agent of a machine ends and is offline.
agent_ends_on() {
	inside $1 pkill -x gozzard
	soon eval "gozzard hosts | grep '10.0.0.$1 .* no '"
}

# waiting_task: a start that waits for the host 10.0.0.3, which is offline. It prints the number of the task.
waiting_task() {
	process late 10.0.0.3
	agent_ends_on 3 >/dev/null
	gozzard start late --wait-offline 1h --detach 2>/dev/null
}

# server_again FLAG...: the server starts again with other settings.
server_again() {
	unit_ends server
	background 0 "gozzard server --data /var/lib/gozzard --listen 0.0.0.0:8443 --agent-listen 0.0.0.0:4230 $*"
	soon gozzard hosts
}

# passwords: the files that the examples name. old.txt is the password of alice.
passwords() {
	(umask 077; for name in alice bob carol new; do head -c 12 /dev/urandom | base64 >$name.txt; done)
	cp alice.txt old.txt
}

# people: alice, bob and carol have a password. alice and bob are admins.
people() {
	passwords
	gozzard user create alice --password-file alice.txt --role admin
	gozzard user create carol --password-file carol.txt
	gozzard user login alice --password-file alice.txt --out alice.json
	gozzard user create bob --password-file bob.txt --role admin
	gozzard user login bob --password-file bob.txt --out bob.json
} >/tmp/people.log 2>&1

# logged_in: alice has her first password and is logged in, with the credentials in me.json.
logged_in() {
	gozzard user enable alice
	gozzard user password alice --password-file alice.txt
	gozzard user login alice --password-file alice.txt --out me.json
} >/tmp/alice.log 2>&1

# enrolled_factor: makes a second factor of alice. code: its code of now.
enrolled_factor() { gozzard user totp enrol alice --password-file alice.txt -o json >factor.json; }
code() {
	python3 - <<'PYTHON'
import base64, hashlib, hmac, json, struct, time
key = base64.b32decode(json.load(open("factor.json"))["secret"])
digest = hmac.new(key, struct.pack(">Q", int(time.time()) // 30), hashlib.sha1).digest()
at = digest[-1] & 15
print("%06d" % ((struct.unpack(">I", digest[at:at + 4])[0] & 0x7fffffff) % 1000000))
PYTHON
}

# older_grants: the app shop and alice have grants as versions before hosts and accounts recorded them.
older_grants() {
	python3 - <<'PYTHON'
import json, sqlite3
record = sqlite3.connect("/var/lib/gozzard/gozzard.db")
record.execute("UPDATE apps SET grants = ? WHERE code = 'shop'", [json.dumps([{"role": "operator", "businesses": [2]}])])
record.execute("UPDATE users SET grants = ? WHERE name = 'alice'",
               [json.dumps([{"role": "viewer"}, {"role": "operator", "namespaces": ["shop*"]}])])
record.commit()
PYTHON
}

# requested: alice asks for a grant that another person must approve. $request is its id, $digest its digest.
requested() {
	gozzard grant add --user carol --role admin --credentials alice.json >/tmp/asked.log 2>&1 || true; cat /tmp/asked.log
	request=$(gozzard request list | awk '/waiting|等待/ { print $1; exit }')
	digest=$(gozzard request list -o json | sed -n 's/.*"digest": "\(.*\)".*/\1/p' | head -1)
}

# newest_row: the number and the hash of the newest row of the audit.
newest_row() { gozzard audit verify | grep -oE '[0-9]+:[0-9a-f]{64}' | tail -1; }
# checkpoint_key: the key that signs checkpoints.
checkpoint_key() { gozzard key list --data /var/lib/gozzard -o json | grep -o 'gzk1[^"]*' | head -1; }

# kept: the hash of a content that the host keeps.
kept() { gozzard file history /etc/shop/web.conf --account shop --host 10.0.0.1 -o json | sed -n 's/.*"sha256": "\(.*\)".*/\1/p' | tail -1; }

# release_1_2_3: the folder dist has a signed release for this platform. Its program only says its version.
release_1_2_3() {
	local supply="go run -trimpath ./tools/supply"
	mkdir -p dist
	script dist/gozzard-linux-amd64 'echo gozzard 1.2.3'
	openssl genpkey -algorithm ed25519 -out release.key
	openssl pkey -in release.key -pubout -out dist/release.pub
	export CGO_ENABLED=0
	$supply manifest -version 1.2.3 -days 365 dist
	$supply signmanifest -key release.key dist
} >/tmp/release.log 2>&1

# host_gone [N]: the host of this machine, or of machine N, is no member, and has no state and no policy of its own.
host_gone() {
	if [ -z "${1:-}" ]; then
		unit_ends agent
		gozzard hosts remove 0:10.0.0.1 || true
		rm -rf /var/lib/gozzard-agent /etc/gozzard/policy.yaml
	else
		inside $1 pkill -x gozzard || true
		gozzard hosts remove 0:10.0.0.$1 || true
		inside $1 rm -rf /var/lib/gozzard-agent
	fi
}

# host_joins N FLAG...: machine N joins with a token of its own. FLAG is for the token.
host_joins() {
	(umask 077; gozzard token create "${@:2}" >token)
	joined $1
}

# templates: the templates nginx and limits of the business, for files in /etc/shop.
templates() {
	install -o shop -d /etc/shop
	example_of "config apply" >nginx.yaml
	echo 'processes = ${WorkerCount}' >nginx.conf.tpl
	sed -i 's/file_name: nginx.conf/file_name: nginx-${LocalInstID}.conf/' nginx.yaml
	new_content 0
}

# new_content TEXT: the templates get a new version.
new_content() {
	echo "# content $1" >nginx.conf.tpl
	sed 's/name: nginx /name: limits /; s/nginx-/limits-/' nginx.yaml >limits.yaml
	gozzard config apply -f nginx.yaml
	gozzard config apply -f limits.yaml
}

# job: the newest job. version: the oldest version of the template nginx.
job() { gozzard config history -o json | sed -n 's/.*"id": \([0-9]*\).*/\1/p' | awk 'NR == 1 { id = $1 } END { print id ? id : "none" }'; }
version() { gozzard config show nginx -o json | sed -n '/"versions"/,$s/.*"id": \([0-9]*\),/\1/p' | tail -1; }

# restored: the record is that of a backup. The hosts wait for an admin.
restored() {
	gozzard backup create --data /var/lib/gozzard --to saved.age --passphrase-file alice.txt
	unit_ends server
	cp /var/lib/gozzard/credentials.json saved.json # no backup has it
	rm -rf /var/lib/gozzard
	gozzard backup restore saved.age --passphrase-file alice.txt --data /var/lib/gozzard
	cp saved.json /var/lib/gozzard/credentials.json
	server_again
} >/tmp/restored.log 2>&1

# upgrade_ended: the newest upgrade is stopped, because a host refused it.
upgrade_ended() { gozzard release status | grep -E '^(upgrade|升级) .* stopped'; }

# import_files: files of other process managers.
import_files() {
	pm2() { echo '[{"name": "shop", "pm2_env": {"pm_exec_path": "/srv/app.js", "pm_cwd": "/srv"}}]'; }
	echo '{"apps": [{"name": "shop", "script": "/srv/app.js", "cwd": "/srv"}]}' >ecosystem.json
	echo 'web: sleep 1000' >Procfile
	mkdir -p /usr/local/gse/agent/etc /etc/supervisor/conf.d
	echo '{"proc": [{"procName": "sleep", "setupPath": "/srv", "pidPath": "/srv/sleep.pid", "contact": "shop", "valuekey": "shop:sleep",
 "startCmd": "exec sleep 2000", "type": 1, "user": "root"}]}' >/usr/local/gse/agent/etc/procinfo.json
	printf '[program:web]\ncommand=sleep 1\nuser=root\n' | tee /etc/supervisor/supervisord.conf >/etc/supervisor/conf.d/web.conf
	printf '[Service]\nExecStart=/usr/bin/sleep 1000\n' | tee web.service >web@1.service
}

# alerts_arrive: a receiver at http://10.0.0.1:9000 takes alerts, and rejects those for /no.
alerts_arrive() {
	cat >receiver.py <<'PYTHON'
import http.server as h
class Receiver(h.BaseHTTPRequestHandler):
    def do_POST(self):
        self.send_response(400 if self.path == "/no" else 200)
        self.end_headers()
h.HTTPServer(("10.0.0.1", 9000), Receiver).serve_forever()
PYTHON
	background 0 "python3 receiver.py"
	soon curl -s http://10.0.0.1:9000/
}

# dead_letters: there are two messages that a receiver rejected.
dead_letters() {
	local name
	for name in odd even; do
		gozzard notify receivers create $name --receiver-kind webhook --to-url http://10.0.0.1:9000/no
		gozzard notify subscriptions create $name --receiver $name --alert task_failed --wait 1s
	done
	gozzard run --name broken --dir / -- false || true
	soon eval '[ "$(gozzard notify dead-letters | wc -l)" = 3 ]'
}

# dead_letter: the id of one of them.
dead_letter() { gozzard notify dead-letters | awk 'NR == 2 { print $1 }' | grep .; }

# pager: the receiver pager, of which the secret is in the file secret.
pager() {
	(umask 077; openssl rand -hex 16 >secret; echo 'https://qyapi.weixin.qq.com/cgi-bin/webhook/send?key=1' >robot-url)
	gozzard notify receivers create pager --receiver-kind webhook --to-url http://10.0.0.1:9000/ --secret-file secret
}

# relay_token: machine 2 has a token for a relay.
relay_token() {
	(umask 077; gozzard relays token plant-5 --areas 3 >token)
	scp token 10.0.0.2:
}

# in_cluster N: the settings of server N, which shares the database.
in_cluster() {
	echo "--listen 0.0.0.0:8443 --agent-listen 0.0.0.0:4230 --record postgres://gozzard@db.example.com/gozzard?sslrootcert=/etc/gozzard/db-ca.pem" \
		"--cluster-listen 0.0.0.0:4240 --cluster-address server$1.example.com:4240 --agent-address server$1.example.com:4230"
}
