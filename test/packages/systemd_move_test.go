//go:build linux && systemd

package packages_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// movingHost is a machine on which services run that move to Gozzard, with a server and an agent.
type movingHost struct {
	t *testing.T
	m *machine
}

// TestSystemdMoves moves services of systemd, and a supervisord and a pm2 that are services, all from their packages, to an
// agent. No process is restarted and no request fails. Afterwards the agent brings them back, a stop keeps them stopped, and
// after a boot each runs once. The commands are those of docs/move-from-systemd.md and the pages beside it.
func TestSystemdMoves(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root to boot machines")
	}
	net, base, dist := network(t), debian(t), bothVersions(t)
	h := &movingHost{t: t, m: newMachine(t, net, base, "move", "10.77.0.4", dist, true)}
	h.install()
	h.installPM2()
	h.services()
	h.refuse()
	h.odd()
	h.change()
	h.interrupt()
	h.systemd()
	h.supervisord()
	h.pm2()
	h.supervised()
	h.reboot()

	old := &movingHost{t: t, m: newMachine(t, net, base, "old", "10.77.0.5", dist, false)}
	old.install()
	old.groupsOfVersion1()
}

// installPM2 installs pm2 from npm.
func (h *movingHost) installPM2() {
	tool := h.t.TempDir()
	if out, err := exec.Command("npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", tool, "pm2@5.4.3").CombinedOutput(); err != nil {
		h.t.Fatalf("npm: %v\n%s", err, out)
	}
	if out, err := exec.Command("cp", "-r", tool, filepath.Join(h.m.root, "opt/pm2")).CombinedOutput(); err != nil {
		h.t.Fatalf("pm2: %v\n%s", err, out)
	}
	h.m.sh("chmod -R a+rX /opt/pm2; ln -s /opt/pm2/node_modules/.bin/pm2 /usr/bin/pm2")
}

// install installs Gozzard: a server and an agent.
func (h *movingHost) install() {
	h.m.sh(install + `cat >/etc/gozzard/policy.yaml <<'END'
allow_root: true
deny_uids: ""
users: ["*"]
path_prefixes: ["/"]
trusted_paths: false
shell: true
ops: [start, stop, restart, reload, kill, query, manage, unmanage]
max_processes: 2000
END
ip link set lo up
systemctl enable --now gozzard-server >/tmp/ctl.log 2>&1
soon test -e /var/lib/gozzard/join.secret
systemctl enable --now gozzard-agent >/tmp/ctl.log 2>&1
soon sh -c 'gozzard hosts | grep "0:127.0.0.1 *yes"'`)
}

// pidsOf prints the processes of the services, with their start times.
const pidsOf = `began() { sed 's/.*) //' /proc/$1/stat | cut -d' ' -f20; }
pids() {
	for name in nginx redis-server; do
		for pid in $(pgrep -x $name | sort -n); do echo "$name $pid $(began $pid)"; done
	done
	for what in '^/usr/bin/python3 /usr/local/bin/answer 7003' '^node /srv/app.js'; do
		for pid in $(pgrep -f "$what" | sort -n); do echo "$what $pid $(began $pid)"; done
	done
}
unchanged() { pids >/tmp/now; cmp /root/before /tmp/now || fail "other processes: $(cat /tmp/now), before $(cat /root/before): $(ps -ef --forest)"; }
`

// adopting is the command of the pages.
const adopting = `adopting() { gozzard import "$@" --adopt --data /var/lib/gozzard-agent; }
`

