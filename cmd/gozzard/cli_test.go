package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gozzard/gozzard/internal/blueking"

	"github.com/spf13/cobra"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/api"
	"github.com/gozzard/gozzard/internal/auth"
	"github.com/gozzard/gozzard/internal/control"
	"github.com/gozzard/gozzard/internal/fleet"
	"github.com/gozzard/gozzard/internal/record"
)

// fakePlane settles every target at once by a rule of the test, over a real live index.
type fakePlane struct {
	*fleet.Index
	*businesses
	mu      sync.Mutex
	tasks   map[gozzard.TaskID]record.TaskResults
	outcome func(a *gozzard.Attempt)
	ring    *control.EventRing
	log     func(gozzard.Target, gozzard.LogQuery) (gozzard.LogChunk, error)
}

func (p *fakePlane) Find(caller gozzard.Caller, f fleet.Filter, start, limit int) (int, []fleet.Row) {
	return p.Index.Find(caller.Rights, f, start, limit)
}

func (p *fakePlane) Hosts(caller gozzard.Caller) []fleet.Host { return p.Index.Hosts(caller.Rights) }

func (p *fakePlane) Events(_ gozzard.Caller, f record.EventFilter, limit int) record.EventPage {
	return p.ring.Newest(f, seesAll, limit)
}

func (p *fakePlane) EventsAfter(_ gozzard.Caller, f record.EventFilter, id uint64, limit int) (record.EventPage,
	<-chan struct{}) {
	return p.ring.After(f, seesAll, id, limit)
}

func (p *fakePlane) Log(_ context.Context, _ gozzard.Caller, t gozzard.Target, q gozzard.LogQuery) (gozzard.LogChunk,
	error) {
	return p.log(t, q)
}

func (p *fakePlane) Operate(_ context.Context, op *gozzard.Operation) (gozzard.Task, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	seq := gozzard.TaskSeq(len(p.tasks) + 1)
	r := record.TaskResults{Task: gozzard.Task{Seq: seq, ID: gozzard.NewTaskID(seq, time.Unix(1700000000, 0)),
		Caller: op.Caller}}
	for _, it := range op.Items {
		for _, t := range it.Targets {
			a := gozzard.Attempt{Agent: t.Agent, Addr: t.Addr, Key: it.Key, Action: it.Action,
				State: gozzard.AttemptOK, Outcome: gozzard.Outcome{Code: gozzard.CodeOK}}
			if h, ok := p.Resolve(gozzard.Caller{}, t); ok {
				a.Agent, a.Addr = h.Info.Agent, h.Info.Addrs[0]
			}
			if p.outcome != nil {
				p.outcome(&a)
			}
			r.Attempts = append(r.Attempts, a)
		}
	}

	r.Task.Targets = len(r.Attempts)
	p.tasks[r.Task.ID] = r
	return r.Task, nil
}

func (p *fakePlane) Results(_ context.Context, _ gozzard.Caller, id gozzard.TaskID) (record.TaskResults, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r, ok := p.tasks[id]
	if !ok {
		return r, gozzard.Errorf(gozzard.ErrNotFound, "no such task")
	}
	return r, nil
}

func (p *fakePlane) Await(ctx context.Context, caller gozzard.Caller, id gozzard.TaskID,
	limit time.Duration) (record.TaskResults, error) {
	r, err := p.Results(ctx, caller, id)
	if err == nil && r.Open() > 0 {
		select {
		case <-ctx.Done():
		case <-time.After(min(limit, 20*time.Millisecond)):
		}
	}
	return r, err
}

func (p *fakePlane) Status(_ gozzard.Caller, key gozzard.Key, targets []gozzard.Target) []record.StatusRow {
	rows := make([]record.StatusRow, len(targets))
	for i, t := range targets {
		rows[i].Host, rows[i].HostKnown = p.Resolve(gozzard.Caller{}, t)
		rows[i].Row, rows[i].ProcKnown = p.Get(rows[i].Host.Info.Agent, key)
	}
	return rows
}

