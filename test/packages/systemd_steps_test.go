//go:build linux && systemd

package packages_test

import (
	"strings"
	"testing"
)

// systemdFleet is a server and two hosts.
type systemdFleet struct {
	t            *testing.T
	srv, web, db *machine
}

// install is the first command of docs/install.md.
const install = "apt-get install -y /dist/old/gozzard_*_amd64.deb >/tmp/apt.log 2>&1 || fail apt-get\n"

// oneMachine: server and agent on one machine, a process of an account, restarts of the units.
func (f *systemdFleet) oneMachine() {
	f.t.Log("server and agent on one machine")
	f.srv.sh(install + `has 1.0.0 gozzard version
same "mode of the policy" "$(stat -c %a:%U /etc/gozzard/policy.yaml)" 644:root
[ -s /usr/share/zsh/vendor-completions/_gozzard ] || fail "no completion for zsh"
[ -s /usr/share/bash-completion/completions/gozzard ] || fail "no completion for bash"
[ -s /usr/share/doc/gozzard/examples/nginx/definition.yaml ] || fail "no examples"
[ -s /usr/share/gozzard/python/gozzard/client.py ] && [ -s /usr/share/gozzard/python/pyproject.toml ] || fail "no client for Python"
systemctl enable --now gozzard-server >/tmp/ctl.log 2>&1
test -e /var/lib/gozzard/join.secret || fail "the server has started and has no join secret"
systemctl enable --now gozzard-agent >/tmp/ctl.log 2>&1
soon sh -c 'gozzard hosts | grep "0:127.0.0.1 *yes"'
for unit in gozzard-server gozzard-agent; do same "$unit" "$(systemctl is-active $unit)" active; done
gozzard hosts -o wide | grep -q "cgroup v2 (" && fail "no cgroups: $(gozzard hosts -o wide)"
gozzard agent doctor --data /var/lib/gozzard-agent | grep "^WARN *policy" && fail "the policy is in a wrong place"
journalctl -u gozzard-agent | grep "one was written" && fail "the agent wrote another policy"
gozzard agent ps 2>/tmp/ps.log || fail "without --data: $(cat /tmp/ps.log)"
gozzard agent doctor >/tmp/doctor.log || fail "doctor: $(cat /tmp/doctor.log)"
has "OK    agent         runs with pid" cat /tmp/doctor.log
has "OK    settings      /etc/gozzard/agent.yaml" cat /tmp/doctor.log
true`)

	// A wrong line makes the restart fail, and the doctor names it.
	f.srv.sh(`cp /etc/gozzard/agent.yaml /tmp/agent.yaml
echo 'metrics-listen: 0.0.0.0:9436' >>/etc/gozzard/agent.yaml
line=$(wc -l </etc/gozzard/agent.yaml)
systemctl restart gozzard-agent 2>/dev/null && fail "a restart with a wrong setting succeeds"
gozzard agent ps >/tmp/ps.log 2>&1 && fail "an agent runs with a wrong setting"
has "journalctl -u gozzard-agent" cat /tmp/ps.log
gozzard agent doctor >/tmp/doctor.log && fail "the doctor finds nothing: $(cat /tmp/doctor.log)"
has "FAIL  agent         it does not run" cat /tmp/doctor.log
has "FAIL  settings      configuration /etc/gozzard/agent.yaml, line $line: --metrics-listen" cat /tmp/doctor.log
cp /tmp/agent.yaml /etc/gozzard/agent.yaml
cp /etc/gozzard/policy.yaml /tmp/policy.yaml
echo 'allow_rot: true' >>/etc/gozzard/policy.yaml
systemctl restart gozzard-agent 2>/dev/null && fail "a restart with a wrong policy succeeds"
gozzard agent doctor >/tmp/doctor.log && fail "the doctor finds nothing: $(cat /tmp/doctor.log)"
has "FAIL  policy        policy /etc/gozzard/policy.yaml: line" cat /tmp/doctor.log
cp /tmp/policy.yaml /etc/gozzard/policy.yaml
systemctl stop gozzard-server
systemctl restart gozzard-agent || fail "the agent waits for the server"
gozzard agent ps 2>/tmp/ps.log || fail "$(cat /tmp/ps.log)"
systemctl start gozzard-server
soon sh -c 'gozzard hosts | grep "0:127.0.0.1 *yes"'`)

	f.srv.sh(`useradd --system webby; mkdir -p /srv/web
gozzard agent policy --data /var/lib/gozzard-agent --allow-user webby >/tmp/policy.log 2>&1 || fail policy
cat >/tmp/web.yaml <<'END'
namespace: demo
name: web
hosts: [{ip: 127.0.0.1}]
user: webby
folder: /srv/web
command: sleep 86400
END
gozzard register -f /tmp/web.yaml >/tmp/register.log 2>&1 || fail register
gozzard start web -n demo --all-hosts >/tmp/start.log 2>&1 || fail start
pid=$(pgrep -fx "sleep 86400") || fail "the process does not run"
grep -q "^0::.*/gozzard/.*/keep-" /proc/$pid/cgroup || fail "the process is in no cgroup of the agent: $(cat /proc/$pid/cgroup)"
systemctl restart gozzard-agent gozzard-server
soon sh -c 'gozzard ps -n demo | grep "web.*$0"' $pid
same "pid after restarts of the units" "$(pgrep -fx "sleep 86400")" $pid
kill -9 $pid
soon pgrep -fx "sleep 86400"
systemctl kill --signal=KILL --kill-whom=main gozzard-agent
soon sh -c 'gozzard hosts | grep "0:127.0.0.1 *yes"'
gozzard stop web -n demo --all-hosts >/tmp/stop.log 2>&1 || fail stop
pgrep -fx "sleep 86400" && fail "it runs still"
true`)
}

