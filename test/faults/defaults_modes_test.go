//go:build linux

package faults_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gozzard/gozzard/internal/procfs"
	ft "github.com/gozzard/gozzard/test/fleettest"
)

// leastPrivilege: one program runs in three modes. It knows its mode, reports it and stays within it.
func leastPrivilege(t *testing.T, f *plainFleet) {
	needs(t, "setpriv")
	var page hostPage
	if err := json.Unmarshal([]byte(f.gozzard(t, "hosts", "-o", "json")), &page); err != nil ||
		len(page.Hosts) == 0 || page.Hosts[0].Mode != "root" {
		t.Errorf("an agent of root: %+v, %v", page, err)
	}

	if !strings.Contains(f.agent.Output(), `"mode":"root"`) {
		t.Error("the agent's log does not say its mode")
	}
	if out := f.gozzard(t, "agent", "doctor", "--data", f.state); !strings.Contains(out, "mode          root: ") {
		t.Errorf("doctor: %s", out)
	}

	t.Run("user", modeUser)
	t.Run("cap", modeCap)
}

type hostPage struct {
	Hosts []struct {
		Mode     string
		Degraded []string
	}
}

// accountAgent is an agent of an ordinary account with its server.
type accountAgent struct {
	t *testing.T
	s *ft.Server
	*ft.AgentHome
	group string // the delegated cgroup
}

func startAccountAgent(t *testing.T, account string, caps []uintptr, rules string) *accountAgent {
	t.Helper()
	s := ft.StartServer(t, "")
	return &accountAgent{t: t, s: s, AgentHome: s.StartAgentAs(t, 1, account, caps, rules)}
}

// daemon makes a daemon that an account may run.
func (l *accountAgent) daemon(name, account string) *ft.Daemon {
	l.t.Helper()
	d := ft.NewDaemon(l.t, l.Dir, name)
	d.User = account
	if account != "root" && account != "" {
		ft.Chown(l.t, d.Dir, account)
	}
	endFirst(l.t, l.Program)
	return d
}

// says is the mode of the host and its restrictions, as the server shows them.
func (l *accountAgent) says() (mode, degraded string) {
	l.t.Helper()
	cmd := exec.Command(ft.Binary(l.t), "hosts", "-o", "json", "--credentials",
		filepath.Join(l.s.Data, "credentials.json"))
	out, err := cmd.Output()
	var page hostPage
	if err != nil || json.Unmarshal(out, &page) != nil || len(page.Hosts) != 1 {
		l.t.Fatalf("%s, %v", out, err)
	}
	return page.Hosts[0].Mode, strings.Join(page.Hosts[0].Degraded, "; ")
}

// doctor runs `gozzard agent doctor` as the agent's account.
func (l *accountAgent) doctor(caps []uintptr, args ...string) string {
	l.t.Helper()
	cmd := exec.Command(filepath.Join(l.Dir, "gozzard"),
		append([]string{"agent", "doctor", "--data", l.State}, args...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: ft.Credential(l.t, l.Account), AmbientCaps: caps}
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		l.t.Fatal(err)
	}
	return string(out)
}

// as runs an operation with another account in its definition.
func (l *accountAgent) as(d *ft.Daemon, account string, op int) ft.Entry {
	l.t.Helper()
	other := *d
	other.User = account
	return operate(l.t, l.s.API, &other, op, other.Spec(nil))
}

// refuses checks that an operation is rejected in one line that contains words, and that nothing was run for it.
func (l *accountAgent) refuses(d *ft.Daemon, account, words string) {
	l.t.Helper()
	before := len(d.Calls())
	e := l.as(d, account, 0)
	if e.Code != 65535 || !strings.HasPrefix(e.Msg, "permission: ") || !strings.Contains(e.Msg, words) ||
		strings.Contains(e.Msg, "\n") {
		l.t.Errorf("start as %q: %+v", account, e)
	}
	if len(d.Calls()) != before {
		l.t.Errorf("start as %q was run: %v", account, d.Calls())
	}
}

// lives checks a daemon through the usual events: it starts, it is killed, its agent is killed, the agent stops it.
func (l *accountAgent) lives(d *ft.Daemon, uid uint32) {
	l.t.Helper()
	must(l.t, operate(l.t, l.s.API, d, 0, d.Spec(nil)), 0)
	l.runsAs(d, uid)

	if path, err := procfs.New("/proc").Cgroup(d.PID()); err != nil || l.group != "" &&
		!strings.HasPrefix(path, "/"+l.group+"/gozzard/") {
		l.t.Errorf("the process is in %s, %v", path, err)
	}

	cameBack(l.t, d)
	pid := d.PID()
	l.Kill(syscall.SIGKILL)
	l.s.AgainOnline(l.t, l.Program)

	ft.Until(l.t, time.Minute, func() string { return "the process is not found again" }, func() bool {
		rows := l.s.Status("faults", d.Name, ft.Host(1))
		return len(rows) == 1 && rows[0].PID == pid && rows[0].Status == 1
	})

	must(l.t, operate(l.t, l.s.API, d, 1, d.Spec(nil)), 0)
	must(l.t, operate(l.t, l.s.API, d, 0, d.Spec(nil)), 0)
	bare := d.Spec(nil)
	delete(bare["control"].(ft.J), "kill_cmd")
	must(l.t, operate(l.t, l.s.API, d, 9, bare), 0)

	if d.PID() > 0 {
		l.t.Errorf("%s runs after it was killed", d.Name)
	}
}

