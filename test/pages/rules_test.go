//go:build linux

package pages_test

import "strings"

// page is a page with the rules for its commands. A long page runs in parts, each on a machine of its own, so that none has to repair
// what another one removes.
type page struct {
	file     string
	part     string   // the name of the part, "" for a whole page
	nouns    string   // of a part: the words after "gozzard" in the headings of its sections
	before   string   // shell commands that make what the page takes for granted
	replaced []string // pairs: what the reader replaces, and by what
	rules    []rule
}

// rule is for the first command that begins with a text and has no rule yet. A rule that begins with "## " is for a section: first is before its
// first command, then is after its last one, and how is for its commands without a rule.
type rule struct {
	begins string
	how    string
	why    string // of elsewhere
	first  string // shell commands before it
	then   string // shell commands after it
}

// How a command is run. "" runs it and waits for its end, which must have the exit code 0.
const (
	background = "background"
	follow     = "follow"
	fails      = "fails"     // its exit code is not 0, as the page expects
	onNew      = "on 2,3"    // on the machines that join
	elsewhere  = "elsewhere" // not here

	onTerminal = "on_terminal" // with a person who answers y

	on2, on3     = "on 2", "on 3"
	back2, back3 = "background_on 2", "background_on 3"
)

const (
	built     = "the program is built once for all tests"
	thisTest  = "this test is a part of it"
	unitTests = "make test-systemd and make test-packages install packages"
)

// pages are the pages whose commands are run.
func pages() []page {
	dev := rule{begins: "make run", how: background, then: "soon online bin/gozzard"}
	readme := page{before: "make() { command make -o build \"$@\"; }", replaced: []string{"USER", "root"}, rules: []rule{
		dev, {begins: "make test", how: elsewhere, why: thisTest},
		{begins: "make run", how: elsewhere, why: "it runs already, by the first block of the page"},
		{begins: "bin/gozzard topology", first: "awk '/^```yaml/{f=1;next} /^```/{f=0} f' docs/businesses-and-expressions.md | " +
			"sed 's/USER/root/' | awk '/^biz:/{n++} n==1' >shop.yaml"},
	}}
	english, chinese := readme, readme
	english.file, chinese.file = "README.md", "README.zh.md"

	all := []page{english, chinese, examplesPage()}
	for _, p := range []page{tutorial(), firstProcess(), apiPage(), compatibility(), businesses(), configurationFiles(), install(), addHosts(),
		monitor(), notifications(), upgrade(), uninstall(), troubleshoot(), auditPage(), peopleAndRights(),
		moveFromSystemd(), moveFromSupervisord(), moveFromPM2(), moveFromGSE(), relays(), severalServers(), backupAndRestore(), security()} {
		all = append(all, p, p.inChinese())
	}
	for _, p := range reference() {
		all = append(all, p, p.inChinese())
	}
	return all
}

// inChinese is the same page in Chinese, with the same rules.
func (p page) inChinese() page {
	p.file = strings.Replace(p.file, "docs/", "docs/zh/", 1)
	return p
}

func firstProcess() page {
	return page{file: "docs/first-process.md", replaced: []string{"USER", "root"}, rules: []rule{
		{begins: "make build", how: elsewhere, why: built},
		{begins: "bin/gozzard dev", how: background, then: "soon online bin/gozzard; cp /stage/example-0.yaml sleeper.yaml"},
	}}
}

