# The same steps with pm2, as an ordinary account. See steps.sh.
cd /home/goose
PATH=$PATH:/home/goose/pm2/node_modules/.bin

began
pm2 ping >/tmp/ping.log 2>&1 || fail "pm2 ping: $(cat /tmp/ping.log)"
took "start it (make run, already built)"

began
pm2 start python3 --name web --interpreter none -- -m http.server 9000 >/tmp/run.log 2>&1 || fail "pm2 start: $(cat /tmp/run.log)"
took "run a program"
until_true "the program answers" curl -fs -o /dev/null http://127.0.0.1:9000/

began
pm2 list >/tmp/ps.log 2>&1 || fail "pm2 list"
took "list it"
grep -q 'web .*online' /tmp/ps.log || fail "pm2 list does not show it: $(cat /tmp/ps.log)"

before=$(server_pid)
began
kill -9 "$before"
until_true "it came back" came_back "$before"
took "kill -9: it answers again"

began
pm2 stop web >/tmp/stop.log 2>&1 || fail "pm2 stop: $(cat /tmp/stop.log)"
took "stop it"
stays_away
pm2 kill >/dev/null 2>&1
