#!/usr/bin/env bash
# Makes the fixtures of one version of the program, with that version's own program:
#
#   make-fixtures.sh PROGRAM NEWER FOLDER
#
# PROGRAM and NEWER are built from the same commit and differ in their version only:
#
#   go build -ldflags '-s -w -X main.version=1.0.0' -o PROGRAM ./cmd/gozzard
#   go build -ldflags '-s -w -X main.version=1.1.0' -o NEWER   ./cmd/gozzard
#
# FOLDER gets the archives loopback.tar.gz, enrolled.tar.gz and dev.tar.gz. README.md has what is in them. Run it as root on Linux, with curl, jq,
# openssl and sqlite3. It works in /tmp/gozzard-compat, because the definitions of processes name that folder: no other run may be active there.
# The golden answers are made afterwards, see README.md.
set -euo pipefail

PROGRAM=$(realpath "$1") NEWER=$(realpath "$2") OUT=$(realpath "$3")
HERE=$(cd "$(dirname "$0")" && pwd)
WORK=/tmp/gozzard-compat
RUN=$WORK/run
API=127.0.0.1:48081 AGENTS=127.0.0.1:44231
FAR=4102444800000 # the year 2100, in Unix milliseconds
export GOZZARD_CREDENTIALS=

mkdir "$WORK" "$RUN"
chmod 755 "$WORK" "$RUN"
cd "$WORK"