// tutorial runs on three machines: this one, and two that join.
func tutorial() page {
	const packages = ".ci/deps installs them for all tests; make test-systemd has real systemd"
	return page{file: "docs/tutorial.md", before: "two_more_machines", rules: []rule{
		{begins: "apt-get", how: elsewhere, why: packages}, {begins: "systemctl disable", how: elsewhere, why: packages},
		{begins: "make build", how: elsewhere, why: built},
		{begins: "make install", first: "make() { command make -o build \"$@\"; }"},
		{begins: "gozzard logs", first: "soon eval 'gozzard logs redis -n shop | grep -q Ready'"},
		{begins: "gozzard logs pager", first: `soon says $'This is a test message\n这是一条测试消息' gozzard logs pager -n shop`},
		{begins: "gozzard logs worker", first: "soon says 'Could not connect' gozzard logs worker -n shop"},
		{begins: "gozzard logs pager", first: `soon says $'firing crash\nfiring 反复崩溃' gozzard logs pager -n shop`},
		{begins: "gozzard ps worker", first: "soon says '1 running' gozzard ps worker -n shop"},
		{begins: "gozzard logs pager", first: `TRIES=900 soon says $'resolved crash\nresolved 反复崩溃' gozzard logs pager -n shop`},
		{begins: "gozzard chart", first: "soon gozzard chart redis -n shop"},
		{begins: "gozzard events nginx", first: "soon another_nginx"},
		{begins: "gozzard ps redis", first: "sleep 3; ! pgrep -x redis-server || fail 'it came back'"},
		{begins: "apt-get", how: elsewhere, why: packages}, {begins: "systemctl disable", how: elsewhere, why: packages},
		{begins: "curl -fsSL", how: onNew, then: "new_agents"},
		{begins: "install -d -o www-data"}, {begins: "install -d -o www-data", how: onNew},
		{begins: "gozzard hosts"}, {begins: "gozzard hosts", first: "soon all_online"},
		{begins: "curl -sf http://10.0.0.3"}, {begins: "curl -sf http://10.0.0.3"}, {begins: "curl -sf http://10.0.0.3", first: "soon version_1"},
	}}
}

func apiPage() page {
	const installed = "TestMakeInstall and make test-systemd install it; TestScripts/login-elsewhere calls a server with its authority"
	return page{file: "docs/api.md", rules: []rule{
		{begins: "bin/gozzard dev", how: background, then: "soon online bin/gozzard"}, {begins: "api() {"}, {begins: "export PYTHONPATH=client"},
		{begins: "export GOZZARD_CREDENTIALS=", how: elsewhere, why: installed}, {begins: "api() {", how: elsewhere, why: installed},
		{begins: "export PYTHONPATH=/usr", how: elsewhere, why: installed},
	}}
}

func compatibility() page {
	return page{file: "docs/compatibility.md", before: `PATH=$PATH:/src/bin
background 0 "gozzard dev"
soon online gozzard`}
}

func examplesPage() page {
	return page{file: "examples/README.md", before: `PATH=$PATH:/src/bin
background 0 "gozzard dev"
soon online gozzard
mkdir -p /srv/shop; cp -r examples/nginx examples/business /srv/shop
cd examples; export GOZZARD_CREDENTIALS=/src/data/dev.json`}
}

func businesses() page {
	return page{file: "docs/businesses-and-expressions.md", replaced: []string{"USER", "root"}, before: `PATH=$PATH:/src/bin
background 0 "gozzard dev"
soon online gozzard
cp /stage/example-0.yaml shop.yaml`, rules: []rule{
		{begins: "gozzard server --data", how: elsewhere, why: "needs a CMDB; internal/cmdb and test/fleettest have one"},
	}}
}

func configurationFiles() page {
	return page{file: "docs/configuration-files.md", replaced: []string{"USER", "root", "GROUP", "root"}, before: `PATH=$PATH:/src/bin
background 0 "gozzard dev"
soon online gozzard
cp /stage/example-0.yaml shop.yaml
cp /stage/example-1.yaml web.yaml`}
}

// open makes a server that other machines reach, on a clean machine, and a token.
const open = `everything_ends
background 0 "gozzard server --data /var/lib/gozzard --listen 0.0.0.0:8443 --agent-listen 0.0.0.0:4230"
soon gozzard hosts
(umask 077; gozzard token create >token)`

func install() page {
	return page{file: "docs/install.md", rules: []rule{
		{begins: "apt-get", how: elsewhere, why: unitTests}, {begins: "dnf", how: elsewhere, why: unitTests},
		{begins: "systemctl enable --now gozzard-server", first: "everything_installed"},
		{begins: "(umask 077; gozzard token create", first: open},
		{begins: "gozzard agent join"},
		{begins: "make build", how: elsewhere, why: built},
		{begins: "make install", first: "make() { command make -o build \"$@\"; }"},
		{begins: "podman", how: elsewhere, why: "needs podman; TestImage unpacks and runs the image"},
		{begins: "gozzard server --data", how: background, first: "everything_ends",
			then: "soon gozzard hosts --credentials /var/lib/gozzard/credentials.json"},
		{begins: "gozzard agent --data", how: background,
			then: "soon online gozzard --credentials /var/lib/gozzard/credentials.json"},
		{begins: "gozzard agent join", first: open}, // mode cap
		{begins: "install -d -o gozzard", first: open},
	}}
}