func (p *fakePlane) Resolve(_ gozzard.Caller, t gozzard.Target) (fleet.Host, bool) {
	if t.Agent != "" {
		return p.Host(t.Agent)
	}
	return p.HostByAddr(t.Addr)
}

// cli is the command line against a real API over a fake plane.
type cli struct {
	t     *testing.T
	plane *fakePlane
	env   cliEnv
	dir   string
}

func newCLI(t *testing.T) *cli {
	t.Helper()
	book, err := auth.New(auth.Config{Apps: []auth.App{{Code: "app", Secrets: []auth.Digest{auth.Hash("secret")},
		AssertsUsers: true}}})
	if err != nil {
		t.Fatal(err)
	}

	p := &fakePlane{Index: fleet.New(), tasks: map[gozzard.TaskID]record.TaskResults{},
		ring: control.NewEventRing(100, time.Unix(1700000000, 0))}
	for i, agent := range []gozzard.AgentID{"a1", "a2"} {
		p.PutHost(fleet.Host{Info: gozzard.HostInfo{Agent: agent,
			Addrs: []gozzard.HostAddr{{IP: netip.AddrFrom4([4]byte{10, 0, 0, byte(i + 1)})}}, Hostname: "h",
			OS: "linux", Arch: "amd64", Version: "1"},
			Session: 1, Online: true, LastSeen: time.Unix(1700000000, 0)})
		p.Apply(agent, []gozzard.Status{
			{Key: gozzard.Key{Namespace: "shop", Name: "web"}, State: gozzard.StateRunning,
				Wanted: gozzard.StateRunning, Hosted: true, PID: 4711, CPU: 1.25, Mem: 2.5,
				StartedAt: 1700000000 - 90, ReportedAt: 1700000000, Version: "1.0",
				Labels: map[string]string{"tier": "front"}},
			{Key: gozzard.Key{Namespace: "游戏", Name: "网关服"}, State: gozzard.StateStopped, PID: -1,
				Message: "exit 1\n\x1b[31mred\u009b31m\u202e"},
		}, nil)
	}

	srv := httptest.NewServer(api.New(api.Options{Plane: p, Authenticate: blueking.ByHeaders(book),
		Challenge: blueking.AuthorizationHeader}))
	t.Cleanup(srv.Close)
	c := &cli{t: t, plane: p, dir: t.TempDir()}
	c.env = cliEnv{now: func() time.Time { return time.Unix(1700000000, 0) },
		lookup: func(string) (string, bool) { return "", false }}

	c.env.credentials = c.file("creds.json", `{"url":"`+srv.URL+
		`","bk_app_code":"app","bk_app_secret":"secret","bk_username":"me"}`)
	return c
}

func (c *cli) file(name, text string) string {
	path := filepath.Join(c.dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		c.t.Fatal(err)
	}
	return path
}

// run runs a command line and returns what it wrote and its exit code.
func (c *cli) run(ctx context.Context, args ...string) (stdout, stderr string, code int) {
	c.t.Helper()
	var out, errs bytes.Buffer
	env := c.env
	env.out, env.errs = &out, &errs
	path := env.credentials
	root := &cobra.Command{Use: "gozzard", SilenceUsage: true, SilenceErrors: true}
	root.AddGroup(&cobra.Group{ID: groupWatch, Title: "w"}, &cobra.Group{ID: groupOperate, Title: "d"},
		&cobra.Group{ID: groupAccess, Title: "e"},
		&cobra.Group{ID: groupUpgrade, Title: "k"})
	root.AddCommand(env.clientCommands()...)
	root.AddCommand(newVersionCommand(&env))
	root.SetArgs(args)
	root.SetOut(&out)
	env.credentials = path
	err := root.ExecuteContext(ctx)
	var ex *exitError
	switch {
	case err == nil:
	case errors.As(err, &ex):
		code = ex.code
		if ex.err != nil {
			errs.WriteString(ex.err.Error())
		}
	default:
		code = exitUsage
		errs.WriteString(err.Error())
	}

	if s := out.String() + errs.String(); strings.ContainsAny(s, "\x1b\u009b") && !env.terminal {
		c.t.Errorf("control codes without a terminal: %q", s)
	}

	return out.String(), errs.String(), code
}

