# What the scripts share. A script ends at the first step that fails.
set -eu
cd /tmp

say() { echo "== $*"; }

fail() {
	echo "FAILED: $*"
	for f in /tmp/*.log; do
		[ ! -e "$f" ] || { echo "-- $f"; tail -n 15 "$f"; }
	done
	exit 1
}

# soon COMMAND...: repeats a command until it succeeds, for a minute.
soon() {
	tries=0
	until "$@" >/tmp/soon.out 2>&1; do
		tries=$((tries + 1))
		[ $tries -lt 300 ] || fail "this did not happen: $*: $(cat /tmp/soon.out)"
		sleep 0.2
	done
}

# has TEXT COMMAND...: the output of a command has a text.
has() {
	text=$1
	shift
	out=$("$@" 2>&1) || fail "$* ended with $?: $out"
	case $out in *"$text"*) ;; *) fail "$*: no '$text' in: $out" ;; esac
}

# same WHAT GOT WANT
same() { [ "$2" = "$3" ] || fail "$1: '$2', want '$3'"; }

# setting UNIT KEY: the value of a setting of an installed unit.
setting() { sed -n "s/^$2=//p" "/usr/lib/systemd/system/$1.service"; }

# unit NAME: starts a unit as systemd would: conditions, state folder, account, capabilities, command. Its pid is in $pid.
unit() {
	met=no
	for condition in $(setting "$1" ConditionPathExists | tr -d '|') none; do
		[ "$condition" = none ] || [ ! -e "$condition" ] || met=yes
	done
	[ -z "$(setting "$1" ConditionPathExists)" ] || [ $met = yes ] || { pid=; return 0; }

	account=$(setting "$1" User)
	install -d -m "$(setting "$1" StateDirectoryMode)" -o "$account" -g "$account" "/var/lib/$(setting "$1" StateDirectory)"
	privileges="--reuid $account --regid $account --init-groups"
	if [ "$account" != root ]; then
		caps=
		for cap in $(setting "$1" AmbientCapabilities); do caps=$caps,+$(echo "${cap#CAP_}" | tr A-Z a-z); done
		privileges="$privileges --inh-caps -all$caps --ambient-caps -all$caps --bounding-set -all$caps --no-new-privs"
	fi
	# shellcheck disable=SC2086 # the words of the unit
	(umask 0077; exec setpriv $privileges $(setting "$1" ExecStart)) >>"/tmp/$1.log" 2>&1 &
	pid=$!
}

# end PID: ends a program of this script.
end() {
	kill "$1"
	wait "$1" || true
}