// openServer: the two lines of server.yaml, and what they mean for the agent on the same machine.
func (f *systemdFleet) openServer() {
	f.t.Log("the server for other hosts")
	f.srv.sh(`sed -i 's/^#listen: 0.0.0.0:8443/listen: 0.0.0.0:8443/; s/^#agent-listen: 0.0.0.0:4230/agent-listen: 0.0.0.0:4230/' /etc/gozzard/server.yaml
systemctl restart gozzard-server
gozzard token list
journalctl -u gozzard-server -o cat | grep "cannot list the addresses" && fail "the certificate has no addresses"
soon sh -c 'journalctl -u gozzard-agent -o cat | grep "it serves enrolled hosts. Join this host"'
(umask 077; gozzard token create >/root/token)
systemctl stop gozzard-agent
gozzard agent join --server https://10.77.0.1:8443 --token-file /root/token --data /var/lib/gozzard-agent >/tmp/join.log 2>&1 || fail join
has "policy /etc/gozzard/policy.yaml" cat /tmp/join.log
systemctl start gozzard-agent
soon sh -c 'gozzard hosts | grep "0:10.77.0.1 *yes .*active"'
gozzard hosts | grep 127.0.0.1 && fail "the machine is listed twice: $(gozzard hosts)"
true`)
}

// token makes a token on the server.
func (f *systemdFleet) token() string {
	out := f.srv.sh("gozzard token create 2>/dev/null")
	return out[strings.LastIndex(out, "\n")+1:]
}

