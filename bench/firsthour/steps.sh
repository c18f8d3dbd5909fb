# What the scripts of the first hour share. They run as an ordinary account in a fresh Debian with its own network. A line "time WHAT: MS" is a figure.
set -euo pipefail

fail() {
	echo "FAILED: $*"
	exit 1
}

began() { begin=$(date +%s%N); }
took() { echo "time $1: $((($(date +%s%N) - begin) / 1000000))"; }

# until_true WHAT COMMAND...: repeats a command until it succeeds, for a minute.
until_true() {
	local what=$1 tries=0
	shift
	until "$@" >/dev/null 2>&1; do
		tries=$((tries + 1))
		[ $tries -lt 6000 ] || fail "this did not happen: $what"
		sleep 0.01
	done
}

# server_pid: the process that serves port 9000, by its own name. There is one, or this is a fault.
server_pid() {
	local pids
	pids=$(pgrep -u "$(id -u)" -f '^[^ ]*python3 -m http.server 9000$') || fail "no process serves"
	[ "$(wc -w <<<"$pids")" = 1 ] || fail "more than one process: $pids"
	echo "$pids"
}

# came_back PID: another process serves.
came_back() {
	[ "$(server_pid)" != "$1" ] && curl -fs -o /dev/null http://127.0.0.1:9000/
}

# stays_away: for five seconds nothing serves.
stays_away() {
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		! curl -fs -o /dev/null http://127.0.0.1:9000/ || fail "it serves although it was stopped"
		! pgrep -u "$(id -u)" -f '^[^ ]*python3 -m http.server 9000$' >/dev/null || fail "its process is there although it was stopped"
		sleep 0.5
	done
}
