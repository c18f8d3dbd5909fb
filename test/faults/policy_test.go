//go:build linux

package faults_test

import (
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gozzard/gozzard/internal/procfs"
	ft "github.com/gozzard/gozzard/test/fleettest"
)

// bounded is a host whose policy is under attack.
type bounded struct {
	t *testing.T
	s *ft.Server
	*ft.AgentHome
}

func startBounded(t *testing.T, account, rules string) *bounded {
	t.Helper()
	s := ft.StartServer(t, "")
	return &bounded{t, s, s.StartAgentAs(t, 1, account, nil, rules)}
}

// operate sends a definition in a namespace through the door of GSE.
func (b *bounded) operate(namespace, name string, op int, spec ft.J) ft.Entry {
	b.t.Helper()
	task := b.s.Operate("operate_proc_v2", ft.J{"meta": ft.J{"namespace": namespace, "name": name}, "op_type": op,
		"spec": spec, "hosts": host1})
	return b.s.Await(task)["0:127.0.0.1:"+namespace+":"+name]
}

// native sends an operation through the native API.
func (b *bounded) native(body string) {
	b.t.Helper()
	cred, err := json.Marshal(ft.J{"bk_app_code": b.s.Cred.AppCode, "bk_app_secret": b.s.Cred.Secret,
		"bk_username": b.s.Cred.Username})
	if err != nil {
		b.t.Fatal(err)
	}
	ans, err := b.s.Post("/api/v1/operations", []byte(body),
		http.Header{authorizationHeader: {string(cred)}, "Content-Type": {"application/json"}})
	if err != nil || ans.Status >= 300 {
		b.t.Fatalf("%v %d %s", err, ans.Status, ans.Raw)
	}
}

// job starts a process through the door of Job, which composes the commands itself.
func (b *bounded) job(d *ft.Daemon, account string) string {
	b.t.Helper()
	ans, err := b.s.TryWith("/api/c/compapi/v2/job/operate_proc/", ft.J{"bk_biz_id": 7, "op_type": 0,
		"process_infos": []ft.J{{"setup_path": d.Dir, "proc_name": d.Name, "pid_path": d.PIDFile(), "account": account,
			"cpu_lmt": 50, "mem_lmt": 30, "ip_list": []ft.J{{"bk_cloud_id": 0, "ip": "127.0.0.1"}}}}}, nil)
	var task struct {
		ID string `json:"bk_gse_taskid"`
	}
	if err != nil || json.Unmarshal(ans.Data, &task) != nil {
		b.t.Fatalf("%v %s", err, ans.Raw)
	}

	var poll struct {
		Status int
		Result map[string]struct {
			Msg string `json:"error_msg"`
		}
	}
	query := url.Values{"bk_biz_id": {"7"}, "bk_gse_taskid": {task.ID}}
	ft.Until(b.t, time.Minute, func() string { return "Job's task does not end" }, func() bool {
		status, body := b.s.Get(b.t, "/api/c/compapi/v2/job/get_proc_result/?"+query.Encode())
		var answer struct{ Data json.RawMessage }
		if status != 200 || json.Unmarshal([]byte(body), &answer) != nil {
			b.t.Fatalf("HTTP %d %s", status, body)
		}
		return json.Unmarshal(answer.Data, &poll) == nil && poll.Status == 0
	})
	all := slices.Collect(maps.Values(poll.Result))
	if len(all) != 1 {
		b.t.Fatalf("%+v", poll)
	}
	return all[0].Msg
}

// refused checks that an operation was rejected by a setting, in one line.
func (b *bounded) refused(what, message, setting string) {
	b.t.Helper()
	if !strings.Contains(message, "is not allowed by local policy ("+setting+" in "+b.Rules+")") ||
		strings.Contains(message, "\n") {
		b.t.Errorf("%s: %q, want a rejection by %s", what, message, setting)
	}
}

// daemon makes a daemon that an account can run.
func (b *bounded) daemon(name, account string) *ft.Daemon {
	b.t.Helper()
	d := ft.NewDaemon(b.t, b.Dir, name)
	if d.User = account; account != "root" {
		ft.Chown(b.t, d.Dir, account)
	}
	endFirst(b.t, b.Program)
	return d
}