// services starts the services, and begins to ask each of them without a pause.
func (h *movingHost) services() {
	h.t.Log("services run by systemd, supervisord and pm2")
	h.m.sh(pidsOf + `cat >/usr/local/bin/answer <<'END'
#!/usr/bin/python3
import http.server, sys
class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        print("asked", flush=True)
        self.send_response(200); self.end_headers(); self.wfile.write(b"fine")
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Answer).serve_forever()
END
cat >/srv/app.js <<'END'
require('http').createServer((q, r) => { console.log('asked'); r.end('fine') }).listen(7004, '127.0.0.1')
END
chmod 755 /usr/local/bin/answer
useradd --create-home app
cat >/etc/supervisor/conf.d/web.conf <<'END'
[program:web]
command=/usr/local/bin/answer 7003
user=www-data
autorestart=true
END
mkdir -p /etc/systemd/system/redis-server.service.d # the test may run where no more is allowed
printf '[Service]\nLimitNOFILE=10000\n' >/etc/systemd/system/redis-server.service.d/limit.conf
cd /etc/systemd/system; rm -f nginx.service redis-server.service supervisor.service; cd /tmp
systemctl daemon-reload
systemctl enable --now redis-server nginx supervisor >/tmp/ctl.log 2>&1 || fail "systemctl enable"
soon supervisorctl update
pm2 startup systemd -u app --hp /home/app >/tmp/pm2.log 2>&1 || fail "pm2 startup"
cat >/home/app/start.sh <<'END'
cd; pm2 start /srv/app.js --name shop && pm2 save && pm2 kill
END
runuser -l app -c 'sh /home/app/start.sh' >/tmp/pm2.log 2>&1 || fail "pm2 start"
systemctl start pm2-app || fail "pm2 as a service"
soon curl -fsS http://127.0.0.1:80/
soon curl -fsS http://127.0.0.1:7003/
soon curl -fsS http://127.0.0.1:7004/
soon redis-cli ping
pids >/root/before; cat /root/before; [ "$(wc -l </root/before)" = "$(($(pgrep -c -x nginx) + 3))" ] || fail "$(ps -ef --forest)"`)

	h.m.sh(`cat >/usr/local/bin/ask <<'END'
#!/bin/sh
while [ -e /run/asking ]; do
	if "$@" >/dev/null 2>&1; then echo ok; else echo failed; fi
	sleep 0.05
done
END
chmod +x /usr/local/bin/ask; touch /run/asking
setsid /usr/local/bin/ask curl -fsS -m 5 http://127.0.0.1:80/ >/run/asked-nginx 2>&1 </dev/null &
setsid /usr/local/bin/ask sh -c 'redis-cli ping | grep -q PONG' >/run/asked-redis 2>&1 </dev/null &
setsid /usr/local/bin/ask curl -fsS -m 5 http://127.0.0.1:7003/ >/run/asked-web 2>&1 </dev/null &
setsid /usr/local/bin/ask curl -fsS -m 5 http://127.0.0.1:7004/ >/run/asked-shop 2>&1 </dev/null &
soon grep ok /run/asked-shop`)
}

// refuse: what cannot be moved is refused with its reason, and nothing changes.
func (h *movingHost) refuse() {
	h.t.Log("what is refused")
	h.m.sh(adopting + pidsOf + `refused() { # UNIT REASON
	adopting systemd "$1" --yes --accept-less-protection >/tmp/refused.log 2>&1 && fail "moved $1"
	grep -qF -- "$2" /tmp/refused.log || fail "$1: no '$2'"
	[ ! -e "/run/systemd/system/$1.service.d" ] || fail "$1 has a drop-in"
}
adopting systemd redis-server --yes >/tmp/refused.log 2>&1 && fail "took away the protection"
has "--accept-less-protection" cat /tmp/refused.log
runuser -u www-data -- gozzard import systemd nginx --adopt --data /var/lib/gozzard-agent --yes >/tmp/refused.log 2>&1 && fail "moved by an account that is not root"
cd /etc/systemd/system
printf '[Service]\nExecStart=/bin/sleep 5001\nDynamicUser=yes\nUser=dyn\n' >dyn.service
printf '[Service]\nExecStart=/bin/sleep 5002\n' >timed.service; printf '[Timer]\nOnActiveSec=9d\n' >timed.timer
printf '[Service]\nExecStart=/bin/sleep 5003\n' >wanted.service; printf '[Unit]\nWants=wanted.service\n[Service]\nExecStart=/bin/sleep 5004\n' >other.service
printf '[Service]\nExecStart=/bin/sleep 5005\nWatchdogSec=1h\n' >watched.service
printf '[Service]\nExecStart=/bin/sleep 5007\n' >stale.service
printf '[Service]\nExecStart=/bin/sleep 5010\n' >fresh.service
printf '[Service]\nExecStart=/bin/sleep 5008\n[Install]\nAlso=nginx.service\nWantedBy=multi-user.target\n' >also.service
cd /tmp; systemctl daemon-reload
systemctl start dyn timed timed.timer other watched stale fresh also
refused dyn "no process runs that could be adopted"
refused timed "would be started again by timed.timer"
refused wanted "would be started again by other.service (WantedBy)"
refused watched "watchdog"
refused also "also disables nginx.service"
sed -i s/5007/5009/ /etc/systemd/system/stale.service
refused stale "run systemctl daemon-reload"
mkdir /etc/systemd/system/fresh.service.d; printf '[Service]\nLimitNOFILE=5000\n' >/etc/systemd/system/fresh.service.d/limit.conf
refused fresh "run systemctl daemon-reload"
cp /etc/systemd/system/other.service /tmp/other.service
refused /tmp/other.service "give the name of the unit"
systemctl stop dyn timed timed.timer other watched stale fresh also
ls /run/gozzard-adopt 2>/dev/null | grep . && fail "a pid file is left"
unchanged`)
}