func addHosts() page {
	return page{file: "docs/add-hosts.md", before: "everything_installed\n" + open, rules: []rule{
		{begins: "curl", first: open + "\nexport GOZZARD_TOKEN_FILE=/src/token; cp /var/lib/gozzard/ca.pem .; " +
			"rm -f /usr/bin/gozzard; PATH=$PATH:/src/bin"},
		{begins: "gozzard hosts address", how: elsewhere, why: "the addresses of the page belong to no host; TestScripts/enrol"},
	}}
}

// shopWeb is a process web of the namespace shop. The pages have it on the host 10.0.0.1.
const shopWeb = `PATH=$PATH:/src/bin
background 0 "gozzard dev"
soon online gozzard
gozzard run --name web -n shop -- sleep 1000
`

func monitor() page {
	return page{file: "docs/monitor.md", before: shopWeb, replaced: []string{"10.0.0.1", "127.0.0.1"}, rules: []rule{
		{begins: "gozzard events web -n shop -f", how: follow},
		{begins: "gozzard logs web -n shop --host 10.0.0.1 -f", how: follow},
		{begins: "otelcol", how: elsewhere, why: "Debian has no collector; traces_test.go of test/fleettest has a receiver"},
	}}
}

func auditPage() page {
	return page{file: "docs/audit.md", replaced: []string{"4711", "1"}, before: `everything_installed
export GOZZARD_CREDENTIALS=/var/lib/gozzard/credentials.json
background 0 "gozzard server --data /var/lib/gozzard --audit-file /src/audit.jsonl"
soon gozzard hosts`, rules: []rule{
		{begins: "gozzard audit verify --checkpoints", how: elsewhere, why: "FILE and KEY are a copy on another machine; TestScripts/audit"},
		{begins: "gozzard audit verify-export", how: elsewhere, why: "two files, of which one was moved away after 100 MiB; test/faults/audit_export_test.go"},
	}}
}

// security has a token of SoftHSM, and a release that is signed as make release does it.
func security() page {
	return page{file: "docs/security.md", before: `everything_installed
softhsm2-util() { command softhsm2-util "$@" --pin 4711 --so-pin 4711; } # it asks for them
(umask 077; echo 4711 >/etc/gozzard/pin)
supply() { CGO_ENABLED=0 go run -trimpath ./tools/supply "$@"; }
openssl genpkey -algorithm ed25519 -out release.key; openssl pkey -in release.key -pubout -out release.pub
mkdir folder; cp bin/gozzard folder/gozzard-linux-amd64
supply manifest -version 1.0.0 -days 365 folder; supply signmanifest -key release.key folder
supply sums folder; supply sign -key release.key folder
cp folder/* .`, rules: []rule{
		{begins: "gozzard server", how: background, then: "soon gozzard key list --credentials data/credentials.json"},
	}}
}

func peopleAndRights() page {
	const (
		provider = "needs an OpenID provider; oidc_test.go of test/fleettest has a real one"
		code     = "the code is of a device; TestScripts/user"
		requests = "several people; second_person_test.go of test/fleettest"
	)
	return page{file: "docs/people-and-rights.md", before: `everything_installed
background 0 "gozzard server --data /var/lib/gozzard"
soon gozzard hosts --credentials /var/lib/gozzard/credentials.json
(umask 077; for name in alice carol; do head -c 12 /dev/urandom | base64 >$name.txt; done)
awk '/^` + "```" + `yaml/{f=1;next} /^` + "```" + `/{f=0} f' docs/businesses-and-expressions.md | sed 's/USER/root/' | awk '/^biz:/{n++} n==1' >shop.yaml`,
		replaced: []string{"4711", "1"}, rules: []rule{
			{begins: "gozzard grant check", first: "no() { ! \"$@\"; }"},
			{begins: "gozzard server --oidc", how: elsewhere, why: provider}, {begins: "gozzard grant add --group", how: elsewhere, why: provider},
			{begins: "gozzard user totp enrol", how: elsewhere, why: code}, {begins: "gozzard user totp confirm", how: elsewhere, why: code},
			{begins: "gozzard user login alice"}, {begins: "gozzard user login alice", how: elsewhere, why: code},
			{begins: "gozzard app disable admin", then: "gozzard user login carol --password-file carol.txt --out carol.json; " +
				"gozzard app enable admin --credentials carol.json"},
			{begins: "gozzard app create shop"}, {begins: "gozzard app create shop", first: "gozzard app delete shop"},
			{begins: "gozzard grant add --user carol", how: elsewhere, why: requests},
			{begins: "gozzard request list", how: elsewhere, why: requests}, {begins: "gozzard request approve", how: elsewhere, why: requests},
		}}
}

