package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/api"
	"github.com/gozzard/gozzard/internal/server"
)

// atStart is the time of these tests. It stands still.
var atStart = time.Unix(1700000000, 0)

// cli is the command line against the server of the program, whose two agents are here.
type cli struct {
	t   *testing.T
	env cliEnv
	dir string
	*agents
}

// agents are the fleet in the place of the fabric: they carry out at once what they receive, with an outcome that the
// test decides.
type agents struct {
	server.Parts
	receive func(from gozzard.AgentID, cloud int, r *gozzard.Report)
	inbox   chan func() // reports to the server

	mu      sync.Mutex
	outcome func(a *gozzard.OpReport, op *gozzard.Op, agent gozzard.AgentID) bool // false: no answer; nil: all is done
	log     func(q gozzard.LogQuery) gozzard.LogChunk
}

func (f *agents) Cut(gozzard.AgentID, int)     {}
func (f *agents) Flag(gozzard.AgentID) string  { return "" }
func (f *agents) Counts() gozzard.FabricCounts { return gozzard.FabricCounts{} }
func (f *agents) Addr() string                 { return "" }
func (f *agents) Close()                       {}

func (f *agents) Run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case report := <-f.inbox:
			report()
		}
	}
}

// Send has an agent carry out a command.
func (f *agents) Send(to gozzard.AgentID, cloud int, cmd *gozzard.Command) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := &gozzard.Report{Version: 1, Session: cmd.Session}
	switch cmd.Kind {
	case gozzard.CommandOperate:
		r.Kind, r.Journal = gozzard.ReportResults, gozzard.JournalPos{ID: [16]byte{1}, LSN: 1}
		for i := range cmd.Ops {
			op := &cmd.Ops[i]
			done := gozzard.OpReport{ID: op.ID, Ref: op.Ref, Phase: gozzard.PhaseDone,
				Outcome: gozzard.Outcome{Code: gozzard.CodeOK}}
			if f.outcome == nil || f.outcome(&done, op, to) {
				r.Results = append(r.Results, done)
			}
		}
	case gozzard.CommandLogs:
		chunk := f.log(*cmd.Logs)
		chunk.ID = cmd.Logs.ID
		r.Kind, r.Logs = gozzard.ReportLogs, &chunk
	default:
		return nil
	}

	f.inbox <- func() { f.receive(to, cloud, r) }
	return nil
}

// decide sets the outcome of the operations from now on.
func (f *agents) decide(outcome func(a *gozzard.OpReport, op *gozzard.Op, agent gozzard.AgentID) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.outcome = outcome
}

// report is what an agent says of its processes.
func (f *agents) report(agent gozzard.AgentID, all ...gozzard.Status) {
	f.receive(agent, 0, &gozzard.Report{Version: 1, Kind: gozzard.ReportStatus, Session: 1, Statuses: all})
}

func newCLI(t *testing.T) *cli {
	t.Helper()
	f := &agents{inbox: make(chan func(), 1000)}
	s, err := server.New(t.Context(), server.Options{
		Data: t.TempDir(), Listen: "127.0.0.1:0", Version: "1",
		FirstApp: server.FirstApp{Code: "app", Secret: "secret"}, Now: func() time.Time { return atStart },
		NewFabric: func(o server.FabricOptions) (server.Fabric, error) { f.receive = o.Receive; return f, nil },
		Fatal:     func(err error) { t.Errorf("fatal: %v", err) }, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	f.Parts = s.Parts()

	// Run the server until the test ends.
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})

	// Bring the fleet in: two hosts with two processes each.
	for i, agent := range []gozzard.AgentID{"a1", "a2"} {
		f.hello(t, agent, netip.AddrFrom4([4]byte{10, 0, 0, byte(i + 1)}))
	}

	c := &cli{t: t, dir: t.TempDir(), agents: f}
	c.env = cliEnv{now: func() time.Time { return atStart },
		lookup: func(string) (string, bool) { return "", false }}
	c.env.credentials = c.file("creds.json", `{"url":"`+s.URL()+
		`","bk_app_code":"app","bk_app_secret":"secret","bk_username":"me"}`)
	return c
}