// TE14: on a host that two teams share, the processes of a namespace use the accounts of that namespace and no other,
// whatever the door and however the account is written.
func TestTE14NamespacesOnASharedHost(t *testing.T) {
	needs(t)
	t.Parallel()
	b := startBounded(t, "root", `{allow_root: true, users: ["*"], deny_uids: "", path_prefixes: [/tmp], trusted_paths: false, default_user: root,
namespaces: {"shop*": [nobody], "pay?": [daemon], "JOB_BIZ_7": [nobody]}}`)
	shop, pay := b.daemon("gzshop", "nobody"), b.daemon("gzpay", "daemon")

	// Each team runs its own process.
	for namespace, d := range map[string]*ft.Daemon{"shop-eu": shop, "pay1": pay} {
		must(t, b.operate(namespace, d.Name, 0, d.Spec(nil)), 0)
		has, err := procfs.New("/proc").Credentials(d.PID())
		if want := ft.Credential(t, d.User).Uid; err != nil || has.UIDs[0] != want {
			t.Errorf("%s runs as %v, not %d, %v", d.Name, has.UIDs, want, err)
		}
	}

	// No team uses another account.
	before := len(shop.Calls()) + len(pay.Calls())
	for _, tt := range []struct{ namespace, account string }{
		{"shop-eu", "daemon"}, {"shop-eu", "root"}, {"shop-eu", "1"}, {"shop-eu", "0"}, {"shop-eu", "Nobody"},
		{"pay1", "nobody"}, {"pay1", "root"}, {"pay12", "daemon"}, {"other", "nobody"}, {"other", "root"},
	} {
		other := *pay
		other.User = tt.account
		for _, op := range []int{0, 9} {
			e := b.operate(tt.namespace, other.Name, op, other.Spec(nil))
			b.refused(tt.namespace+" as "+tt.account, e.Msg, "namespaces")
		}
	}

	// Nor without an account, which means root on this host. The native API accepts such a definition.
	b.native(`{"action":"start","namespace":"shop-none","names":["gzshop"],"hosts":[{"cloud":0,"ip":"127.0.0.1"}],` +
		`"spec":{"identity":{"proc_name":"gzshop","setup_path":"` + shop.Dir + `","pid_path":"` + shop.PIDFile() +
		`"},"control":{"start_cmd":"./start.sh"}}}`)
	ft.Until(t, time.Minute, b.Output, func() bool {
		return strings.Contains(b.Output(), "account root for namespace shop-none is not allowed by local policy (namespaces")
	})

	// Nor through Job, where the business is the namespace. Its own account works there.
	for _, account := range []string{"daemon", "root"} {
		b.refused("Job as "+account, b.job(pay, account), "namespaces")
	}
	if n := len(shop.Calls()) + len(pay.Calls()); n != before {
		t.Errorf("%d commands ran", n-before)
	}
	own := b.daemon("gzjobown", "nobody")
	if msg := b.job(own, "nobody"); own.PID() < 0 {
		t.Errorf("Job as nobody: %s", msg)
	}

	// The mapping is shown to the owner of the host.
	out, _ := exec.Command(ft.Binary(t), "agent", "doctor", "--data", b.State).CombinedOutput() // the exit code is about more
	if !strings.Contains(string(out), "namespaces: shop* as nobody, pay? as daemon, JOB_BIZ_7 as nobody") {
		t.Errorf("doctor: %s", out)
	}
}