// odd: units with odd names are moved by exactly their names, or not at all. A file with the name of a unit is not taken for it.
func (h *movingHost) odd() {
	h.t.Log("odd names of units")
	h.m.sh(adopting + `cd /etc/systemd/system
printf '[Service]\nExecStart=/bin/sleep 6100\nRestart=always\n' >odd@.service
printf '[Service]\nExecStart=/bin/sleep 6101\n' >'odd with blank.service'
cd /tmp; systemctl daemon-reload
systemctl start 'odd@..a-b.service' 'odd@c\x2f..\x2f..\x2fd.service' 'odd@e:f.service'
ls -R /run/systemd/system /etc/tmpfiles.d >/root/files
moves() { gozzard import systemd --adopt --data /var/lib/gozzard-agent --yes -- "$1"; }
refused() { # NAME REASON
	moves "$1" >/tmp/odd.log 2>&1 && fail "moved $1"
	grep -qF -- "$2" /tmp/odd.log || fail "$1: no '$2'"
}
refused 'odd@c\x2f..\x2f..\x2fd' "no process runs that could be adopted"
refused '/etc/systemd/system/odd with blank.service' "is not the name of a service"
refused ../odd "there is no unit odd.service"
refused --root=/tmp "there is no unit tmp.service"
ls -R /run/systemd/system /etc/tmpfiles.d | cmp - /root/files || fail "a refused unit left files"

for name in 'odd@..a-b' 'odd@e:f'; do
	pid=$(systemctl show -p MainPID --value "$name")
	moves "$name" >/tmp/odd.log 2>&1 || fail "$name"
	[ -e "/run/systemd/system/$name.service.d/zzzz-gozzard-adopt.conf" ] || fail "$(ls -R /run/systemd/system)"
	grep -q "^0::/gozzard/" /proc/$pid/cgroup || fail "$(cat /proc/$pid/cgroup)"
	sed -n '/^to go back/,$s/^  //p' /tmp/odd.log >/tmp/back.sh
	sed -i 's/enable --now/start/' /tmp/back.sh # an instance that was started only
	sh -e /tmp/back.sh >/tmp/ctl.log 2>&1 || fail "back: $(cat /tmp/back.sh)"
	same "$name" "$(systemctl is-active "$name")/$(systemctl show -p Restart --value "$name")" active/always
done
same "the other one" "$(systemctl is-active 'odd@c\x2f..\x2f..\x2fd')" active
systemctl stop 'odd@*'

# A folder and a file called nginx, where the command runs.
mkdir -p /tmp/beside/nginx; cd /tmp/beside
has "give up nginx.service" adopting systemd nginx --dry-run
rmdir nginx; printf '[Service]\nExecStart=/bin/sleep 6102\n' >nginx.service
adopting systemd nginx.service --dry-run >/tmp/odd.log 2>&1 && fail "a file was taken for the unit"
has "nginx.service is a file in this folder and a unit of this machine" cat /tmp/odd.log
cp nginx.service nginx
adopting systemd nginx --dry-run >/tmp/odd.log 2>&1 && fail "a file was taken for the unit"
has "nginx is a file in this folder and a unit of this machine" cat /tmp/odd.log`)
}

