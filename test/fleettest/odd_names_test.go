//go:build linux

package fleettest_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	ft "github.com/gozzard/gozzard/test/fleettest"
)

// oddNames are names as CMDB allows them.
var oddNames = []string{"nginx:80_1", "java(1)_1", "进程（1）_1", "web/api_1", "a[b]_1", "nginx#1_1", "a,b_1", "100%_1", "a&b_1",
	"it's_1", "k=v_1", "a*_1", "~home_1", "$(touch pwned)_1", "a/../../etc/passwd_1", "全　角_1", "two words_1", "-x_1",
	strings.Repeat("名", 85)}

// TestD2NamesOfCMDB: a process with such a name is synced, started, listed, logged and stopped on all doors and on the
// command line, and nothing of its name becomes a path or a command.
func TestD2NamesOfCMDB(t *testing.T) {
	t.Parallel() // it mostly waits
	d := ft.StartDev(t, 1)

	// The request that was rejected, with every odd name.
	var items []ft.J
	for _, name := range oddNames {
		items = append(items, queryItem(name))
	}
	for i := range 25 {
		items = append(items, queryItem(fmt.Sprintf("plain_%d", i)))
	}
	for _, space := range oddNames {
		item := queryItem("in_odd_namespace")
		item["meta"].(ft.J)["namespace"] = space
		items = append(items, item)
	}
	entries := d.Await(d.Operate("operate_proc_multi", ft.J{"proc_operate_req": items}))
	if len(entries) != len(items) {
		t.Fatalf("%d entries of %d", len(entries), len(items))
	}
	for key, e := range entries {
		if e.Code != 0 {
			t.Errorf("%s: %+v", key, e)
		}
	}

	// A life with each of some names, in a namespace that is odd, too.
	const space = "shop: front/（1）"
	for i, name := range []string{"nginx:80_1", "$(touch pwned)_1", "a*_1", "web/../api_1", "it's_1", "-x_1"} {
		fx := ft.NewDaemon(t, t.TempDir(), fmt.Sprintf("gzodd%d", i))
		fx.Script("start.sh", "echo start >> calls\necho hello from $GOZZARD_NAME\nsetsid ./"+fx.Name+
			" 1000000 </dev/null >/dev/null 2>&1 &\necho $! > "+fx.PIDFile())
		liveOddly(t, d, fx, space, name)
		if _, err := os.Lstat(filepath.Join(fx.Dir, "pwned")); err == nil {
			t.Errorf("%s was run as a command", name)
		}
	}

	// Files of the host have neutral names.
	err := filepath.WalkDir(d.Data, func(path string, _ os.DirEntry, err error) error {
		if strings.Contains(path, "pwned") || strings.Contains(path, "nginx") || strings.Contains(path, "front") {
			t.Errorf("a file has the name of a process: %s", path)
		}
		return err
	})
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
}

// liveOddly starts, looks at and stops one process.
func liveOddly(t *testing.T, d *ft.Dev, fx *ft.Daemon, space, name string) {
	t.Helper()
	meta := ft.J{"namespace": space, "name": name, "labels": ft.J{"bk_process_name": name}}
	run := func(op int) ft.Entry {
		t.Helper()
		out := d.Await(d.Operate("operate_proc", ft.J{"meta": meta, "op_type": op, "hosts": []ft.J{ft.Host(1)}, "spec": fx.Spec(nil)}))
		e, ok := out["0:0:127.0.0.1:"+space+":"+name]
		if !ok {
			t.Fatalf("%s: %+v", name, out)
		}
		return e
	}
	if e := run(0); e.Code != 0 || fx.PID() < 0 {
		t.Fatalf("%s: start: %+v", name, e)
	}

	// The status on three doors.
	ft.Until(t, time.Minute, func() string { return name + " is not reported" }, func() bool {
		all := d.Status(space, name, ft.Host(1))
		return len(all) == 1 && all[0].Status == 1 && all[0].PID == fx.PID() && all[0].Meta.Labels["bk_process_name"] == name
	})
	status, body := d.Get(t, "/api/v1/processes?limit=1000&namespace="+url.QueryEscape(space))
	if quoted, _ := json.Marshal(name); status != 200 || !strings.Contains(body, string(quoted)) {
		t.Errorf("%s is not listed: %d %s", name, status, body)
	}
	status, body = d.Get(t, "/api/v1/logs?"+url.Values{"namespace": {space}, "name": {name}, "host": {"127.0.0.1"}}.Encode())
	if status != 200 || !strings.Contains(body, "hello from ") {
		t.Errorf("the log of %s: %d %s", name, status, body)
	}

	// The command line, with the name as one argument.
	cli := func(verb string, args ...string) string {
		t.Helper()
		cmd := exec.Command(ft.Binary(t), append([]string{verb, "--credentials", filepath.Join(d.Data, "dev.json"), "-n", space}, args...)...)
		cmd.Dir = fx.Dir
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("gozzard %s %q: %v\n%s", verb, args, err, out)
		}
		return string(out)
	}
	if out := cli("ps"); !strings.Contains(out, name) {
		t.Errorf("gozzard ps does not list %s:\n%s", name, out)
	}
	if out := cli("logs", "--host", "127.0.0.1", "--", name); !strings.Contains(out, "hello from "+name) {
		t.Errorf("gozzard logs %s:\n%s", name, out)
	}
	if strings.Contains(name, "'") || strings.HasPrefix(name, "-") {
		cli("stop", "--host", "127.0.0.1", "--", name)
	} else if e := run(1); e.Code != 0 {
		t.Errorf("%s: stop: %+v", name, e)
	}
	if fx.PID() > 0 {
		t.Errorf("%s runs after its stop", name)
	}
}

// TestD2RefusedNames: what could move a terminal or a path, or looks like something else, is still refused, on the doors and
// to the registering API also a name that would be a pattern there.
func TestD2RefusedNames(t *testing.T) {
	t.Parallel() // it mostly waits
	d := ft.StartDev(t, 1)
	for _, name := range []string{"..", ".", "../x", ".rf", " a", "a ", "a\\b", "a\"b", "a`b", "a;b", "a|b", "a>b", "a\u202eb", "a\u200bb",
		"a\nb", strings.Repeat("x", 257)} {
		ans := d.Call("get_proc_status", ft.J{"meta": ft.J{"namespace": "gse", "name": name}, "hosts": []ft.J{ft.Host(1)}})
		if ans.Code != 1306406 || !strings.Contains(ans.Message, "meta.name: ") {
			t.Errorf("%q: %s", name, ans.Raw)
		}
	}

	for name, why := range map[string]string{"a*b": "stands for any text", "-x": "begins with -"} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, d.Cred.URL+"/api/v1/processes",
			strings.NewReader(`{"name":"`+name+`","command":"sleep 1"}`))
		if err != nil {
			t.Fatal(err)
		}
		cred, _ := json.Marshal(ft.J{"bk_app_code": d.Cred.AppCode, "bk_app_secret": d.Cred.Secret, "bk_username": d.Cred.Username})
		req.Header.Set("X-Bkapi-Authorization", string(cred))
		req.Header.Set("Content-Type", "application/json")
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(res.Body)
		res.Body.Close()
		if res.StatusCode != http.StatusBadRequest || !strings.Contains(string(body), why) {
			t.Errorf("%s was registered: %d %s", name, res.StatusCode, body)
		}
	}
}
