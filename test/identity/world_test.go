//go:build linux

package identity_test

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/internal/policy"
	"github.com/gozzard/gozzard/internal/procfs"
	ft "github.com/gozzard/gozzard/test/fleettest"
)

// These tests mostly wait, so more of them run at the same time than the machine has processors.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "12"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	ft.Main(m)
}

// ordinary is the account of an agent without privileges when root runs the tests.
const ordinary = "nobody"

// namespace is that of all definitions of these tests.
const namespace = "identity"

// environment is a way in which an agent can run.
type environment struct {
	name    string
	account string // of the agent
	unmount string // this folder is not mounted for the agent: cgroup version 2
}

// environments lists all ways that this account can try. Root tries all three.
func environments(t *testing.T) []environment {
	t.Helper()
	if os.Geteuid() != 0 {
		u, err := user.Current()
		if err != nil {
			t.Fatal(err)
		}
		return []environment{{name: "user", account: u.Username}}
	}

	for _, tool := range []string{"unshare", "setpriv"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Fatalf("these tests need util-linux: %v", err)
		}
	}
	unified, err := procfs.New("/proc").Cgroup2Mount()
	if err != nil || unified == "" {
		t.Fatalf("these tests need cgroup version 2: %q, %v", unified, err)
	}

	return []environment{{name: "v2", account: "root"}, {name: "v1", account: "root", unmount: unified},
		{name: "user", account: ordinary}}
}

// wrap is the command through which an agent starts. boot is a file that hides the boot id of the kernel, "" for none.
func (e environment) wrap(t *testing.T, boot string) []string {
	t.Helper()
	if os.Geteuid() != 0 {
		return nil
	}

	var steps []string
	if e.unmount != "" {
		steps = append(steps, "umount -l '"+e.unmount+"'")
	}
	if boot != "" {
		steps = append(steps, "mount --bind '"+boot+"' /proc/sys/kernel/random/boot_id")
	}
	steps = append(steps, `exec "$@"`)

	wrap := []string{"unshare", "--mount", "--propagation", "private", "sh", "-c", strings.Join(steps, " && "), "sh"}
	if e.account != "root" {
		c := ft.Credential(t, e.account)
		wrap = append(wrap, "setpriv", fmt.Sprintf("--reuid=%d", c.Uid), fmt.Sprintf("--regid=%d", c.Gid),
			"--clear-groups")
	}

	return wrap
}

// world is an agent in one environment with its server.
type world struct {
	environment
	t     *testing.T
	s     *ft.Server
	api   *ft.API
	own   *client.Client
	agent *ft.AgentHome
	n     int // the host is 127.0.0.n
}

// each runs a test in every environment at the same time, with one server and an agent for each.
func each(t *testing.T, test func(w *world)) {
	t.Helper()
	t.Parallel()
	reportAtEnd(t)
	s := ft.StartServer(t, "")
	for i, e := range environments(t) {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			test(newWorld(t, s, e, i+1))
		})
	}
}

// reportAtEnd prints the line of the fault.
func reportAtEnd(t *testing.T) {
	var names []string
	for _, e := range environments(t) {
		names = append(names, e.name)
	}
	t.Cleanup(func() {
		if !t.Failed() {
			id, _ := strings.CutPrefix(t.Name(), "Test")
			fmt.Printf("fault %s %s: holds in the environments %s\n", id[:3], id[3:], strings.Join(names, ", "))
		}
	})
}

func newWorld(t *testing.T, s *ft.Server, e environment, n int) *world {
	t.Helper()
	w := &world{environment: e, t: t, s: s, api: s.API.For(t), n: n}
	w.agent = s.StartAgentAs(t, n, e.account, nil, policy.Permissive, e.wrap(t, "")...)
	own, err := client.New(s.Cred.URL, client.Credentials{AppCode: s.Cred.AppCode, AppSecret: s.Cred.Secret,
		Username: s.Cred.Username})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(own.Close)
	w.own = own
	return w
}

// restart ends the agent with a signal and starts it again. SIGUSR2 makes it replace itself.
func (w *world) restart(sig syscall.Signal) {
	w.t.Helper()
	if sig != syscall.SIGUSR2 {
		w.agent.Kill(sig)
		w.again()
		return
	}

	before := w.agent.Sessions()
	if err := syscall.Kill(w.agent.PID(), sig); err != nil {
		w.t.Fatal(err)
	}
	ft.Until(w.t, time.Minute, w.agent.Output, func() bool { return w.agent.Sessions() > before })
}

// again starts an agent that has ended.
func (w *world) again() {
	w.t.Helper()
	w.s.AgainOnline(w.t, w.agent.Program)
}