// runsAs checks the account of the process, and that it has none of its agent's privileges.
func (l *accountAgent) runsAs(d *ft.Daemon, uid uint32) {
	l.t.Helper()
	has, err := procfs.New("/proc").Credentials(d.PID())
	if err != nil {
		l.t.Fatal(err)
	}
	if has.UIDs != [4]uint32{uid, uid, uid, uid} {
		l.t.Errorf("%s runs as %v, not %d", d.Name, has.UIDs, uid)
	}
	if uid == 0 {
		return
	}
	if score, err := os.ReadFile(fmt.Sprintf("/proc/%d/oom_score_adj", d.PID())); err != nil || string(score) != "0\n" {
		l.t.Errorf("%s has the place %s when memory is short, %v", d.Name, score, err)
	}
	if all := has.Effective | has.Permitted | has.Inheritable | has.Ambient; all != 0 || !has.NoNewPrivs {
		l.t.Errorf("%s has the capabilities %#x, NoNewPrivs %v", d.Name, all, has.NoNewPrivs)
	}
	if gid := ft.Credential(l.t, d.User).Gid; has.GIDs != [4]uint32{gid, gid, gid, gid} ||
		!slices.Equal(has.Groups, []uint32{gid}) {
		l.t.Errorf("%s has the groups %v and %v", d.Name, has.GIDs, has.Groups)
	}
}

func modeUser(t *testing.T) {
	t.Parallel()
	l := startAccountAgent(t, "nobody", nil,
		`{allow_root: true, users: ["*"], deny_uids: "", path_prefixes: ["/"], trusted_paths: false}`)
	uid := ft.Credential(t, "nobody").Uid

	if mode, degraded := l.says(); mode != "user" || !strings.Contains(degraded, "commands run as nobody only") {
		t.Errorf("mode %q, %s", mode, degraded)
	}
	if out := l.doctor(nil); !strings.Contains(out, "mode          user, as nobody: ") ||
		strings.Contains(out, "FAIL") {
		t.Errorf("doctor: %s", out)
	}

	d := l.daemon("gzuser", "nobody")
	for _, account := range []string{"root", "daemon", "no-such-account"} { // whatever its policy allows
		l.refuses(d, account,
			"this agent runs as nobody in mode user; name that account, or run the agent as root (gozzard-agent.service) or with capabilities (gozzard-agent-cap.service)")
	}

	group := l.delegated("")
	if group == nil {
		l.lives(d, uid)
		return
	}

	if _, degraded := l.says(); !strings.Contains(degraded, "is not delegated to this account") {
		t.Errorf("no group was delegated: %s", degraded)
	}

	l.enter(group)
	l.lives(d, uid)
}

// enter starts the agent again in a cgroup that was delegated to it.
func (l *accountAgent) enter(group *os.File) {
	l.t.Helper()
	l.Kill(syscall.SIGKILL)
	l.Enter(group)
	l.s.AgainOnline(l.t, l.Program)
	if _, degraded := l.says(); strings.Contains(degraded, "no usable cgroup v2") {
		l.t.Errorf("in a delegated group: %s", degraded)
	}
}

// delegated makes a cgroup that belongs to the agent's account, as systemd does for Delegate=yes and
// DelegateSubgroup=inside. It returns nil if there are no cgroups.
func (l *accountAgent) delegated(inside string) *os.File {
	l.t.Helper()
	root, err := procfs.New("/proc").Cgroup2Mount()
	if err != nil || root == "" {
		l.t.Log("no cgroup v2 here")
		return nil
	}

	dir := filepath.Join(root, "gozzard-modes-"+l.Account+"-"+strconv.Itoa(os.Getpid()))
	if err := os.Mkdir(dir, 0o755); err != nil {
		l.t.Logf("no cgroup can be made here: %v", err)
		return nil
	}

	l.t.Cleanup(func() {
		_ = os.WriteFile(filepath.Join(dir, "cgroup.kill"), []byte("1"), 0)
		ft.Until(l.t, time.Minute, func() string { return "cannot remove " + dir },
			func() bool { return removeGroups(dir) == nil })
	})

	for _, name := range []string{"", "cgroup.procs", "cgroup.subtree_control", "cgroup.threads"} {
		l.Chown(l.t, filepath.Join(dir, name))
	}

	l.group = filepath.Base(dir)

	if inside != "" {
		dir := filepath.Join(dir, inside)
		if err := os.Mkdir(dir, 0o755); err != nil {
			l.t.Fatal(err)
		}
		l.Chown(l.t, dir)
		l.Chown(l.t, filepath.Join(dir, "cgroup.procs"))
	}

	group, err := os.Open(filepath.Join(dir, inside))
	if err != nil {
		l.t.Fatal(err)
	}

	l.t.Cleanup(func() { _ = group.Close() })
	return group
}