func (c *cli) want(code int, stdout string, args ...string) {
	c.t.Helper()
	out, errs, got := c.run(c.t.Context(), args...)
	if got != code || !strings.Contains(out, stdout) {
		c.t.Errorf("gozzard %s\nexit %d, want %d\nstdout: %s\nwant:   %s\nstderr: %s", strings.Join(args, " "), got,
			code, out, stdout, errs)
	}
}

func TestPs(t *testing.T) {
	c := newCLI(t)
	out, _, code := c.run(t.Context(), "ps")
	want := `NAMESPACE  NAME    HOST        STATE    PID   HOSTED  CPU%  MEM%  UP
shop       web     0:10.0.0.1  running  4711  yes     1.2   2.5   1m30s
游戏       网关服  0:10.0.0.1  stopped  -     no      -     -     -
shop       web     0:10.0.0.2  running  4711  yes     1.2   2.5   1m30s
游戏       网关服  0:10.0.0.2  stopped  -     no      -     -     -
`
	if code != 0 || out != want {
		t.Errorf("exit %d\n%s\nwant\n%s", code, out, want)
	}

	c.want(0, "exit 1 [31mred31m\n", "ps", "网*", "-o", "wide", "--host", "10.0.0.1")
	c.want(0, "4711", "ps", "-n", "sh?p", "--state", "running", "--hosted")
	c.want(5, "", "ps", "nothing*")
	c.want(5, "", "ps", "web", "--hosted=false")
	c.want(0, "name: web", "ps", "web", "-o", "yaml")
	c.want(2, "", "ps", "-o", "xml")
	c.want(2, "", "ps", "--state", "up")
	c.want(2, "", "ps", "--host", "10.0.0.1/8")
	c.want(2, "", "ps", "--no-such-flag")
	out, errs, _ := c.run(t.Context(), "ps", "--limit", "1", "-o", "json")
	var page struct {
		Count     int
		Processes []struct{ Message string }
	}
	if err := json.Unmarshal([]byte(out), &page); err != nil || page.Count != 4 || len(page.Processes) != 1 ||
		!strings.Contains(errs, "1 of 4") {
		t.Errorf("json is %v %s %s", err, out, errs)
	}

	c.want(0, `exit 1\n\u001b[31mred\u009b31m`, "ps", "网关服", "-o", "json")
	c.plane.SetOnline("a1", false, time.Unix(1700000000, 0))
	c.want(0, "running*", "ps", "web")
}

func TestPsWatch(t *testing.T) {
	c := newCLI(t)
	ctx, cancel := context.WithTimeout(t.Context(), 700*time.Millisecond)
	defer cancel()
	out, _, code := c.run(ctx, "ps", "web", "--watch", "--interval", "100ms")
	if n := strings.Count(out, "NAMESPACE"); code != 0 || n < 2 {
		t.Errorf("exit %d, listed %d times", code, n)
	}
}

func TestStatus(t *testing.T) {
	c := newCLI(t)
	c.want(0, "process     shop:web\nhost        0:10.0.0.1 (a1)\nstate       running\n", "status", "web", "--host",
		"10.0.0.1")
	c.want(0, "0:10.0.0.2", "status", "web")
	c.want(3, "stopped", "status", "网关服")
	c.want(5, "", "status", "none")
	c.want(2, "", "status")
	c.plane.SetOnline("a1", false, time.Unix(1700000000, 0))
	c.want(3, "its host is offline", "status", "web", "--host", "0:10.0.0.1")
}

func TestOperate(t *testing.T) {
	c := newCLI(t)
	c.want(0, "start: 2 done of 2\n", "start", "web", "-n", "shop", "--all-hosts")
	c.want(0, "restart: 1 done of 1\n", "restart", "web", "--host", "10.0.0.1")
	c.want(0, "unregister: 1 done of 1\n", "unregister", "web", "-n", "shop", "--host", "10.0.0.1")
	c.want(5, "", "stop", "no-such-*", "--all-hosts")
	c.want(2, "", "stop", "web")
	c.want(2, "", "stop", "web", "--all-hosts", "--host", "10.0.0.1")
	c.want(2, "", "stop", "--all-hosts")
	c.want(2, "", "stop", "../etc", "--all-hosts")
	c.want(0, `"final": true`, "kill", "web", "--all-hosts", "-o", "json")
}