// proc is a definition with a folder of its own.
type proc struct {
	*ft.Daemon
	w       *world
	name    string // of the definition
	program string // of the main process
	spec    ft.J
	isMain  func(pid int) bool // nil: the main process is the one with the name of the program
	native  bool               // operations go through our own door, which knows more than BlueKing's
}

var folders atomic.Int64

// daemon makes a definition whose program is a renamed sleep with a pid file. At the end of the test the agent ends
// first, then everything that runs in the folder.
func (w *world) daemon(name, program string) *proc {
	w.t.Helper()
	root := filepath.Join(w.agent.Dir, "procs", strconv.FormatInt(folders.Add(1), 10))
	d := ft.NewDaemon(w.t, root, program)
	d.User = w.account
	p := &proc{Daemon: d, w: w, name: name, program: program, spec: d.Spec(nil)}
	w.agent.Chown(w.t, d.Dir)
	w.t.Cleanup(func() {
		w.agent.Kill(syscall.SIGKILL)
		ft.KillIn(w.t, d.Dir)
	})
	return p
}

// copyOf puts a program of the machine under another name into the folder.
func (p *proc) copyOf(program, name string) {
	p.w.t.Helper()
	ft.CopyProgram(p.w.t, program, filepath.Join(p.Dir, name))
}

// part is a part of the definition: identity, control or monitor_policy.
func (p *proc) part(name string) ft.J { return p.spec[name].(ft.J) }

// with is the definition with another value in one of its parts.
func (p *proc) with(part, field string, value any) ft.J {
	out := ft.J{}
	for name, v := range p.spec {
		fields, ok := v.(ft.J)
		if !ok {
			out[name] = v
			continue
		}
		c := ft.J{}
		for k, x := range fields {
			c[k] = x
		}
		out[name] = c
	}
	out[part].(ft.J)[field] = value
	return out
}

// without removes commands from the definition.
func (p *proc) without(commands ...string) *proc {
	for _, c := range commands {
		delete(p.part("control"), c+"_cmd")
	}
	return p
}

func (p *proc) meta() ft.J { return ft.J{"namespace": namespace, "name": p.name} }

// The operations by their numbers.
const (
	opStart   = 0
	opStop    = 1
	opHost    = 3
	opUnhost  = 4
	opRestart = 7
	opReload  = 8
	opKill    = 9
)

// actions are their names on our own door.
var actions = map[int]string{opStart: "start", opStop: "stop", opHost: "host", opUnhost: "unhost",
	opRestart: "restart", opReload: "reload", opKill: "kill"}

// numbers are the codes of our own door as BlueKing's door has them.
var numbers = map[gozzard.Code]int{"": 0, gozzard.CodeOK: 0, gozzard.CodeAlreadyRunning: 828,
	gozzard.CodeNotRunning: 829, gozzard.CodeCheckFailed: 836, gozzard.CodeCommandFailed: 65535,
	gozzard.CodeRefused: 65535, gozzard.CodeInterrupted: 65535}

// begin sends an operation with the definition and returns its task.
func (p *proc) begin(op int, spec ft.J) string {
	p.w.t.Helper()
	return p.w.api.Operate("operate_proc_v2", ft.J{"meta": p.meta(), "op_type": op, "spec": spec,
		"hosts": []ft.J{{"ip": p.w.ip(), "bk_cloud_id": 0}}})
}

// end waits for the verdict of a task.
func (p *proc) end(task string) ft.Entry {
	p.w.t.Helper()
	return p.w.api.Await(task)["0:"+p.w.ip()+":"+namespace+":"+p.name]
}

// op runs an operation with the definition.
func (p *proc) op(op int) ft.Entry {
	p.w.t.Helper()
	if !p.native {
		return p.end(p.begin(op, p.spec))
	}
	a := p.operate(actions[op])
	if _, known := numbers[a.Code]; !known {
		p.w.t.Fatalf("%s of %s: %+v", actions[op], p.name, a)
	}
	return ft.Entry{Code: numbers[a.Code], Msg: a.Message}
}

// must is op whose answer must be one of the codes.
func (p *proc) must(op int, codes ...int) ft.Entry {
	p.w.t.Helper()
	e := p.op(op)
	if !slices.Contains(codes, e.Code) {
		p.w.t.Fatalf("%s, operation %d: wanted %v, got %+v", p.name, op, codes, e)
	}
	return e
}

// startAll starts processes, those of BlueKing's door in one task.
func (w *world) startAll(ps ...*proc) {
	w.t.Helper()
	var items []ft.J
	for _, p := range ps {
		if p.native {
			p.registered(p.spec)
			p.must(opStart, 0)
			continue
		}
		items = append(items, ft.J{"meta": p.meta(), "op_type": opStart, "spec": p.spec,
			"hosts": []ft.J{{"ip": w.ip(), "bk_cloud_id": 0}}})
	}
	if len(items) == 0 {
		return
	}

	for k, e := range w.api.Await(w.api.Operate("operate_proc_multi", ft.J{"proc_operate_req": items})) {
		if e.Code != 0 {
			w.t.Fatalf("start of %s: %+v", k, e)
		}
	}
}