// TE2: a script of another account in a folder of root runs as root in none of the forms that people and Job write.
func TestTE2ScriptOfAnotherAccount(t *testing.T) {
	needs(t)
	t.Parallel()
	b := startBounded(t, "root", `{allow_root: true, path_prefixes: [/tmp]}`)
	d := b.daemon("gztheirs", "root")
	script := filepath.Join(d.Dir, "start.sh")
	ft.Chown(t, script, "nobody")

	for _, text := range []string{"./start.sh", "sh start.sh", "nohup ./start.sh", "true && ./start.sh", "X=1 ./start.sh",
		"cd " + d.Dir + " && ./start.sh gztheirs &"} {
		spec := d.Spec(ft.J{"auto_type": 2})
		spec["control"] = ft.J{"start_cmd": text}
		e := b.operate("faults", d.Name, 0, spec)
		b.refused(text, e.Msg, "trusted_paths")
		if pid := d.PID(); pid > 1 { // make room for the next one
			ft.KillPID(t, pid)
			ft.Until(t, time.Minute, func() string { return d.Name + " does not end" }, func() bool { return d.PID() < 0 })
		}
	}
	b.refused("Job", b.job(d, "root"), "trusted_paths")
	if calls := d.Calls(); len(calls) != 0 {
		t.Errorf("ran as root: %v", calls)
	}

	// The same script runs when it belongs to root.
	ft.Chown(t, script, "root")
	if msg := b.job(d, "root"); d.PID() < 0 {
		t.Errorf("a script of root: %s", msg)
	}
}

// TE13: without a shell, a program outside of the allowed folders does not run, by whatever words and links.
func TestTE13ProgramsAreBounded(t *testing.T) {
	needs(t)
	t.Parallel()
	for _, account := range []string{"root", "nobody"} { // agents of root and of an ordinary account
		t.Run(account, func(t *testing.T) {
			t.Parallel()
			boundedPrograms(t, account)
		})
	}
}

func boundedPrograms(t *testing.T, account string) {
	b := startBounded(t, account, `{users: ["*"]}`)
	d := b.daemon("gzheld"+account, account)
	mark := filepath.Join(d.Dir, "escaped")
	file := filepath.Join(d.Dir, "escape")
	if err := errors.Join(os.WriteFile(file, []byte("touch "+mark+"\n"), 0o644),
		os.Symlink("/bin/sh", filepath.Join(d.Dir, "innocent"))); err != nil {
		t.Fatal(err)
	}
	start := func(text string) ft.Entry {
		spec := d.Spec(nil)
		spec["control"] = ft.J{"start_cmd": text, "stop_cmd": "./stop.sh"}
		return b.operate("faults", d.Name, 0, spec)
	}

	const common = `allow_root: true, users: ["*"], deny_uids: "", shell: false, path_prefixes: [`
	for _, tt := range []struct{ setting, rules string }{
		{"path_prefixes", "{" + common + b.Dir + "]}"},
		{"programs", "{" + common + b.Dir + "], programs: [" + d.Dir + "/st*.sh]}"},
	} {
		setting := tt.setting
		b.WriteRules(t, tt.rules)
		for _, text := range []string{"/bin/sh " + file, "/usr/bin/env touch " + mark, "exec /usr/bin/env touch " + mark,
			"./innocent " + file, "/usr/bin/nohup /bin/sh " + file, "/usr/bin/find " + d.Dir + " -fprint " + mark} {
			b.refused(text, start(text).Msg, setting)
		}
		b.refused("a shell", start("sh "+file).Msg, "shell")
		if _, err := os.Lstat(mark); err == nil {
			t.Fatalf("%s: a program outside of the policy ran", setting)
		}

		// What is listed runs, as a script without a shell around it.
		must(t, start("./start.sh"), 0)
		if d.PID() < 0 {
			t.Errorf("%s: %v", setting, d.Calls())
		}
		spec := d.Spec(nil)
		spec["control"] = ft.J{"start_cmd": "./start.sh", "stop_cmd": "./stop.sh"}
		must(t, b.operate("faults", d.Name, 1, spec), 0)
	}

	// A list of programs with a shell is no policy: the last valid one stays in effect.
	b.WriteRules(t, `{allow_root: true, users: ["*"], path_prefixes: ["/"], programs: [/bin/true]}`)
	b.refused("after an invalid policy", start("/bin/sh "+file).Msg, "programs")
	if !strings.Contains(b.Output(), "programs needs shell: false") {
		t.Error("the log does not say why the policy is invalid")
	}

	// The server lists the host with the reason, until the file is mended.
	says := func() bool {
		return strings.Contains(strings.Join(degraded(t, b.s), "; "), "programs needs shell: false")
	}
	ft.Until(t, time.Minute, b.Output, says)
	b.WriteRules(t, `{users: ["*"]}`)
	ft.Until(t, time.Minute, b.Output, func() bool { return !says() })
}