PIDS=()
finish() {
	for pid in "${PIDS[@]}"; do kill -9 "$pid" 2>/dev/null || true; done
	for f in "$RUN"/*.pid; do [ -e "$f" ] && kill -9 "$(cat "$f")" 2>/dev/null || true; done
}
trap finish EXIT

note() { echo "-- $*" >&2; }

# begin NAME ARGUMENTS... starts the program in the background; its pid is then in $PID.
begin() {
	local name=$1
	shift
	setsid "$BIN" "$@" >"$WORK/$name.log" 2>&1 &
	PID=$!
	PIDS+=("$PID")
}

# finished PID SIGNAL ends a program that begin has started.
finished() {
	kill "-$2" "$1"
	wait "$1" 2>/dev/null || true
}

soon() { # soon COMMAND... repeats a command until it succeeds
	local i
	for i in $(seq 300); do
		"$@" >/dev/null 2>&1 && return 0
		sleep 0.2
	done
	echo "did not happen: $*" >&2
	return 1
}

gozzard() { "$BIN" "$@"; }
try() { "$BIN" "$@" || note "exit code $? of gozzard $*"; }

# post PATH BODY calls a door of BlueKing with the credentials of the admin, with the idempotency key in $KEY if there is one.
KEY=
post() {
	local more=()
	[ -n "$KEY" ] && more+=(-H "Idempotency-Key: $KEY")
	curl -sS "${more[@]}" "$URL$1" -H "X-Bkapi-Authorization: $(jq -c '{bk_app_code,bk_app_secret,bk_username}' "$GOZZARD_CREDENTIALS")" -d "$2"
}

online() { gozzard hosts -o json | jq -e --arg ip "$1" 'any(.hosts[]; .online and any(.addrs[]; .ip == $ip))'; }

# settled TASK is true when no entry of a task is in work.
settled() {
	post /api/c/compapi/v2/gse/get_proc_operate_result/ "{\"task_id\":\"$1\"}" | jq -e '.code == 0 and ([.data[] | select(.error_code == 115)] | length) == 0'
}

job_ended() { post /api/c/compapi/v2/gsekit/api/job/job_status/ "{\"bk_biz_id\":2,\"job_id\":$1}" | jq -e '.data.job_info.status | IN("succeeded", "failed")'; }

# pack NAME FOLDERS... makes an archive. Reserves of disk space are left out: they are megabytes of noise, and the program makes them anew.
pack() { tar --sort=name --numeric-owner --owner=0 --group=0 -C "$WORK" --exclude='*.sock' --exclude='*.reserve' --exclude='*.lock' --exclude='*.busy' -cf - "${@:2}" | gzip -9n >"$OUT/$1.tar.gz"; }

# ---------------------------------------------------------------------------------------------------------------------------------------------------
note "loopback: a server and three agents that joined by its secret"
cp "$PROGRAM" gozzard # state folders have the path of the program
BIN=$WORK/gozzard
begin server server --data server --listen $API --agent-listen $AGENTS --audit-checkpoint 2s --confirm-above 0 --confirm-above-percent 0
SERVER=$PID
soon test -s server/credentials.json
export GOZZARD_CREDENTIALS=$WORK/server/credentials.json
URL=$(jq -r .url server/credentials.json)
soon gozzard hosts

agent() { # agent N
	mkdir -p "agent$1"
	chmod 700 "agent$1"
	[ -e "agent$1/policy.yaml" ] || cp "$HERE/policy.yaml" "agent$1/policy.yaml"
	chmod 600 "agent$1/policy.yaml"
	begin "agent$1" agent --data "agent$1" --server $AGENTS --ip "127.0.0.$1" --secret-file server/join.secret
	eval "AGENT$1=$PID"
	soon online "127.0.0.$1"
}
agent 1
agent 2
agent 3

note "definitions"
gozzard register -f "$HERE/processes.yaml"
gozzard register -f "$HERE/processes2.yaml"
try register -f "$HERE/outside.yaml" # the policy refuses its folder

note "operations"
gozzard start web front tick stopped loose -n demo --host 127.0.0.1
try start once broken -n demo --host 127.0.0.1
gozzard stop stopped -n demo --host 127.0.0.1
try stop stopped -n demo --host 127.0.0.1 # it is not running
try start web -n demo --host 127.0.0.1    # it is running
gozzard restart web -n demo --host 127.0.0.1
gozzard unhost loose -n demo --host 127.0.0.1
gozzard host hosted -n demo --host 127.0.0.1
try reload web -n demo --host 127.0.0.1 # the policy refuses reload
gozzard start killed -n demo --host 127.0.0.1
gozzard kill killed -n demo --host 127.0.0.1
gozzard unregister gone -n demo --host 127.0.0.1
gozzard start kept slow -n demo --host 127.0.0.2

note "GSE: groups, a query, several operations in one request, an unknown operation, an idempotent request"
ON='"hosts":[{"ip":"127.0.0.1","bk_cloud_id":0,"bk_supplier_id":0}]'
post /api/c/compapi/v2/gse/set_process_group_info/ "{\"meta\":{\"namespace\":\"demo\",\"labels\":{\"层\":\"前\"}},$ON,\"spec\":{\"process_group\":[{\"id\":\"pool\",\"resource\":{\"cpu_pool_limit\":80,\"mem_pool_limit\":70,\"cpu_pool_weight\":1,\"mem_pool_weight\":0}}]}}" | jq -e .result >/dev/null
TASKS=()
task() { # task PATH BODY remembers a task for the golden answers
	local answer id
	answer=$(post "$1" "$2")
	id=$(jq -r '.data.task_id? // .data.bk_gse_taskid?' <<<"$answer")
	case $id in GSETASK:*) ;; *) echo "no task: $1 $2: $answer" >&2 && return 1 ;; esac
	soon settled "$id" || true
	TASKS+=("$id")
}
task /api/c/compapi/v2/gse/operate_proc/ "{\"meta\":{\"namespace\":\"demo\",\"name\":\"web\"},$ON,\"op_type\":2}"
ITEM='{"meta":{"namespace":"demo","name":"%s"},"hosts":[{"ip":"127.0.0.1","bk_cloud_id":0,"bk_supplier_id":0},{"ip":"127.0.0.9","bk_cloud_id":0,"bk_supplier_id":0}],"op_type":%s,"spec":{"identity":{"proc_name":"sleep","setup_path":"/tmp/gozzard-compat/run","pid_path":"/tmp/gozzard-compat/run/multi.pid","user":"root"},"control":{"start_cmd":"sleep 100000 >/dev/null 2>\\u00261 \\u0026 echo $! > multi.pid","stop_cmd":"kill $(cat multi.pid)"},"monitor_policy":{"auto_type":1,"start_check_secs":1}}}'
# shellcheck disable=SC2059
MULTI=$(printf "{\"proc_operate_req\":[$ITEM,$ITEM]}" multi 0 other 77)
task /api/c/compapi/v2/gse/operate_proc_multi/ "$MULTI"
KEY=compat-1
task /api/c/compapi/v2/gse/operate_proc/ "{\"meta\":{\"namespace\":\"demo\",\"name\":\"stopped\"},$ON,\"op_type\":1}"
KEY=

note "Job: a process by its commands, hosted and queried"
JOB='{"bk_biz_id":1,"op_type":%s,"process_infos":[{"setup_path":"/tmp/gozzard-compat/run","proc_name":"sleep","pid_path":"/tmp/gozzard-compat/run/job.pid","account":"root","start_cmd":"sleep 100000 >/dev/null 2>\\u00261 \\u0026 echo $! > job.pid","stop_cmd":"kill $(cat job.pid)","cpu_lmt":50,"mem_lmt":30,"ip_list":[{"bk_cloud_id":0,"ip":"127.0.0.1"}]}]}'
for op in 0 2 1 1; do
	# shellcheck disable=SC2059
	task /api/c/compapi/v2/job/operate_process/ "$(printf "$JOB" $op)"
done

note "a business, applied twice, and jobs on it"
gozzard topology apply -f "$HERE/shop.yaml"
sed 's/name: shop$/name: 商店/' "$HERE/shop.yaml" | gozzard topology apply -f -
gozzard topology apply -f "$HERE/other.yaml"
job() { # job ACTION EXPRESSION
	local id
	id=$(post /api/c/compapi/v2/gsekit/api/job/create_job/ "{\"bk_biz_id\":2,\"job_object\":\"process\",\"job_action\":\"$1\",\"expression_scope\":$2}" | jq -r .data.job_id)
	soon job_ended "$id"
	echo "$id" >>jobs
}
job start '{"bk_set_env":"3","bk_set_name":"front","bk_process_id":"4[6-8]"}'
job restart '{"bk_set_env":"3","bk_set_name":"front","bk_process_id":"46"}'
job start '{"bk_set_env":"3","bk_set_name":"back"}' # the first wave fails, the second one is held back
job stop '{"bk_set_env":"3","bk_set_name":"front","bk_process_id":"47"}'

note "apps, people, grants and tokens"
printf 'a password of some length\n' >password
chmod 600 password
gozzard app create shop --role operator --biz 2 --asserts-users --out server/shop.json
gozzard app create signer --role viewer --signs --asserts-users --out server/signer.json
gozzard app create rotated --role viewer --asserts-users --out server/rotated-old.json
gozzard app rotate rotated >server/rotated-new.secret
gozzard user create alice --password-file password --role viewer
gozzard grant add --user alice --role operator --namespace 'demo*' --net 127.0.0.0/8 --action start,stop
gozzard user create bob --password-file password --role admin
gozzard user disable bob
gozzard user create carol@example.com --role viewer --cloud 0
gozzard user token create alice --days 366 --note laptop --out server/alice.json
gozzard user login alice --password-file password --out server/alice-session.json
gozzard user token create carol@example.com --days 1 --note short >server/carol.token

note "a new signing key, then an operation under it"
gozzard key rotate --data server
finished "$SERVER" TERM
begin server server --data server --listen $API --agent-listen $AGENTS --audit-checkpoint 2s --confirm-above 0 --confirm-above-percent 0
SERVER=$PID
soon online 127.0.0.1
soon online 127.0.0.2
soon online 127.0.0.3
gozzard restart front -n demo --host 127.0.0.1

note "a host that is away: answered at once, expired, and waiting"
gozzard start late1 -n demo --host 127.0.0.3
finished "$AGENT3" TERM
soon sh -c "'$BIN' hosts -o json | jq -e 'any(.hosts[]; (.online | not) and any(.addrs[]; .ip == \"127.0.0.3\"))'"
try stop late1 -n demo --host 127.0.0.3
try stop late1 -n demo --host 127.0.0.3 --wait-offline 3s
gozzard start late2 -n demo --host 127.0.0.3 --wait-offline 24h --detach >server/waiting.task

note "a backup"
gozzard backup keygen --to server/backup.key >recipient
gozzard backup create --data server --to server/backup.age --recipient "$(cat recipient)"

note "an agent dies in the middle of a stop, the server before it has a verdict"
sleep 3 # a checkpoint of everything before
gozzard audit verify | sed -n 's/^newest: //p' >server/audit.newest
gozzard stop slow -n demo --host 127.0.0.2 --detach >server/interrupted.task
soon test -e run/slow.stopping
finished "$AGENT2" KILL
finished "$SERVER" KILL
finished "$AGENT1" TERM

printf '%s\n' "${TASKS[@]}" >server/tasks.list
mv jobs server/jobs.list
mv password server/password

# Some rows have a date on which they end. A test must not depend on the calendar, so one token ends at once and everything else in the year 2100.
sqlite3 server/gozzard.db "
	UPDATE user_tokens SET expires = CASE note WHEN 'short' THEN created + 1 ELSE $FAR END;
	UPDATE jobs SET ended = $FAR WHERE ended > 0;
	UPDATE attempts SET expires = $FAR, deadline = $FAR WHERE state < 4;"
pack loopback server agent1 agent2 agent3
finish
PIDS=()

# ---------------------------------------------------------------------------------------------------------------------------------------------------
note "enrolled: a server with certificates, and hosts that are active, updated, rolled back, revoked, removed and waiting"
rm -rf server agent? run/* ./*.log
FLAGS=(--listen $API --agent-listen $AGENTS --enrol --release-two-person --audit-checkpoint 2s)
begin server server --data server "${FLAGS[@]}"
SERVER=$PID
soon test -s server/credentials.json
URL=$(jq -r .url server/credentials.json)
soon gozzard hosts

openssl genpkey -algorithm ed25519 -out release.key 2>/dev/null
openssl pkey -in release.key -pubout -out release.pub
release() { # release VERSION FILE makes a signed release of one program in the folder dist-VERSION
	mkdir "dist-$1"
	cp "$2" "dist-$1/gozzard-program"
	jq -n --arg v "$1" --arg sum "$(sha256sum "$2" | cut -d' ' -f1)" --argjson size "$(stat -c %s "$2")" --arg p "linux/$(go env GOARCH)" \
		'{gozzard_release: 1, version: $v, created: "2026-01-01T00:00:00Z", expires: "2100-01-01T00:00:00Z", files: [{platform: $p, name: "gozzard-program", size: $size, sha256: $sum}]}' >"dist-$1/release.json"
	openssl pkeyutl -sign -inkey release.key -rawin -in "dist-$1/release.json" -out "dist-$1/release.json.sig"
}
release 1.1.0 "$NEWER"
printf 'not a program\n' >tiny
release 2.0.0 tiny

host() { # host N PROGRAM TOKEN-FLAGS... joins a host; start_host N runs its agent
	mkdir "host$1"
	chmod 700 "host$1"
	cp "$HERE/policy.yaml" "host$1/policy.yaml"
	chmod 600 "host$1/policy.yaml"
	(umask 077 && gozzard token create "${@:2}" >token)
	gozzard agent join --server "$URL" --token-file token --data "host$1" --ip "127.0.0.$1"
	mkdir "bin$1"
	cp "$PROGRAM" "bin$1/gozzard"
}
start_host() { # start_host N
	local before=$BIN
	BIN=$WORK/bin$1/gozzard
	begin "host$1" agent --data "host$1" --update-trial 3s
	BIN=$before
	eval "HOST$1=$PID"
	soon online "127.0.0.$1"
}
host 1
host 2
host 3
host 4 --approve
host 5
for n in 1 2 3 5; do start_host $n; done
cp release.pub host1/release.pub
cp release.pub host2/release.pub
chmod 644 host1/release.pub host2/release.pub

gozzard register -f "$HERE/enrolled.yaml"
gozzard start web -n demo --host 127.0.0.1

note "two people, releases and their rolls: done, stopped by a refusal, waiting for the second person"
printf 'a password of some length\n' >password
chmod 600 password
gozzard user create bob --password-file password --role admin
gozzard user login bob --password-file password --out bob.json
gozzard release publish dist-1.1.0
gozzard release publish dist-2.0.0
through() { gozzard release status -o json | jq -e '.state | IN("done", "stopped")'; }
gozzard release roll 1.1.0 --host 127.0.0.1
gozzard release approve 1.1.0 --credentials bob.json
soon through
gozzard release roll 2.0.0 --host 127.0.0.2 # its program is none
gozzard release approve 2.0.0 --credentials bob.json
soon through
gozzard release roll 2.0.0 --host 127.0.0.5 # that host has no release key
gozzard release approve 2.0.0 --credentials bob.json
soon through
gozzard release roll 2.0.0 --stages 50,100 --host 127.0.0.1,127.0.0.2

gozzard hosts revoke 127.0.0.3
gozzard hosts remove 127.0.0.5
(umask 077 && gozzard token create --ttl 720h --uses 5 --cloud 3 --cidr 127.0.0.0/8 --approve >server/valid.token)
(umask 077 && gozzard token create >token)
gozzard token revoke "$(cut -d. -f2 token)"
sleep 3
finished "$SERVER" TERM
for n in 3 5; do finished "$(eval echo "\$HOST$n")" TERM; done

note "a release by hand while no server answers: it is put back"
try agent update --data host2 --from dist-1.1.0 --wait 20s
sleep 2
finished "$HOST2" TERM || true
finished "$HOST1" TERM
mv password server/password
sqlite3 server/gozzard.db "UPDATE enrol_tokens SET expires = $FAR WHERE uses = 5;"
find server/releases -size +1M -delete # the program of 1.1.0
pack enrolled server host1 host2 host3 host4
finish
PIDS=()

# ---------------------------------------------------------------------------------------------------------------------------------------------------
note "dev: a fleet in one process that was killed, with the log of its record as it was"
rm -rf server host? bin? dist-* run/* ./*.log
export GOZZARD_CREDENTIALS=$WORK/data/dev.json
begin dev dev --data data --listen $API --hosts 2
DEV=$PID
soon test -s data/dev.json
gozzard register -f "$HERE/dev.yaml"
gozzard start web -n demo --all-hosts
gozzard stop web -n demo --host 127.0.0.2
finished "$DEV" KILL
pack dev data
finish
cd /
rm -rf "$WORK"