// update replaces the definition by BlueKing's door. Nothing is started or stopped by it.
func (p *proc) update(spec ft.J) ft.Entry {
	p.w.t.Helper()
	out := map[string]ft.Entry{}
	p.w.api.OK("update_proc_info", ft.J{"meta": p.meta(), "hosts": []ft.J{ft.Host(p.w.n)}, "spec": spec}, &out)
	for _, e := range out {
		return e
	}
	p.w.t.Fatalf("update_proc_info of %s has no answer", p.name)
	return ft.Entry{}
}

func (w *world) ip() string { return "127.0.0." + strconv.Itoa(w.n) }

// status is what the server shows of the process.
func (p *proc) status() ft.Info {
	p.w.t.Helper()
	rows := p.w.api.Status(namespace, p.name, ft.Host(p.w.n))
	if len(rows) != 1 {
		p.w.t.Fatalf("status of %s has %d rows", p.name, len(rows))
	}
	return rows[0]
}

// runs reports whether the status says that the process runs with this pid.
func (p *proc) runs(pid int) bool {
	st := p.status()
	return pid > 0 && st.Status == 1 && st.PID == pid
}

// awaitRuns waits until the status says that the process runs with this pid.
func (p *proc) awaitRuns(when string, pid int) {
	p.w.t.Helper()
	p.await(when+": the status does not say that it runs as "+strconv.Itoa(pid), func() bool { return p.runs(pid) })
}

// await waits for a condition and shows the status if it does not come.
func (p *proc) await(words string, cond func() bool) {
	p.w.t.Helper()
	ft.Until(p.w.t, 30*time.Second, func() string {
		st := p.status()
		return fmt.Sprintf("%s: %s: status %d, pid %d, hosted %v, message %q, calls %v, processes %v", p.name, words,
			st.Status, st.PID, st.IsAuto, st.Message, p.Calls(), named(p.live()))
	}, slowly(cond))
}

// slowly asks for a condition less often, because it looks at all processes of the machine.
func slowly(cond func() bool) func() bool {
	return func() bool {
		if cond() {
			return true
		}
		time.Sleep(100 * time.Millisecond)
		return false
	}
}

// live lists the processes in the folder.
func (p *proc) live() []int { p.w.t.Helper(); return ft.ProcessesIn(p.w.t, p.Dir) }

// mains lists the live copies of the main process.
func (p *proc) mains() []int {
	p.w.t.Helper()
	if p.isMain == nil {
		return p.called(p.program)
	}
	return slices.DeleteFunc(p.live(), func(pid int) bool { return !p.isMain(pid) })
}

// called lists the live processes in the folder with a name.
func (p *proc) called(name string) []int {
	p.w.t.Helper()
	return slices.DeleteFunc(p.live(), func(pid int) bool { return ft.CommOf(pid) != name })
}

// main is the pid of the only copy of the main process.
func (p *proc) main() int {
	p.w.t.Helper()
	pids := p.mains()
	if len(pids) != 1 {
		p.w.t.Fatalf("%s: wanted one %s, got %v", p.name, p.program, named(p.live()))
	}
	return pids[0]
}

// named shows pids with their names.
func named(pids []int) (out []string) {
	for _, pid := range pids {
		out = append(out, fmt.Sprintf("%d %s", pid, ft.CommOf(pid)))
	}
	return out
}

// holds checks that a condition stays true for a while.
func (w *world) holds(words string, d time.Duration, cond func() (string, bool)) {
	w.t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if got, ok := cond(); !ok {
			w.t.Fatalf("%s: %s", words, got)
		}
	}
}

// untouched checks for a while that the process has not been ended, started or lost sight of.
func (p *proc) untouched(when string, pid int, d time.Duration) {
	p.w.t.Helper()
	starts, stops := p.Count("start"), p.Count("stop")
	p.awaitRuns(when, pid)
	p.w.holds(p.name+": "+when, d, func() (string, bool) {
		st := p.status()
		got := fmt.Sprintf("pid was %d: status %d, pid %d, message %q, calls %v, processes %v", pid, st.Status, st.PID,
			st.Message, p.Calls(), named(p.live()))
		return got, ft.CommOf(pid) != "" && st.PID == pid && st.Status == 1 && len(p.mains()) <= 1 &&
			p.Count("start") == starts && p.Count("stop") == stops
	})
	p.awaitRuns(when, pid)
}

// kill ends a process of the test.
func (w *world) kill(pid int) {
	w.t.Helper()
	ft.KillPID(w.t, pid)
}
