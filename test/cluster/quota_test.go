//go:build linux

package cluster_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	ft "github.com/gozzard/gozzard/test/fleettest"
)

// TestTD12QuotaOverAllServers: a caller that goes round all servers has the quotas of an hour once, not once for each server. Many
// calls at once, smaller steps, other actions, the other door, another name and a restart do not get around it.
func TestTD12QuotaOverAllServers(t *testing.T) {
	t.Parallel() // it mostly waits
	const quota, calls = 6, 30
	i := newInstallation(t, 3, fmt.Sprintf("--destructive-quota=%d", quota), fmt.Sprintf("--refused-quota=%d", quota))
	i.servers[0].join(faultHost(1))
	for _, m := range i.servers {
		m.online(faultHost(1), true)
	}
	shop, other := i.operator("shop"), i.operator("other")
	i.servers[0].OK("register_proc_info", quotaItem(0, faultHost(1), 0), nil) // else the other door knows no account of it

	// Large steps: a whole quota at the first server. Then the others have nothing left.
	if code, text := other[0].operate(8, faultHost(1), 0, quota); code != 0 {
		t.Fatalf("a whole quota: %s", text)
	}
	if code, text := other[1].operate(8, faultHost(1), 0, 1); code != 1306429 || !strings.Contains(text, "app other may") {
		t.Errorf("at another server: %s", text)
	}

	// Small steps, at all servers at once. What is accepted is done.
	done := goRound(shop, calls, func(c *appCaller, n int) (int, string) { return c.operate(8, faultHost(1), n, 1) })
	if len(done[0]) != quota || len(done[1306429]) != calls-quota {
		t.Errorf("%d calls at %d servers with a quota of %d: %v", calls, len(shop), quota, done)
	}
	for n, text := range done[0] {
		shop[n%len(shop)].executed(text)
	}

	// Other ways, at each server.
	above := func(when string) {
		t.Helper()
		for _, c := range shop {
			for _, op := range []int{1, 4, 7, 8, 9} {
				if code, text := c.operate(op, faultHost(1), 0, 1); code != 1306429 {
					t.Errorf("%s: operation %d: %s", when, op, text)
				}
			}
			if code, text := c.as("another").operate(9, faultHost(1), 0, 1); code != 1306429 {
				t.Errorf("%s: another name: %s", when, text)
			}
			status, text := c.send("/api/v1/operations", ft.J{"namespace": "shop", "names": []string{"p0"}, "action": "kill",
				"hosts": []ft.J{{"cloud": 0, "ip": faultHost(1)}}})
			if status != http.StatusBadRequest || !strings.Contains(text, "repeat it with confirm 1") {
				t.Errorf("%s: the other door: %d %s", when, status, text)
			}
		}
	}
	above("at once")
	for _, m := range i.servers[:2] {
		m.Kill(syscall.SIGKILL)
		m.Again()
		m.answers()
		m.online(faultHost(1), true)
	}
	above("after a restart")

	// Hosts that nobody knows have a quota of their own.
	done = goRound(shop, calls, func(c *appCaller, n int) (int, string) { return c.operate(0, "10.99.99.99", n, 1) })
	if len(done[0]) != quota || len(done[1306429]) != calls-quota {
		t.Errorf("%d calls about an unknown host at %d servers: %v", calls, len(shop), done)
	}
}

// goRound calls one server after the other, all at once. It returns the answers by their code.
func goRound(callers []*appCaller, calls int, call func(c *appCaller, n int) (int, string)) map[int][]string {
	var mu sync.Mutex
	var wg sync.WaitGroup
	answers := map[int][]string{}
	for n := range calls {
		wg.Go(func() {
			code, text := call(callers[n%len(callers)], n)
			mu.Lock()
			defer mu.Unlock()
			answers[code] = append(answers[code], text)
		})
	}
	wg.Wait()
	return answers
}