func TestOperateVerdicts(t *testing.T) {
	c := newCLI(t)

	fail := func(code gozzard.Code, only gozzard.AgentID) func(a *gozzard.Attempt) {
		return func(a *gozzard.Attempt) {
			if only == "" || a.Agent == only {
				a.State, a.Outcome = gozzard.AttemptFailed,
					gozzard.Outcome{Code: code, Message: "line 1\nline 2\x1b]0;x\x07"}
			}
		}
	}

	c.plane.outcome = fail(gozzard.CodeAlreadyRunning, "a1")
	c.want(0, "start: 2 done (1 already running) of 2\n", "start", "web", "--all-hosts")
	c.plane.outcome = fail(gozzard.CodeNotRunning, "")
	c.want(0, "stop: 2 done (2 not running before) of 2\n", "stop", "web", "--all-hosts")
	c.plane.outcome = fail(gozzard.CodeCommandFailed, "a2")
	c.want(6, "HOST        NAMESPACE  NAME  CODE            MESSAGE\n"+
		"0:10.0.0.2  shop       web   command_failed  line 1 line 2]0;x\nreload: 1 done, 1 failed of 2\n",
		"reload", "web", "--all-hosts")
	c.plane.outcome = fail(gozzard.CodeCheckFailed, "")
	c.want(1, "kill: 0 done, 2 failed of 2\n", "kill", "web", "--all-hosts")
}

func TestOperateStillRunning(t *testing.T) {
	c := newCLI(t)
	c.plane.outcome = func(a *gozzard.Attempt) { a.State, a.Outcome = gozzard.AttemptDispatched, gozzard.Outcome{} }
	_, errs, code := c.run(t.Context(), "start", "web", "--all-hosts", "--timeout", "200ms")
	if code != 7 || !strings.Contains(errs, "start: 0 done, 0 failed, 2 running of 2\n") ||
		!strings.Contains(errs, "gozzard task GSETASK:") {
		t.Errorf("exit %d: %s", code, errs)
	}

	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, errs, code = c.run(ctx, "start", "web", "--all-hosts")
	if code != 130 || !strings.Contains(errs, "the task continues; follow it with: gozzard task GSETASK:") {
		t.Errorf("exit %d: %s", code, errs)
	}

	out, _, code := c.run(t.Context(), "start", "web", "--all-hosts", "--detach")
	if code != 0 || !strings.HasPrefix(out, "GSETASK:") {
		t.Errorf("exit %d: %s", code, out)
	}

	id := strings.TrimSpace(out)
	c.want(0, "running", "task", id, "--detach")
	c.want(7, "", "task", id, "--timeout", "100ms")
	c.env.terminal = true
	_, errs, _ = c.run(t.Context(), "task", id, "--timeout", "100ms")
	if !strings.Contains(errs, "\r\x1b[Kstart: 0 done") {
		t.Errorf("progress on a terminal is %q", errs)
	}
}

func TestTask(t *testing.T) {
	c := newCLI(t)
	out, _, _ := c.run(t.Context(), "stop", "web", "--all-hosts", "--detach")
	c.want(0, "0:10.0.0.1  shop       web   stop    done     ok    -\n", "task", strings.TrimSpace(out))
	c.want(0, "stop: 2 done of 2\n", "task", strings.TrimSpace(out))
	c.want(0, "stop: 2 done of 2\n", "task", strings.TrimPrefix(strings.TrimSpace(out), "GSETASK:"))
	c.want(5, "", "task", "GSETASK:20200101000000:99")
	c.want(5, "", "task", "20200101000000:99")
	c.want(2, "", "task", "nonsense")
}

