# The first hour with gozzard, as an ordinary account in its checkout. See steps.sh.
checkout=/home/goose/gozzard
cd "$checkout"

began
make run >/tmp/make-run.log 2>&1 </dev/null &
until_true "gozzard answers" sh -c 'bin/gozzard hosts | grep -q yes'
took "start it (make run, already built)"

began
bin/gozzard run --name web -- python3 -m http.server 9000 >/tmp/run.log 2>&1 || fail "gozzard run: $(cat /tmp/run.log)"
took "run a program"
until_true "the program answers" curl -fs -o /dev/null http://127.0.0.1:9000/

began
bin/gozzard ps >/tmp/ps.log 2>&1 || fail "gozzard ps"
took "list it"
grep -q 'web .*running' /tmp/ps.log || fail "ps does not show it running: $(cat /tmp/ps.log)"

before=$(server_pid)
began
kill -9 "$before"
until_true "it came back" came_back "$before"
took "kill -9: it answers again"
until_true "ps shows it running again (first starting, for the second of its check)" sh -c 'bin/gozzard ps | grep -q "web .*running"'

began
bin/gozzard stop web >/tmp/stop.log 2>&1 || fail "gozzard stop: $(cat /tmp/stop.log)"
took "stop it"
stays_away
grep -q 'web .*stopped' <<<"$(bin/gozzard ps)" || fail "ps does not show it stopped: $(bin/gozzard ps)"