// change: a unit changes after the plan was shown. It stays with systemd, and nothing names its process to the agent any more.
func (h *movingHost) change() {
	h.t.Log("a unit that changes after the plan")
	h.m.sh(adopting + `unit() { printf '[Service]\nExecStart=/bin/sleep %s\nRestart=always\n' $1 >/etc/systemd/system/turn.service; systemctl daemon-reload; }
for change in 'unit 6202' 'systemctl restart turn' 'systemctl set-property --runtime turn MemoryMax=100M'; do
	unit 6201; systemctl restart turn
	rm -f /tmp/turn.log /tmp/answer; mkfifo /tmp/answer
	script -qefc 'gozzard import systemd turn --adopt --data /var/lib/gozzard-agent' /tmp/turn.log </tmp/answer >/dev/null 2>&1 & command=$! # it asks on a terminal only
	exec 3>/tmp/answer
	soon grep -q "Do this" /tmp/turn.log
	$change
	pid=$(systemctl show -p MainPID --value turn)
	echo y >&3; exec 3>&-
	wait $command && fail "$change: moved"
	grep -qE "turn.service changed since|is another process now|does not accept pid|cannot look at pid" /tmp/turn.log || fail "$change"
	ls /run/gozzard-adopt 2>/dev/null | grep . && fail "$change: a pid file is left"
	[ ! -e /run/systemd/system/turn.service.d/zzzz-gozzard-adopt.conf ] || fail "$change: a drop-in is left"
	same "$change: pid" "$(systemctl show -p MainPID --value turn)" $pid
	same "$change: state" "$(systemctl is-active turn)/$(systemctl show -p Restart --value turn)" active/always
	gozzard show turn | grep pid_file && fail "$change: the definition names a pid file"
	gozzard unregister turn >/tmp/ctl.log 2>&1 || fail "unregister"
	kill -0 $pid || fail "$change: ended"
done
systemctl stop turn`)
}

// interrupt: the command is killed at each step, and goes on when it is run again. Then the service goes back to systemd.
func (h *movingHost) interrupt() {
	h.t.Log("interrupted at each step, and back")
	h.m.sh(adopting + `cat >/etc/systemd/system/six.service <<'END'
[Service]
ExecStart=/bin/sleep 6001
Restart=always
RuntimeDirectory=six
[Install]
WantedBy=multi-user.target
END
systemctl daemon-reload; systemctl enable --now six >/tmp/ctl.log 2>&1
pid=$(pgrep -fx "/bin/sleep 6001")
# At the last step the command may have ended before the kill.
for step in "^adopt " "^register six: 1 done" "given up by systemd" "moved to the cgroup" "^start six: 1 done"; do
	rm -f /tmp/steps; mkfifo /tmp/steps
	gozzard import systemd six --adopt --data /var/lib/gozzard-agent --yes >/tmp/steps 2>/tmp/six.log & command=$!
	reached=no
	while read -r line; do
		case $reached in no) if echo "$line" | grep -q "$step"; then kill -KILL $command || true; reached=yes; fi ;; esac
	done </tmp/steps
	wait $command || true
	same "reached $step" $reached yes
	same "pid after a kill at $step" "$(pgrep -fx "/bin/sleep 6001")" "$pid"
done
systemctl kill --signal=KILL --kill-whom=main gozzard-agent
soon gozzard agent status --data /var/lib/gozzard-agent
soon sh -c 'gozzard hosts | grep "0:127.0.0.1 *yes"'
soon adopting systemd six --yes
cp /tmp/soon.out /tmp/six.log
has "already running" cat /tmp/six.log
same "pid" "$(pgrep -fx "/bin/sleep 6001")" "$pid"
same "state at the next boot" "$(systemctl is-enabled six || true)" disabled
grep -q "^0::/gozzard/" /proc/$pid/cgroup || fail "$(cat /proc/$pid/cgroup)"
[ -z "$(ls /run/gozzard-adopt)" ] || fail "a pid file is left"
systemctl restart six 2>/dev/null && fail "systemd started it again"
systemctl stop six 2>/dev/null && fail "systemd stopped it"
same "pid" "$(pgrep -fx "/bin/sleep 6001")" "$pid"

# Back, as the command has printed it.
sed -n '/^to go back/,$s/^  //p' /tmp/six.log >/tmp/back.sh; has "systemctl enable --now six.service" cat /tmp/back.sh
sh -e /tmp/back.sh >/tmp/ctl.log 2>&1 || fail "back"
soon pgrep -fx "/bin/sleep 6001"
same "state" "$(systemctl is-active six)/$(systemctl is-enabled six)/$(systemctl show -p Restart --value six)" active/enabled/always
gozzard ps | grep six && fail "it is registered"
systemctl disable --now six >/tmp/ctl.log 2>&1`)
}