const definition = `namespace: shop
name: web
labels: {tier: front, biz: 3}
hosts:
  - {cloud: 0, ip: 10.0.0.1}
spec:
  identity: {proc_name: web, setup_path: /opt/web, pid_path: /opt/web/web.pid}
  control: {start_cmd: ./start.sh}
`

func TestRegister(t *testing.T) {
	c := newCLI(t)
	web := c.file("web.yaml", definition)
	c.want(0, "register web: 1 done of 1\n", "register", "-f", web)
	c.want(0, "register web: 2 done of 2\n", "register", "-f", web, "--host", "10.0.0.1", "--host", "a2")
	c.want(0, "register other: 1 done of 1\n", "register", "-f",
		c.file("two.yaml", definition+"---\n"+strings.Replace(definition, "name: web", "name: other", 1)))
	c.want(0, "register web: 1 done of 1\n", "register", "-f",
		c.file("web.json",
			`{"namespace":"shop","name":"web","hosts":[{"agent":"a1"}],
			"spec":{"identity":{"proc_name":"x","setup_path":"/x"}}}`))

	for name, text := range map[string]string{
		"misspelt":  strings.Replace(definition, "start_cmd", "start", 1),
		"duplicate": definition + "name: again\n",
		"no YAML":   "a: [",
		"a list":    "- a\n",
		"empty":     "---\n",
	} {
		out, errs, code := c.run(t.Context(), "register", "-f", c.file("bad.yaml", text))
		if code != exitUsage || errs == "" {
			t.Errorf("%s: exit %d %s %s", name, code, out, errs)
		}
	}

	_, errs, _ := c.run(t.Context(), "register", "-f",
		c.file("bad.yaml", strings.Replace(definition, "proc_name: web", "proc_nam: web", 1)))
	if !strings.Contains(errs, `spec.identity.proc_nam: unknown, did you mean "proc_name"?`) {
		t.Errorf("the fault is reported as %s", errs)
	}

	c.want(2, "", "register")
	c.want(2, "", "register", "-f", filepath.Join(c.dir, "none.yaml"))
}

func TestHosts(t *testing.T) {
	c := newCLI(t)
	c.want(0, "HOST        ONLINE  SEEN    NAME  SYSTEM       AGENT VERSION\n"+
		"0:10.0.0.1  yes     0s ago  h     linux/amd64  1\n", "hosts")
	c.want(0, `"count": 2`, "hosts", "-o", "json")
}

func TestFindingTheServer(t *testing.T) {
	c := newCLI(t)
	good := c.env.credentials
	c.env.credentials = ""
	t.Chdir(c.dir)
	c.want(2, "", "ps")
	c.env.lookup = func(name string) (string, bool) { return good, name == "GOZZARD_CREDENTIALS" }
	c.want(0, "web", "ps")
	c.want(2, "", "ps", "--credentials", filepath.Join(c.dir, "none.json"))
	c.env.lookup = func(string) (string, bool) { return "", false }

	if err := os.Mkdir("data", 0o700); err != nil {
		t.Fatal(err)
	}

	b, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}

	c.file("data/dev.json", string(b))
	c.want(0, "web", "ps")
	_, errs, code := c.run(t.Context(), "ps", "--url", "http://127.0.0.1:1")
	if code != 1 || !strings.Contains(errs, "no answer from http://127.0.0.1:1") {
		t.Errorf("exit %d: %s", code, errs)
	}

	c.want(2, "", "ps", "--url", "http://example.com")
	c.file("data/dev.json", strings.Replace(string(b), `"secret"`, `"wrong"`, 1))
	c.want(4, "", "ps")
	c.file("data/dev.json", `{`)
	c.want(2, "", "ps")
}

func TestVersion(t *testing.T) {
	c := newCLI(t)
	c.want(0, "gozzard "+version, "version")
	c.want(0, `"version": "`+version+`"`, "version", "-o", "json")
}

func TestCompletion(t *testing.T) {
	c := newCLI(t)
	c.want(0, "web\tshop\n", "__complete", "start", "w")
}

func seesAll(*record.Event) bool { return true }

// everybody is a caller with the role admin on everything.
var everybody = gozzard.Caller{Rights: gozzard.Everything()}