// hello brings a host in, with two processes that are registered and reported.
func (f *agents) hello(t *testing.T, agent gozzard.AgentID, ip netip.Addr) {
	t.Helper()
	info := gozzard.HostInfo{Agent: agent, Addrs: []gozzard.HostAddr{{IP: ip}}, Hostname: "h", OS: "linux",
		Arch: "amd64", Version: "1"}
	f.receive(agent, 0, &gozzard.Report{Version: 1, Kind: gozzard.ReportHello, Session: 1,
		Journal: gozzard.JournalPos{ID: [16]byte{1}, LSN: 1}, Hello: &gozzard.Hello{Host: info}})
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		if h, ok := f.Fleet.Host(agent); ok && h.Online {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("%s does not come", agent)
		}
	}

	web, gateway := gozzard.Key{Namespace: "shop", Name: "web"}, gozzard.Key{Namespace: "游戏", Name: "网关服"}
	for _, key := range []gozzard.Key{web, gateway} {
		f.register(t, agent, key)
	}
	f.report(agent,
		gozzard.Status{Key: web, State: gozzard.StateRunning, Wanted: gozzard.StateRunning, Hosted: true, PID: 4711,
			CPU: 1.25, Mem: 2.5, StartedAt: 1700000000 - 90, ReportedAt: 1700000000, Version: "1.0",
			Labels: map[string]string{"tier": "front"}},
		gozzard.Status{Key: gateway, State: gozzard.StateStopped, PID: -1,
			Message: "exit 1\n\x1b[31mred\u009b31m\u202e"})
}

// register records a process of a host.
func (f *agents) register(t *testing.T, agent gozzard.AgentID, key gozzard.Key) {
	t.Helper()
	spec := &gozzard.Spec{Identity: gozzard.Identity{ProcName: key.Name, SetupPath: "/opt", PIDPath: "/run/p.pid",
		User: "root"}, Control: gozzard.Control{Start: "./start.sh", Stop: "./stop.sh"}, Policy: gozzard.DefaultPolicy()}
	task, err := f.Plane.Operate(t.Context(), &gozzard.Operation{Caller: everybody, Door: api.Door,
		Items: []gozzard.Item{{Action: gozzard.ActionRegister, Key: key, Spec: spec,
			Targets: []gozzard.Target{{Agent: agent, ResultKey: "x"}}}}})
	if err != nil {
		t.Fatal(err)
	}
	if r, err := f.Plane.Await(t.Context(), everybody, task.ID, time.Minute); err != nil || r.Open() > 0 {
		t.Fatalf("%s on %s was not registered: %v", key, agent, err)
	}
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
	want := `NAMESPACE  NAME    HOST        STATE    PID   RESTARTS  CPU(HOST)  MEM   UPTIME
shop       web     0:10.0.0.1  running  4711  0         1.2%       2.5%  1m30s
shop       web     0:10.0.0.2  running  4711  0         1.2%       2.5%  1m30s
游戏       网关服  0:10.0.0.1  stopped  -     0         -          -     -
游戏       网关服  0:10.0.0.2  stopped  -     0         -          -     -
`
	if code != 0 || out != want {
		t.Errorf("exit %d\n%s\nwant\n%s", code, out, want)
	}

	c.want(0, "exit 1 [31mred31m\n", "ps", "网*", "-o", "wide", "--host", "10.0.0.1")
	c.want(0, "4711", "ps", "-n", "sh?p", "--state", "running", "--hosted")
	c.want(5, "", "ps", "nothing*")
	c.want(5, "", "ps", "web", "--managed=false")
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
	c.Fleet.SetOnline("a1", false, atStart)
	c.want(0, "unknown (was running)", "ps", "web")
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
	c.want(0, "process     shop:web\nhost        0:10.0.0.1 (a1)\nstate       running for 1m30s\n", "status", "web", "--host",
		"10.0.0.1")
	c.want(0, "command     ./start.sh\nfolder      /opt\nuser        root\n", "status", "web", "--host", "a1")
	c.want(0, "output cannot be shown: ", "status", "web", "--host", "a1") // the host of this test has no log
	c.want(0, "processes   2 on 2 hosts\nstates      2 running\nrestarts    0\nversions    1.0 (2)\n\nNAMESPACE ", "status",
		"web")
	c.want(0, "0:10.0.0.2", "status", "web")
	c.want(3, "stopped", "status", "网关服")
	c.want(5, "", "status", "none")
	c.want(2, "", "status")
	c.Fleet.SetOnline("a1", false, atStart)
	c.want(3, "unknown (was running): its host does not report, for 0s", "status", "web", "--host", "0:10.0.0.1")
}

func TestOperate(t *testing.T) {
	c := newCLI(t)
	c.want(0, "start: 2 done of 2\n", "start", "web", "-n", "shop", "--all-hosts")
	c.want(0, "restart: 1 done of 1\n", "restart", "web", "--host", "10.0.0.1")
	c.want(2, "", "stop", "web") // it is on two hosts
	c.want(0, "unregister: 1 done of 1\n", "unregister", "web", "-n", "shop", "--host", "10.0.0.1")
	c.want(5, "", "stop", "no-such-*", "--all-hosts")
	c.want(0, "stop: 1 done of 1\n", "stop", "web") // the only host that is left
	c.want(2, "", "stop", "web", "--all-hosts", "--host", "10.0.0.1")
	c.want(2, "", "stop", "--all-hosts")
	c.want(2, "", "stop", "../etc", "--all-hosts")
	c.want(0, `"final": true`, "kill", "web", "--all-hosts", "-o", "json")
}

