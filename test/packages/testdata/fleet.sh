# The steps that deb.sh and rpm.sh share. They set install_old, install_new, remove as functions.
export GOZZARD_CREDENTIALS=/var/lib/gozzard/credentials.json

say "install"
install_old
has 1.0.0 gozzard version
for name in gozzard gozzard-server gozzard-relay; do getent passwd $name >/dev/null || fail "no account $name"; done
unit gozzard-server
server=$pid
soon gozzard hosts
unit gozzard-agent
agent=$pid
soon sh -c 'gozzard hosts | grep "0:127.0.0.1 *yes"'

say "a process of an account runs"
useradd --system --no-create-home webby
sed -i 's/^users: .*/users: ["webby"]/; s/^deny_uids: .*/deny_uids: ""/' /etc/gozzard/policy.yaml
mkdir -p /srv/web
cat >/tmp/web.yaml <<'END'
namespace: demo
name: web
hosts: [{ip: 127.0.0.1}]
spec:
  identity: {proc_name: sleep, setup_path: /srv/web, user: webby}
  control: {start_cmd: sleep 86400}
END
gozzard register -f /tmp/web.yaml >/dev/null
gozzard start web -n demo --all-hosts >/dev/null
process=$(pgrep -fx "sleep 86400") || fail "the process does not run"

say "a changed setting survives the upgrade, and so does the process"
echo "log-level: debug" >>/etc/gozzard/server.yaml
install_new
has 1.1.0 gozzard version
has "log-level: debug" tail -n 1 /etc/gozzard/server.yaml
end "$server"
unit gozzard-server
server=$pid
kill -USR2 "$agent" # what systemctl reload does: the new program takes over the process of the agent
soon sh -c 'gozzard hosts | grep "0:127.0.0.1 *yes .*1.1.0"'
same "pid of the process" "$(pgrep -fx "sleep 86400")" "$process"

say "the way back: the older package, and a process that keeps running"
install_old
has 1.0.0 gozzard version
install_new

say "the host leaves, and takes its processes with it"
end "$agent"
gozzard agent leave --data /var/lib/gozzard-agent --stop >/tmp/leave.out 2>&1 || fail "leave: $(cat /tmp/leave.out)"
has "1 processes were stopped" cat /tmp/leave.out
pgrep -fx "sleep 86400" && fail "the process runs still"
[ ! -e /var/lib/gozzard-agent ] || fail "the state folder is there still"
end "$server"

say "remove: settings and data stay"
remove
[ ! -e /usr/bin/gozzard ] || fail "the program is there still"
[ -e /var/lib/gozzard/gozzard.db ] || fail "the record is gone"