func notifications() page {
	return page{file: "docs/notifications.md", before: "PATH=$PATH:/src/bin; background 0 \"gozzard dev\"; soon online gozzard; (umask 077; openssl rand -hex 16 >hook.secret)"}
}

func upgrade() page {
	const why = "a release needs a key and minutes of building; TestScripts/release, TestScripts/agent-update"
	return page{file: "docs/upgrade.md", before: "enrolled; openssl genpkey -algorithm ed25519 | openssl pkey -pubout -out release.pub", rules: []rule{
		{begins: "gozzard agent update", how: elsewhere, why: why}, {begins: "gozzard agent update"},
		{begins: "gozzard release publish", how: elsewhere, why: why}, {begins: "gozzard release roll", how: elsewhere, why: why},
		{begins: "gozzard release approve", how: elsewhere, why: why}, {begins: "gozzard release status", how: elsewhere, why: why},
		{begins: "gozzard release stop", how: elsewhere, why: why},
	}}
}

func uninstall() page {
	return page{file: "docs/uninstall.md", before: "enrolled", rules: []rule{
		{begins: "gozzard agent leave", first: "agent_ends; install -D /dev/null /run/systemd/system/redis-server.service.d/zzzz-gozzard-adopt.conf",
			then: "grep -F 'systemctl enable --now redis-server.service' /tmp/line-*.log || fail 'it does not say how the service comes back'; " +
				"rm -r /run/systemd"}, // the join script asks this folder whether systemd runs
		{begins: "systemctl daemon-reload", how: elsewhere, why: booted}, {begins: "systemctl enable", how: elsewhere, why: booted},
		{begins: "rm -r", first: `PATH=$PATH:/src/bin; rm -r /usr/bin/gozzard /etc/gozzard /usr/lib/systemd/system/gozzard-agent*
(umask 077; gozzard token create >token)
curl -fsSL --cacert /var/lib/gozzard/ca.pem https://10.0.0.1:8443/join | GOZZARD_TOKEN_FILE=token sh
/usr/bin/gozzard agent leave --data /var/lib/gozzard-agent --keep`,
			then: "for left in /usr/bin/gozzard /etc/gozzard /var/lib/gozzard-agent; do [ ! -e $left ] || fail \"$left is left\"; done"},
	}}
}