func TestOperateVerdicts(t *testing.T) {
	c := newCLI(t)

	fail := func(code gozzard.Code, only gozzard.AgentID) func(*gozzard.OpReport, *gozzard.Op, gozzard.AgentID) bool {
		return func(a *gozzard.OpReport, _ *gozzard.Op, agent gozzard.AgentID) bool {
			if only == "" || agent == only {
				a.Outcome = gozzard.Outcome{Code: code, Message: "line 1\nline 2\x1b]0;x\x07"}
			}
			return true
		}
	}

	c.decide(fail(gozzard.CodeAlreadyRunning, "a1"))
	c.want(0, "start: 2 done (1 already running) of 2\n", "start", "web", "--all-hosts")
	c.decide(func(a *gozzard.OpReport, _ *gozzard.Op, agent gozzard.AgentID) bool {
		a.Outcome = gozzard.Outcome{Code: gozzard.CodeAlreadyRunning, Message: "already running: web"}
		if agent == "a2" {
			a.Outcome.Message += "; " + gozzard.SupervisedNow
		}
		return true
	})
	c.want(0, "start: 2 done (2 already running, 1 of them supervised from now on) of 2\n", "start", "web",
		"--all-hosts")
	c.decide(fail(gozzard.CodeNotRunning, ""))
	c.want(0, "stop: 2 done (2 not running before) of 2\n", "stop", "web", "--all-hosts")
	c.decide(fail(gozzard.CodeCommandFailed, "a2"))
	c.want(6, "HOST        NAMESPACE  NAME  CODE            MESSAGE\n"+
		"0:10.0.0.2  shop       web   command_failed  line 1 line 2]0;x\nreload: 1 done, 1 failed of 2\n",
		"reload", "web", "--all-hosts")
	c.decide(fail(gozzard.CodeCheckFailed, ""))
	c.want(1, "kill: 0 done, 2 failed of 2\n", "kill", "web", "--all-hosts")
}

func TestOperateStillRunning(t *testing.T) {
	c := newCLI(t)
	c.decide(func(*gozzard.OpReport, *gozzard.Op, gozzard.AgentID) bool { return false })
	_, errs, code := c.run(t.Context(), "start", "web", "--all-hosts", "--timeout", "1500ms") // a poll takes 1 s
	if code != 7 || !strings.Contains(errs, "start: 0 done, 0 failed, 2 running of 2\n") ||
		!strings.Contains(errs, "gozzard task 20") {
		t.Errorf("exit %d: %s", code, errs)
	}

	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, errs, code = c.run(ctx, "start", "web", "--all-hosts")
	if code != 130 || !strings.Contains(errs, "the task continues; follow it with: gozzard task 20") {
		t.Errorf("exit %d: %s", code, errs)
	}

	out, _, code := c.run(t.Context(), "start", "web", "--all-hosts", "--detach")
	if code != 0 || !strings.HasPrefix(out, "20") {
		t.Errorf("exit %d: %s", code, out)
	}

	id := strings.TrimSpace(out)
	c.want(0, "running", "task", id, "--detach")
	c.want(7, "", "task", id, "--timeout", "100ms")
	c.env.terminal = true
	_, errs, _ = c.run(t.Context(), "task", id, "--timeout", "1500ms")
	if !strings.Contains(errs, "\r\x1b[Kstart: 0 done") {
		t.Errorf("progress on a terminal is %q", errs)
	}
}

func TestTask(t *testing.T) {
	c := newCLI(t)
	out, _, _ := c.run(t.Context(), "stop", "web", "--all-hosts", "--detach")
	c.want(0, "0:10.0.0.1  shop       web   stop    done     ok    -\n", "task", strings.TrimSpace(out))
	c.want(0, "stop: 2 done of 2\n", "task", strings.TrimSpace(out))
	c.want(0, "stop: 2 done of 2\n", "task", "GSETASK:"+strings.TrimSpace(out))
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
	c.want(0, "register web: 1 done of 1 (1 changed)\n", "register", "-f", web)
	c.want(0, "register web: 2 done of 2 (1 changed, 1 unchanged)\n", "register", "-f", web, "--host", "10.0.0.1", "--host", "a2")
	c.want(0, "register other: 1 done of 1 (1 new)\n", "register", "-f",
		c.file("two.yaml", definition+"---\n"+strings.Replace(definition, "name: web", "name: other", 1)))
	c.want(0, "register web: 1 done of 1 (1 changed)\n", "register", "-f",
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

// everybody is a caller with the role admin on everything.
var everybody = gozzard.Caller{App: "app", User: "me", Rights: gozzard.Everything()}