// systemd moves nginx and redis.
func (h *movingHost) systemd() {
	h.t.Log("services of systemd")
	h.m.sh(adopting + pidsOf + `adopting systemd nginx redis-server --accept-less-protection --dry-run >/tmp/plan.log 2>&1 || fail plan
has "give up nginx.service" cat /tmp/plan.log
has "from its next restart redis-server runs without PrivateTmp" cat /tmp/plan.log
has "check: nginx: systemd does not start it again when it ends" cat /tmp/plan.log
adopting systemd nginx redis-server --accept-less-protection --yes >/tmp/move.log 2>&1 || fail move
unchanged
for pid in $(pgrep -x nginx) $(pgrep -x redis-server); do
	grep -q "^0::/gozzard/.*/keep-" /proc/$pid/cgroup || fail "pid $pid is in $(cat /proc/$pid/cgroup)"
done`)
}

// supervisord moves the supervisord of the package, a service with Restart=on-failure.
func (h *movingHost) supervisord() {
	h.t.Log("supervisord as a service")
	h.m.sh(adopting + pidsOf + `daemon=$(systemctl show -p MainPID --value supervisor)
adopting supervisord /etc/supervisor/supervisord.conf --yes >/tmp/move.log 2>&1 || fail move
kill -0 $daemon 2>/dev/null && fail "supervisord runs"
unchanged
soon sh -c 'gozzard logs web | grep asked'
systemctl kill --signal=KILL --kill-whom=main gozzard-agent
soon gozzard agent status --data /var/lib/gozzard-agent
soon sh -c 'gozzard hosts | grep "0:127.0.0.1 *yes"'
unchanged`)
}

// pm2 moves the pm2 of an ordinary account, which is a service as pm2 startup makes it. The agent restarts while the keeper
// runs.
func (h *movingHost) pm2() {
	h.t.Log("pm2 as a service")
	h.m.sh(adopting + pidsOf + `daemon=$(systemctl show -p MainPID --value pm2-app)
[ "$daemon" -gt 1 ] || fail "pm2 is no service: $(systemctl status pm2-app)"
runuser -l app -c 'pm2 jlist' >/root/list.json
adopting pm2 /root/list.json --user app --yes >/tmp/move.log 2>&1 || fail move
kill -0 $daemon 2>/dev/null && fail "pm2 runs"
unchanged
systemctl restart gozzard-agent
soon sh -c 'gozzard hosts | grep "0:127.0.0.1 *yes"'
soon sh -c 'gozzard logs shop | grep asked'
unchanged
rm /run/asking
soon sh -c '! pgrep -f "^/bin/sh /usr/local/bin/ask"'
for name in nginx redis web shop; do
	[ "$(grep -c ok /run/asked-$name)" -gt 20 ] || fail "$name was asked $(wc -l </run/asked-$name) times"
	same "failed requests of $name" "$(grep -c failed /run/asked-$name)" 0
	echo "$name: $(grep -c ok /run/asked-$name) requests, 0 failed" >>/root/asked
done`)
	h.t.Log(h.m.sh("cat /root/asked"))
}

// answers asks a service once.
const answers = `answers() { case $1 in
	nginx) curl -fsS http://127.0.0.1:80/ ;; redis-server) redis-cli ping | grep PONG ;;
	web) curl -fsS http://127.0.0.1:7003/ ;; shop) curl -fsS http://127.0.0.1:7004/ ;;
esac >/dev/null 2>&1; }
`