// joinByPackage: a host with the package, in mode cap, with redis. A join that fails changes no policy.
func (f *systemdFleet) joinByPackage() {
	f.t.Log("a host with the package, in mode cap, with redis")
	f.db.sh(install + `
cp /etc/gozzard/policy.yaml /tmp/policy.before
(umask 077; echo '` + f.token() + `' >/root/token)
gozzard agent join --server https://10.77.0.9:8443 --token-file /root/token --data /var/lib/gozzard-agent --allow-user redis --allow-path /srv/shop >/tmp/join.log 2>&1 &&
	fail "joined a server that is not there"
cmp /tmp/policy.before /etc/gozzard/policy.yaml || fail "a join that failed left a loosened policy"
install -d -o gozzard -g gozzard -m 0700 /var/lib/gozzard-agent
install -o gozzard -m 0600 /root/token /var/lib/gozzard-agent/token
runuser -u gozzard -- gozzard agent join --server https://10.77.0.1:8443 --token-file /var/lib/gozzard-agent/token --data /var/lib/gozzard-agent --allow-user redis >/tmp/join.log 2>&1 &&
	fail "wrote a policy that the unit does not read"
has "join as root" cat /tmp/join.log
rm -rf /var/lib/gozzard-agent
gozzard agent join --server https://10.77.0.1:8443 --token-file /root/token --data /var/lib/gozzard-agent --allow-user redis --allow-path /srv/shop >/tmp/join.log 2>&1 || fail join
chown -R gozzard: /var/lib/gozzard-agent
mkdir -p /srv/shop; cp -r /examples/redis /srv/shop; chown -R redis: /srv/shop/redis
chmod 0600 /etc/gozzard/policy.yaml
systemctl enable --now gozzard-agent-cap >/tmp/ctl.log 2>&1 && fail "an agent starts that cannot read its policy"
soon sh -c 'journalctl -u gozzard-agent-cap -o cat | grep "chmod 0644 /etc/gozzard/policy.yaml"'
chmod 0644 /etc/gozzard/policy.yaml`)
	f.srv.sh(`soon sh -c 'gozzard hosts -o wide | grep "0:10.77.0.3 *yes .* cap "'
gozzard hosts -o wide | grep 10.77.0.3 | grep "cgroup v2 (" && fail "no cgroups in mode cap: $(gozzard hosts -o wide)"
{ cat /examples/redis/definition.yaml; echo 'user: redis'; echo 'hosts: [{ip: 10.77.0.3}]'; } >/tmp/redis.yaml
gozzard register -f /tmp/redis.yaml >/tmp/register.log 2>&1 || fail register
gozzard start redis -n shop --all-hosts >/tmp/start.log 2>&1 || fail start`)
	f.db.sh(`has PONG redis-cli ping
grep -q "gozzard-agent-cap.service/gozzard/" /proc/$(pgrep -x redis-server)/cgroup || fail "redis is in no cgroup of the agent"`)
}

// joinByScript: a host without anything, by curl, with nginx.
func (f *systemdFleet) joinByScript() {
	f.t.Log("a host by the script of the server, with nginx")
	ca := f.srv.sh("cat /var/lib/gozzard/ca.pem")
	f.web.sh("cat >/root/ca.pem <<'END'\n" + ca + "\nEND\n" + `
curl -fsSL https://10.77.0.1:8443/join >/dev/null 2>&1 && fail "curl trusts the server without its certificate"
curl -fsSL --cacert /root/ca.pem https://10.77.0.1:8443/join | GOZZARD_TOKEN='` + f.token() + `' GOZZARD_JOIN_FLAGS="--allow-user www-data --allow-path /srv/shop" sh >/tmp/join.log 2>&1 || fail "the script"
grep -q "this host joined as agent" /tmp/join.log || fail "the script does not say that the host joined"
grep -qi "start the agent with" /tmp/join.log && fail "the script names a command that it has run itself"
same "unit" "$(systemctl is-active gozzard-agent)" active
mkdir -p /srv/shop; cp -r /examples/nginx /srv/shop; chown -R www-data: /srv/shop/nginx`)
	f.srv.sh(`soon sh -c 'gozzard hosts | grep "0:10.77.0.2 *yes .*active"'
{ cat /examples/nginx/definition.yaml; echo 'user: www-data'; echo 'hosts: [{ip: 10.77.0.2}]'; } >/tmp/nginx.yaml
gozzard register -f /tmp/nginx.yaml >/tmp/register.log 2>&1 || fail register
gozzard start nginx -n shop --all-hosts >/tmp/start.log 2>&1 || fail start`)
	f.web.sh(`has shop curl -fsS http://127.0.0.1:8081/`)
}

// upgrade: server and hosts by their packages. No supervised process ends, and neither does an agent.
func (f *systemdFleet) upgrade() {
	f.t.Log("upgrade by package")
	pids := func() string {
		return f.web.sh("cat /srv/shop/nginx/nginx.pid; pgrep -x nginx | sort") + "/" + f.db.sh("pgrep -x redis-server")
	}
	agents := func() string {
		return f.web.sh("systemctl show -p MainPID --value gozzard-agent") + "/" +
			f.db.sh("systemctl show -p MainPID --value gozzard-agent-cap")
	}
	before, agentsBefore := pids(), agents()

	const upgrade = "apt-get install -y /dist/new/gozzard_*_amd64.deb >/tmp/apt.log 2>&1 || fail apt-get\nhas 1.1.0 gozzard version\n"
	f.srv.sh("echo 'log-level: info' >>/etc/gozzard/server.yaml\n" + upgrade + `soon gozzard hosts
has "log-level: info" tail -n 1 /etc/gozzard/server.yaml
soon sh -c 'gozzard hosts | grep "0:10.77.0.1 *yes .*1.1.0"'`)
	f.web.sh(upgrade)
	f.db.sh(upgrade)
	f.srv.sh(`for ip in 10.77.0.2 10.77.0.3; do soon sh -c 'gozzard hosts | grep "0:$0 *yes .*1.1.0"' $ip; done
soon sh -c 'gozzard ps -n shop | grep nginx | grep -i running'
soon sh -c 'gozzard ps -n shop | grep redis | grep -i running'`)

	if after := pids(); after != before {
		f.t.Errorf("pids of the processes: %s, before %s", after, before)
	}
	if after := agents(); after != agentsBefore {
		f.t.Errorf("pids of the agents: %s, before %s", after, agentsBefore)
	}
}