// executed checks that the task of an answer was done. Only its app sees a task.
func (c *appCaller) executed(answer string) {
	c.m.i.t.Helper()
	var ans struct {
		Data struct {
			Task string `json:"task_id"`
		}
	}
	if err := json.Unmarshal([]byte(answer), &ans); err != nil {
		c.m.i.t.Fatalf("%v in %s", err, answer)
	}
	api := c.m.For(c.m.i.t)
	api.Cred.AppCode, api.Cred.Secret, api.Cred.Username = c.app, c.secret, c.user
	for key, e := range api.Await(ans.Data.Task) {
		if e.Code != 0 {
			c.m.i.t.Errorf("%s: %d %s", key, e.Code, e.Msg)
		}
	}
}

// appCaller calls a server as an app that may operate everything but is no admin.
type appCaller struct {
	m                 *member
	app, secret, user string
}

// operator makes an app, and a caller of each server.
func (i *installation) operator(app string) (list []*appCaller) {
	i.t.Helper()
	out := filepath.Join(i.t.TempDir(), app+".json")
	i.servers[0].cli("app", "create", app, "--role", "operator", "--account", "root", "--asserts-users", "--unknown-users", "--out", out)
	b, err := os.ReadFile(out)
	if err != nil {
		i.t.Fatal(err)
	}
	var file struct {
		Secret string `json:"bk_app_secret"`
	}
	if err := json.Unmarshal(b, &file); err != nil {
		i.t.Fatal(err)
	}

	for _, m := range i.servers {
		soon(i.t, "a server does not know the app", func() bool { return strings.Contains(m.cli("app", "list"), app) })
		list = append(list, &appCaller{m: m, app: app, secret: file.Secret, user: "someone"})
	}
	return list
}

// as is the caller with the name of another user.
func (c *appCaller) as(user string) *appCaller {
	other := *c
	other.user = user
	return &other
}

// quotaItem is an operation on one process of a host.
func quotaItem(op int, ip string, process int) ft.J {
	return ft.J{"meta": ft.J{"namespace": "shop", "name": fmt.Sprint("p", process)}, "op_type": op, "hosts": []ft.J{host(ip)},
		"spec": ft.J{"identity": ft.J{"proc_name": "p", "setup_path": "/tmp", "pid_path": "/tmp/none.pid", "user": "root"},
			"control": ft.J{"start_cmd": "true", "reload_cmd": "true"}}}
}

// operate operates n processes of a host through BlueKing's API, the given one and those behind it. It returns the code.
func (c *appCaller) operate(op int, ip string, process, n int) (int, string) {
	c.m.i.t.Helper()
	var items []ft.J
	for i := range n {
		items = append(items, quotaItem(op, ip, process+i))
	}
	_, text := c.send("/api/c/compapi/v2/gse/operate_proc_multi/", ft.J{"proc_operate_req": items})
	var ans struct{ Code int }
	if err := json.Unmarshal([]byte(text), &ans); err != nil {
		c.m.i.t.Errorf("%v in %s", err, text)
		return -1, text
	}
	return ans.Code, text
}

// send posts a request with the credentials in the header.
func (c *appCaller) send(path string, body ft.J) (status int, text string) {
	c.m.i.t.Helper()
	req, err := http.NewRequest(http.MethodPost, strings.TrimSuffix(c.m.Cred.URL, "/")+path, bytes.NewReader(asJSON(c.m.i.t, body)))
	if err != nil {
		c.m.i.t.Error(err)
		return 0, ""
	}
	req.Header.Set("X-Bkapi-Authorization",
		string(asJSON(c.m.i.t, ft.J{"bk_app_code": c.app, "bk_app_secret": c.secret, "bk_username": c.user})))
	res, err := c.m.Client.Do(req)
	if err != nil {
		c.m.i.t.Error(err)
		return 0, ""
	}

	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		c.m.i.t.Error(err)
	}
	return res.StatusCode, string(b)
}

// asJSON is a value as JSON.
func asJSON(t *testing.T, v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		t.Error(err)
	}
	return b
}