func removeGroups(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.IsDir() {
			if err := removeGroups(filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	return syscall.Rmdir(dir)
}

func modeCap(t *testing.T) {
	t.Parallel()

	rules := func(allowRoot bool) string {
		return fmt.Sprintf(`{allow_root: %v, users: ["*"], deny_uids: "", path_prefixes: [/tmp]}`, allowRoot)
	}

	l := startAccountAgent(t, "daemon", ft.AgentCaps, rules(false))
	if mode, degraded := l.says(); mode != "cap" || !strings.Contains(degraded, "mode cap") {
		t.Errorf("mode %q, %s", mode, degraded)
	}
	if out := l.doctor(ft.AgentCaps, "--policy", l.Rules); !strings.Contains(out, "mode          cap, as daemon: ") ||
		strings.Contains(out, "FAIL") {
		t.Errorf("doctor: %s", out)
	}

	d := l.daemon("gzcap", "nobody")
	if err := os.Chmod(d.Dir, 0o700); err != nil { // the agent's account may not read it
		t.Fatal(err)
	}

	// The output of the command is not a file of its account, and it can still open it.
	d.Script("stop.sh", "set -e; echo bye >/dev/stdout\necho stop >> calls\nkill $(cat "+d.PIDFile()+")")
	// As the unit does. The commands must not inherit the agent's OOM score.
	l.Through("sh", "-c", `echo 500 >/proc/self/oom_score_adj; exec setpriv --no-new-privs -- "$@"`, "sh")

	if group := l.delegated("agent"); group != nil {
		l.enter(group)
	}

	l.lives(d, ft.Credential(t, "nobody").Uid)
	l.refuses(d, "root", "account root is not allowed by local policy (allow_root in "+l.Rules+")")
	l.refuses(d, "daemon", "account daemon is the agent's own, in mode cap")

	sessions := l.Sessions() // a program that takes over runs in the same mode

	if err := syscall.Kill(l.PID(), syscall.SIGUSR2); err != nil {
		t.Fatal(err)
	}

	ft.Until(t, time.Minute, l.Output, func() bool { return l.Sessions() > sessions })
	program := filepath.Join(l.Dir, "gozzard")
	l.Chown(t, program) // a program that the agent's account could have written does not take over

	if err := syscall.Kill(l.PID(), syscall.SIGUSR2); err != nil {
		t.Fatal(err)
	}

	ft.Until(t, time.Minute, l.Output, func() bool { return strings.Contains(l.Output(), "hand-over rejected") })
	ft.Chown(t, program, "root")
	l.WriteRules(t, rules(true)) // only the policy keeps the account from root
	r := l.daemon("gzcaproot", "root")
	must(t, operate(t, l.s.API, r, 0, r.Spec(nil)), 0)
	l.runsAs(r, 0)
	must(t, operate(t, l.s.API, r, 9, r.Spec(nil)), 0)

	l.Kill(syscall.SIGKILL)

	theirs := func(path string) func(*testing.T) {
		return func(t *testing.T) {
			l.Chown(t, path)
			defer ft.Chown(t, path, "root")
			l.Again()
			ended(t, l.Program, "only root may be able to write it")
		}
	}

	t.Run("no policy of its own account", theirs(l.Rules))
	t.Run("no program of its own account", theirs(program))
	t.Run("no folder of its own account on the way", theirs(l.Dir))

	if out := l.doctor(ft.AgentCaps); !strings.Contains(out, "FAIL  policy        none is named with --policy") {
		t.Errorf("doctor: %s", out)
	}
}

// ended checks that a program has ended with an error that contains words.
func ended(t *testing.T, p *ft.Program, words string) {
	t.Helper()
	select {
	case <-p.Done():
	case <-time.After(time.Minute):
		t.Fatal("it runs")
	}
	out := p.Output()
	if last := out[strings.LastIndexByte(strings.TrimSpace(out), '\n')+1:]; p.ExitCode() == 0 ||
		!strings.Contains(last, words) {
		t.Errorf("exit %d: %s", p.ExitCode(), last)
	}
}
