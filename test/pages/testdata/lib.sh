# What the scripts of the pages share. A script ends at the first command that fails.
set -euo pipefail
install -D /stage/gozzard /src/bin/gozzard
git config --global --add safe.directory /src 2>/dev/null || true
cd /src

fail() {
	echo "FAILED: $*"
	for f in /tmp/*.log /srv/try/*.log; do
		[ ! -e "$f" ] || { echo "-- $f"; tail -n 15 "$f"; }
	done
	exit 1
}

# soon COMMAND...: repeats a command until it succeeds, for a minute. TRIES=900 soon COMMAND...: for three minutes.
soon() {
	local tries=0
	until "$@" >/tmp/soon.out 2>&1; do
		tries=$((tries + 1))
		[ $tries -lt ${TRIES:-300} ] || fail "this did not happen: $*: $(cat /tmp/soon.out)"
		sleep 0.2
	done
}

# says TEXT COMMAND...: the output of a command has a text.
says() { "${@:2}" 2>&1 | grep -F -- "$1"; }

# command_of_page LINE TEXT [PRINTS]: runs a command of the page in this shell, because it may set variables. Its output must have PRINTS, and is no
# refusal of BlueKing's doors, which curl takes for a success.
command_of_page() {
	local log=/tmp/line-$1.log
	echo "$1: $2"
	{ eval "$2"; } >"$log" 2>&1 </dev/null || fail "line $1: $2"
	! grep -q '"result": *false' "$log" || fail "line $1: $2"
	[ -z "${3:-}" ] || grep -qF -- "$3" "$log" || fail "line $1: $2: the page says that it prints: $3"
}

# fails LINE TEXT [PRINTS]: a command of the page that fails, because it shows or repeats a failure.
fails() { command_of_page "$1" "! { $2; }" "${3:-}"; }

# background LINE TEXT: a command that keeps running, such as a server.
background() {
	echo "$1: $2 &"
	eval "$2" >"/tmp/line-$1.log" 2>&1 </dev/null &
}

# follow LINE TEXT: a command that prints until Ctrl-C.
follow() {
	echo "$1: $2 (for two seconds)"
	local code=0
	timeout -s INT 2 bash -c "$2" >"/tmp/line-$1.log" 2>&1 </dev/null || code=$?
	case $code in 0 | 124 | 130) ;; *) fail "line $1: $2: exit code $code" ;; esac
}

sudo() { env "$@"; } # the script is root
online() { "$@" hosts | grep -q ' yes '; }

# everything_installed: the program and its files, as the package has them.
everything_installed() { make -o build install PREFIX=/usr >/tmp/install.log 2>&1 || fail "make install"; }

# setting UNIT KEY: the value of a setting of an installed unit.
setting() { sed -n "s/^$2=//p" "/usr/lib/systemd/system/$1.service"; }

# systemctl start|stop|restart|enable --now UNIT: starts the command of a unit as its account, or ends it. As systemd does, it gives the account a
# folder of data that belongs to another one. Real systemd: make test-systemd.
systemctl() {
	local unit=${!#} account folder words
	read -ra words <<<"$(setting "$unit" ExecStart)"
	case $1 in stop | restart) unit_ends "${words[1]}" ;; esac
	[ "$1" != stop ] || return 0

	account=$(setting "$unit" User)
	folder=/var/lib/$(setting "$unit" StateDirectory)
	install -d -m 0700 "$folder"
	[ "$(stat -c %U "$folder")" = "$account" ] || chown -R "$account:" "$folder"
	setpriv --reuid "$account" --regid "$account" --init-groups "${words[@]}" >"/tmp/$unit.log" 2>&1 </dev/null &
	case $unit in
	gozzard-server) soon ready ;;
	gozzard-relay) soon curl -ks https://127.0.0.1:8443/ ;;
	*) soon online gozzard --credentials /var/lib/gozzard/credentials.json ;;
	esac
}

# unit_ends VERB: what runs the verb on this machine is stopped. The brackets keep pgrep from finding its own shell.
unit_ends() {
	pkill -TERM -f "[g]ozzard $1 --" || true
	soon bash -c "! pgrep -f '[g]ozzard $1 --'"
}

# ready: the server of this machine answers, at the address of the unit as shipped or at that of the pages.
ready() { curl -sf http://127.0.0.1:8080/readyz || curl -ksf https://127.0.0.1:8443/readyz; }

# enrolled: a server that others reach, and an agent that joined it. $GOZZARD_CREDENTIALS is set.
enrolled() {
	everything_installed
	export GOZZARD_CREDENTIALS=/var/lib/gozzard/credentials.json
	background 0 "gozzard server --data /var/lib/gozzard --listen 0.0.0.0:8443 --agent-listen 0.0.0.0:4230"
	soon gozzard hosts
	(umask 077; gozzard token create >token)
	gozzard agent join --server https://10.0.0.1:8443 --token-file token --data /var/lib/gozzard-agent >/tmp/join.log 2>&1 || fail "join"
	background 0 "gozzard agent --data /var/lib/gozzard-agent"
	soon online gozzard
}

# agent_ends: the agent is stopped.
agent_ends() {
	pgrep -f '[g]ozzard agent --'
	unit_ends agent
}

# everything_ends: the next section of a page begins on a clean machine.
everything_ends() {
	pkill -KILL -x gozzard || true
	soon bash -c '! pgrep -x gozzard'
	rm -rf /var/lib/gozzard /var/lib/gozzard-agent /etc/gozzard/policy.yaml
	unset GOZZARD_CREDENTIALS
}

# two_more_machines: hosts 10.0.0.2 and 10.0.0.3, each with processes, a network, accounts' folders and programs of its own. They have no Gozzard.
two_more_machines() {
	ip address del 10.0.0.1/24 dev lo
	ip link add br0 type bridge
	ip address add 10.0.0.1/24 dev br0
	ip link set br0 up
	local n
	for n in 2 3; do
		unshare --mount --net --pid --fork --kill-child --mount-proc --propagation private bash /tests/machine.sh $n >/tmp/machine-$n.log 2>&1 &
		echo $! >/tmp/machine-$n.unshare
		soon inside $n test -e /run/machine
		ip link add m$n type veth peer name eth0 netns "$(init_of $n)"
		ip link set m$n master br0 up
		inside $n ip link set eth0 up
		inside $n ip address add 10.0.0.$n/24 dev eth0
	done
	: >/tmp/soon.out
}

# init_of N: the first process of a machine. inside N COMMAND...: runs a command on it.
init_of() { pgrep -P "$(cat "/tmp/machine-$1.unshare")"; }
inside() { nsenter -t "$(init_of "$1")" -m -n -p -r env --chdir=/root "${@:2}"; }

# on MACHINES LINE TEXT [PRINTS]: runs a command of the page on machines, which are numbers with commas between them.
on() {
	local n
	export -f sudo systemctl setting unit_ends ready soon fail
	for n in ${1//,/ }; do
		command_of_page "$2" "inside $n bash -c $(printf %q "$3")" "${4:-}"
	done
}

# background_on MACHINE LINE TEXT: a command on a machine that keeps running.
background_on() { background "$2" "inside $1 $3"; }

# installed_on N...: machines have the program and its settings, as with the package.
installed_on() {
	local n
	for n in "$@"; do
		inside $n ln -s /src/bin/gozzard /usr/bin/gozzard
		cp /etc/gozzard/*.yaml "/proc/$(init_of $n)/root/etc/gozzard/"
	done
}

# new_agents: starts the agents of both machines, as systemd does behind the script.
new_agents() {
	local n
	for n in 2 3; do
		inside $n gozzard agent --config /etc/gozzard/agent.yaml --data /var/lib/gozzard-agent >/tmp/agent-$n.log 2>&1 </dev/null &
	done
}

# scp FILE... ADDRESS:: copies files to the home of root.
scp() {
	local to=${!#}
	to=${to#10.0.0.}
	cp "${@:1:$#-1}" "/proc/$(init_of "${to%:}")/root/root/"
}

all_online() { [ "$(gozzard hosts | grep -c ' yes ')" = 3 ]; }
another_nginx() { gozzard ps nginx -n shop | grep -q 'running  *[0-9]*  *1 '; }
version_1() { # an old worker of nginx may answer for a moment beside the new one
	for _ in 1 2 3 4 5 6; do
		curl -sf http://10.0.0.3:8081/ | grep -q 'version 1' || return 1
		sleep 0.3
	done
}

# closed_network: machine 3 reaches nothing but machine 2, which is in its network, too: 192.168.7.0/24.
closed_network() {
	ip link add br1 type bridge
	ip link set br1 up
	ip link set m3 master br1
	inside 3 ip address del 10.0.0.3/24 dev eth0
	inside 3 ip address add 192.168.7.4/24 dev eth0
	ip link add p2 type veth peer name eth1 netns "$(init_of 2)"
	ip link set p2 master br1 up
	inside 2 ip link set eth1 up
	inside 2 ip address add 192.168.7.2/24 dev eth1
	! inside 3 ip route get 10.0.0.1 2>/dev/null || fail "the network is not closed"
}

# database: PostgreSQL at db.example.com with TLS, and the role and the database of the page. Its tools run as its administrator.
database() {
	PATH=$(ls -d /usr/lib/postgresql/*/bin | sort -V | tail -n 1):$PATH
	export PGHOST=/srv/db PGUSER=postgres PGPASSFILE=/etc/gozzard/pgpass
	local as=(setpriv --reuid postgres --regid postgres --init-groups) password
	install -d -o postgres -g postgres /srv/db
	"${as[@]}" "$(command -v initdb)" -D /srv/db/data -U postgres --auth-local trust --auth-host scram-sha-256 -E UTF8 --locale C.UTF-8 >/tmp/initdb.log
	echo 'hostssl gozzard gozzard 10.0.0.0/24 scram-sha-256' >>/srv/db/data/pg_hba.conf
	openssl req -x509 -newkey rsa:2048 -nodes -days 30 -subj /CN=db -addext subjectAltName=DNS:db.example.com -keyout /srv/db/key.pem \
		-out /etc/gozzard/db-ca.pem 2>/tmp/openssl.log
	chown postgres: /srv/db/key.pem
	"${as[@]}" "$(command -v postgres)" -D /srv/db/data -k /srv/db -c listen_addresses=10.0.0.1 -c fsync=off -c ssl=on \
		-c ssl_cert_file=/etc/gozzard/db-ca.pem -c ssl_key_file=/srv/db/key.pem >/tmp/database.log 2>&1 </dev/null &
	soon pg_isready

	password=$(openssl rand -hex 16)
	awk '/^```sql/{f=1;next} /^```/{f=0} f' docs/backup-and-restore.md | sed "s/'…'/'$password'/" | psql -X -v ON_ERROR_STOP=1 >/tmp/psql.log
	(umask 077; echo "db.example.com:5432:gozzard:gozzard:$password" >$PGPASSFILE)
}

# named ADDRESS NAME...: all machines find an address under names.
named() { echo "$*" >>/etc/hosts; }