// leave: a leave that fails leaves a running agent; one that succeeds takes everything away, also in mode cap.
func (f *systemdFleet) leave() {
	f.t.Log("a host in mode cap leaves")
	f.srv.sh("systemctl stop gozzard-server")
	f.db.sh(`gozzard agent leave --data /var/lib/gozzard-agent --stop >/tmp/leave.log 2>&1 && fail "left a server that is not there"
has "Nothing was changed" cat /tmp/leave.log
same "unit" "$(systemctl is-active gozzard-agent-cap)/$(systemctl is-enabled gozzard-agent-cap)" active/enabled
has PONG redis-cli ping
runuser -u gozzard -- gozzard agent leave --data /var/lib/gozzard-agent --stop >/tmp/leave.log 2>&1 && fail "left as an account that cannot remove the folder"
has "as root" cat /tmp/leave.log
same "unit" "$(systemctl is-active gozzard-agent-cap)" active`)
	f.srv.sh("systemctl start gozzard-server; gozzard hosts")
	f.db.sh(`gozzard agent leave --data /var/lib/gozzard-agent --stop >/tmp/leave.log 2>&1 || fail leave
has "1 processes were stopped" cat /tmp/leave.log
pgrep -x redis-server && fail "redis runs still"
[ ! -e /var/lib/gozzard-agent ] || fail "the state folder is there still"
same "unit" "$(systemctl is-active gozzard-agent-cap)/$(systemctl is-enabled gozzard-agent-cap)" inactive/disabled`)
	f.srv.sh(`gozzard hosts | grep 10.77.0.3 && fail "the host is listed"
gozzard ps | grep redis && fail "its process is listed"
true`)
}

// forget: a machine that is gone for good.
func (f *systemdFleet) forget() {
	f.t.Log("a host that will never come back")
	f.srv.sh(`gozzard hosts forget 10.77.0.2 >/tmp/forget.log 2>&1 && fail "forgot a host that is online"
true`)
	f.web.sh("systemctl stop gozzard-agent")
	f.srv.sh(`soon sh -c 'gozzard hosts | grep "0:10.77.0.2 *no"'
has "with 1 processes" gozzard hosts forget 10.77.0.2
gozzard hosts | grep 10.77.0.2 && fail "the host is listed"
gozzard ps | grep nginx && fail "its process is listed"
has "forget:" gozzard audit list`)
	f.web.sh(`has shop curl -fsS http://127.0.0.1:8081/
gozzard agent leave --data /var/lib/gozzard-agent --stop --offline >/tmp/leave.log 2>&1 || fail leave
pgrep -x nginx && fail "nginx runs still"
[ ! -e /var/lib/gozzard-agent ] || fail "the state folder is there still"`)
}

// purge: nothing is left but the record of the server.
func (f *systemdFleet) purge() {
	f.t.Log("purge")
	f.db.sh(`apt-get purge -y gozzard >/tmp/apt.log 2>&1 || fail apt-get
for path in /usr/bin/gozzard /etc/gozzard /var/lib/gozzard-agent /usr/share/doc/gozzard /usr/share/gozzard /usr/lib/systemd/system/gozzard-agent.service; do
	[ ! -e $path ] || fail "$path is there still"
done
systemctl --failed --no-legend | grep gozzard && fail "a unit failed"
true`)
	f.srv.sh(`apt-get purge -y gozzard >/tmp/apt.log 2>&1 || fail apt-get
[ -e /var/lib/gozzard/gozzard.db ] || fail "the record is gone"
[ ! -e /etc/gozzard ] || fail "/etc/gozzard is there still: $(ls /etc/gozzard)"
pgrep -x gozzard && fail "a program runs still"
true`)
}