// troubleshoot has a failed task, a receiver that takes alerts, and a record that is deleted under its server.
func troubleshoot() page {
	return page{file: "docs/troubleshoot.md", before: `enrolled
systemctl() { :; }
gozzard agent policy --data /var/lib/gozzard-agent --allow-user nobody
agent_ends; background 0 "gozzard agent --data /var/lib/gozzard-agent"
failed_task() { gozzard tasks --state failed | awk 'NR == 2 { print $2 }'; }
server_pid() { pgrep -f '[g]ozzard server --data'; }
fd_of() { ls -l "/proc/$(server_pid)/fd" | sed -n "s|.* \([0-9]*\) -> /var/lib/gozzard/$1 (deleted)|\1|p" | head -1; }
background 0 "python3 -c 'import http.server as h; h.BaseHTTPRequestHandler.do_POST = lambda r: (r.send_response(200), r.end_headers()); h.HTTPServer((\"10.0.0.1\", 9000), h.BaseHTTPRequestHandler).serve_forever()'"
soon online gozzard
! (cd /srv && gozzard run --name broken --user nobody -- /bin/false)
gozzard notify receivers create pager --receiver-kind webhook --to-url http://10.0.0.1:9000/
gozzard notify subscriptions create night --receiver pager`,
		replaced: []string{"20240102030405:17", "$(failed_task)", "/proc/N/fd/7", "/proc/$(server_pid)/fd/$(fd_of gozzard.db)",
			"/proc/N/fd/8", "/proc/$(server_pid)/fd/$(fd_of gozzard.db-wal)", "/proc/N/fd", "/proc/$(server_pid)/fd"}, rules: []rule{
			{begins: "gozzard task 2024", how: fails}, {begins: "gozzard task 2024"}, {begins: "gozzard task 2024", how: fails},
			{begins: "ls -l /proc/N", first: "(cd /var/lib/gozzard; rm gozzard.db gozzard.db-wal gozzard.db-shm)"},
			{begins: "cp /proc/N/fd/8", then: `unit_ends server
(cd /var/lib/gozzard; rm -f gozzard.db*; mv /var/tmp/gozzard.db /var/tmp/gozzard.db-wal .)
background 0 "gozzard server --data /var/lib/gozzard --listen 0.0.0.0:8443 --agent-listen 0.0.0.0:4230"
soon online gozzard; gozzard tasks --state failed | grep broken`},
			{begins: "groupadd", first: "useradd -m alice"},
			{begins: "gozzard agent --data", how: background, first: "agent_ends",
				then: "soon gozzard agent ps --socket /run/gozzard/agent.sock"},
		}}
}

// booted is why commands about systemd are not run here.
const booted = "needs a machine with systemd; TestSystemdMoves of make test-systemd"

func moveFromSystemd() page {
	return movePage("docs/move-from-systemd.md", "nginx", "systemd nginx redis-server", "systemctl status")
}

func moveFromSupervisord() page {
	return movePage("docs/move-from-supervisord.md", "web", "supervisord /etc/supervisor/supervisord.conf")
}

func moveFromPM2() page {
	return movePage("docs/move-from-pm2.md", "shop", "pm2 list.json --user app", "runuser", "systemctl status")
}

// movePage is a page about services of systemd. What needs no systemd is run.
func movePage(file, name, imports string, booting ...string) page {
	p := page{file: file, before: `PATH=$PATH:/src/bin
background 0 "gozzard dev"
soon online gozzard
echo '{"apps": [{"name": "shop", "script": "/srv/app.js", "cwd": "/srv"}]}' >list.json
mkdir -p /etc/supervisor; printf '[program:web]\ncommand=sleep 1\nuser=root\n' >/etc/supervisor/supervisord.conf
gozzard run --name ` + name + ` -- sleep 1000`}
	for _, begins := range append(booting, "gozzard import "+imports+" --adopt", "gozzard import "+imports+" --adopt",
		"systemctl daemon-reload", "systemctl enable") {
		p.rules = append(p.rules, rule{begins: begins, how: elsewhere, why: booted})
	}
	return p
}

// moveFromGSE moves a process that its procinfo.json names by its pid file.
func moveFromGSE() page {
	return page{file: "docs/move-from-gse.md", before: `PATH=$PATH:/src/bin
background 0 "gozzard dev"
soon online gozzard`, rules: []rule{
		{begins: "gozzard import procinfo", first: `everything_ends
enrolled
printf 'allow_root: true\nusers: ["*"]\npath_prefixes: ["/"]\ntrusted_paths: false\nshell: true\n' >/etc/gozzard/policy.yaml
printf 'ops: [start, stop, restart, reload, kill, query, manage, unmanage]\nmax_processes: 2000\n' >>/etc/gozzard/policy.yaml
setsid sh -c 'echo $$ >/src/sleeper.pid; exec sleep 2000' >/dev/null 2>&1 &
soon test -s sleeper.pid
echo '{"proc": [{"procName": "sleep", "setupPath": "/src", "pidPath": "/src/sleeper.pid", "contact": "shop", "valuekey": "shop:sleeper",
 "startCmd": "exec sleep 2000", "type": 1, "user": "root"}]}' >procinfo.json`},
		{begins: "gozzard ps", then: `gozzard ps sleeper -n shop | grep -q "running *$(cat sleeper.pid) " || fail "another pid"`},
		{begins: "gozzard unregister", then: "kill -0 $(cat sleeper.pid)"},
	}}
}