// supervised: a process that is killed comes back if its definition says so, as its unit did, and a stop keeps it stopped.
func (h *movingHost) supervised() {
	h.t.Log("supervised by the agent only")
	h.m.sh(answers + `pid() { gozzard ps "$1" -o json | sed -n 's/.*"pid": \(-*[0-9]*\).*/\1/p'; }
back() { now=$(pid $1); [ "$now" -gt 1 ] && [ "$now" != "$2" ] && answers $1; }

# The unit of nginx has no Restart=: systemd does not start it again, and neither does Gozzard until the definition says it.
has "policy: never" gozzard show nginx
kill -9 $(pid nginx)
soon sh -c 'gozzard ps nginx | grep -E "nginx .* failed "'
sleep 8
pgrep -f "^nginx: master" && fail "nginx was started again"
gozzard stop nginx >/tmp/stop.log 2>&1 || fail "stop nginx"
answers nginx && fail "workers of nginx run after a stop"
EDITOR='sed -i s/never/always/' gozzard edit nginx --yes >/tmp/edit.log 2>&1 || fail "edit nginx"
gozzard start nginx >/tmp/start.log 2>&1 || fail "start nginx"
soon answers nginx

for name in nginx redis-server web shop; do
	before=$(pid $name)
	kill -9 $before
	soon back $name $before
	gozzard stop $name >/tmp/stop.log 2>&1 || fail "stop $name"
done
sleep 5 # whatever would start them again has had its time
for name in nginx redis-server web shop; do
	if answers $name; then fail "$name runs after a stop"; fi
done
for unit in nginx redis-server supervisor pm2-app; do
	case $(systemctl is-active $unit) in inactive | failed) ;; *) fail "$unit: $(systemctl status $unit)" ;; esac
done
for name in nginx redis-server web shop; do
	gozzard start $name >/tmp/start.log 2>&1 || fail "start $name"
	soon answers $name
done`)
}

// reboot: each runs once, under the agent.
func (h *movingHost) reboot() {
	h.t.Log("after a boot of the machine")
	h.m.reboot()
	h.m.sh(answers + `ip link set lo up
soon sh -c 'gozzard ps 2>&1 | grep "4 processes: 4 running"'
for name in nginx redis-server web shop; do soon answers $name; done
for unit in nginx redis-server supervisor pm2-app; do
	same "$unit" "$(systemctl is-active $unit)/$(systemctl is-enabled $unit)" inactive/disabled
done
same "masters of nginx" "$(pgrep -c -f '^nginx: master')" 1
same "redis" "$(pgrep -c -x redis-server)" 1
same "web" "$(pgrep -c -f '^/usr/bin/python3 /usr/local/bin/answer 7003')" 1
same "shop" "$(pgrep -c -f '^[^ ]*node /srv/app.js')" 1
pgrep -f '^/usr/bin/python3 /usr/bin/supervisord|^PM2 v' && fail "an old supervisor runs"
true`)
}

// groupsOfVersion1 moves redis on a machine that has cgroups of version 1: all its processes leave the groups of the unit
// in every tree.
func (h *movingHost) groupsOfVersion1() {
	h.t.Log("cgroups of version 1")
	if h.m.sh("grep -c '^[1-9].*:name=systemd:' /proc/1/cgroup || true") == "0" {
		h.t.Log("this machine has no cgroups of version 1: not tested")
		return
	}
	h.m.sh(adopting + `mkdir -p /etc/systemd/system/redis-server.service.d
printf '[Service]\nLimitNOFILE=10000\n' >/etc/systemd/system/redis-server.service.d/limit.conf
rm -f /etc/systemd/system/redis-server.service; systemctl daemon-reload
systemctl enable --now redis-server >/tmp/ctl.log 2>&1 || fail "systemctl enable"
soon redis-cli ping
pid=$(pgrep -x redis-server); grep -q /redis-server.service /proc/$pid/cgroup || fail "$(cat /proc/$pid/cgroup)"
adopting systemd redis-server --accept-less-protection --yes >/tmp/move.log 2>&1 || fail move
same pid "$(pgrep -x redis-server)" $pid
grep redis-server.service /proc/$pid/cgroup && fail "it is in the groups of the unit still"
systemctl restart redis-server 2>/dev/null && fail "systemd started it again"
redis-cli ping >/dev/null || fail "no answer"

kill -9 $pid
soon sh -c 'redis-cli ping | grep PONG'
same "active" "$(systemctl is-active redis-server || true)" inactive
gozzard stop redis-server >/tmp/stop.log 2>&1 || fail stop
sleep 3
pgrep -x redis-server && fail "it runs after a stop"
gozzard start redis-server >/tmp/start.log 2>&1 || fail start`)
	h.m.reboot()
	h.m.sh(`ip link set lo up
soon sh -c 'redis-cli ping | grep PONG'
same "redis" "$(pgrep -c -x redis-server)" 1
same "at systemd" "$(systemctl is-active redis-server)/$(systemctl is-enabled redis-server)" inactive/disabled`)
}
