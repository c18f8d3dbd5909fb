//go:build linux

package faults_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gozzard/gozzard/internal/policy"
	"github.com/gozzard/gozzard/internal/procfs"
	ft "github.com/gozzard/gozzard/test/fleettest"
)

// hangs are the commands that A24 interrupts. Each waits, and those of start and restart bring the process up later.
func hangs(t *testing.T, name, mark string) map[string]*ft.Daemon {
	t.Helper()
	root := t.TempDir()
	ds := map[string]*ft.Daemon{}
	for _, kind := range []string{"start", "restart", "reload", "version"} {
		ds[kind] = ft.NewDaemon(t, root, "gzh"+name+kind[:3])
	}

	up := func(d *ft.Daemon) string {
		return "setsid ./" + d.Name + " 1000000 </dev/null >/dev/null 2>&1 &\necho $! > " + d.PIDFile()
	}
	ds["start"].Script("start.sh", "sleep "+mark+"\n"+up(ds["start"]))
	ds["restart"].Script("restart.sh", "kill $(cat daemon.pid)\nsleep "+mark+"\n"+up(ds["restart"]))
	ds["reload"].Script("reload.sh", "setsid sleep "+mark+" &\nwait")
	ds["version"].Script("version.sh", "sleep "+mark)
	return ds
}

// argPIDs lists live processes whose arguments begin with a text.
func argPIDs(t *testing.T, text string) (pids []int) {
	t.Helper()
	dirs, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range dirs {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if b, err := os.ReadFile("/proc/" + e.Name() + "/cmdline"); err == nil && strings.HasPrefix(string(b), text) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// A24: the agent ends while commands run, and starts again. When their operations have verdicts, the commands are gone:
// nothing that was stopped comes up later.
func TestA24InterruptedCommands(t *testing.T) {
	t.Parallel() // it mostly waits
	s := ft.StartServer(t, "")
	agent := s.StartAgent(t, 1, "")
	again := func() { s.AgainOnline(t, agent) }
	var late []*ft.Daemon
	for i, c := range []struct {
		name string
		end  func()
	}{
		{"kill", func() { agent.Kill(syscall.SIGKILL); again() }},
		{"term", func() { agent.Kill(syscall.SIGTERM); again() }},
		{"upgrade", func() {
			before := agent.Sessions()
			if err := syscall.Kill(agent.PID(), syscall.SIGUSR2); err != nil {
				t.Fatal(err)
			}
			ft.Until(t, time.Minute, agent.Output, func() bool { return agent.Sessions() > before })
		}},
	} {
		// Start what runs, and begin what is interrupted.
		mark := fmt.Sprintf("10.%d%d", os.Getpid(), i)
		ds := hangs(t, c.name[:1], mark)
		unhosted := ft.J{"auto_type": 0, "op_timeout": 30}
		for _, kind := range []string{"restart", "reload", "version"} {
			must(t, operate(t, s.API, ds[kind], 0, ds[kind].Spec(unhosted)), 0)
			must(t, operate(t, s.API, ds[kind], 4, ds[kind].Spec(unhosted)), 0)
		}
		tasks := map[string]string{}
		for kind, op := range map[string]int{"start": 0, "restart": 7, "reload": 8} {
			tasks[kind] = s.Operate("operate_proc_v2", ft.J{"meta": ft.J{"namespace": "faults", "name": ds[kind].Name},
				"op_type": op, "spec": ds[kind].Spec(unhosted), "hosts": host1})
		}
		ft.Until(t, time.Minute, func() string { return fmt.Sprint(ft.CountArgs(t, mark), " commands run") },
			func() bool { return len(argPIDs(t, "sleep\x00"+mark)) == 4 })

		before := argPIDs(t, "sleep\x00"+mark)

		// End the agent. With the verdicts, the commands are gone.
		c.end()
		ended := 0
		for kind, task := range tasks {
			e := s.Await(task)["0:127.0.0.1:faults:"+ds[kind].Name]
			must(t, e, 65535)
			if strings.Contains(e.Msg+e.Content, "its command was still running and was ended") {
				ended++
			}
		}
		for _, pid := range argPIDs(t, "sleep\x00"+mark) {
			if slices.Contains(before, pid) { // the version is asked for again
				t.Errorf("%s: a command runs after the verdicts", c.name)
			}
		}

		// What runs is untouched. What does not run can be stopped.
		if ds["reload"].Copies() != 1 || ds["version"].Copies() != 1 {
			t.Errorf("%s: %d and %d copies", c.name, ds["reload"].Copies(), ds["version"].Copies())
		}
		for _, kind := range []string{"start", "restart"} {
			operate(t, s.API, ds[kind], 1, ds[kind].Spec(unhosted))
			late = append(late, ds[kind])
		}
		fmt.Printf("fault A24: %s: %d of 3 interrupted commands ended before their verdicts\n", c.name, ended)
		if ended != 3 {
			t.Errorf("%s: %d of 3 verdicts name the command", c.name, ended)
		}
	}

	time.Sleep(11 * time.Second) // as long as the commands would have waited
	for _, d := range late {
		if n := d.Copies(); n > 0 {
			t.Errorf("%s was stopped and has %d copies", d.Name, n)
		}
	}
}

// A25: the agent ends while a command runs, and does not come back. The command ends at its limit.
func TestA25CommandWithoutAgent(t *testing.T) {
	t.Parallel() // it mostly waits
	for i, c := range []struct {
		name    string
		signal  syscall.Signal
		account string
		caps    []uintptr
	}{
		{name: "kill", signal: syscall.SIGKILL},
		{name: "term", signal: syscall.SIGTERM},
		{name: "user", signal: syscall.SIGKILL, account: "nobody"},
		{name: "cap", signal: syscall.SIGKILL, account: "nobody", caps: ft.AgentCaps},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()

			// Start an agent and a process.
			s := ft.StartServer(t, "")
			var agent *ft.Program
			root, user := t.TempDir(), "root"
			if c.account == "" {
				agent = s.StartAgent(t, 1, "")
			} else {
				home := s.StartAgentAs(t, 1, c.account, c.caps, policy.Permissive)
				agent, root, user = home.Program, home.Dir, c.account
				if c.caps != nil {
					user = "daemon"
				}
			}
			d := ft.NewDaemon(t, root, "gzlimit"+c.name)
			d.User = user
			ft.Chown(t, d.Dir, user)
			mark := fmt.Sprintf("797.%d%d", os.Getpid(), i)
			d.Script("reload.sh", "setsid sh -c 'sleep "+mark+" & wait' &\nsleep "+mark)
			spec := d.Spec(ft.J{"op_timeout": 4})
			must(t, operate(t, s.API, d, 0, spec), 0)
			pid := d.PID()

			// Begin a reload that hangs, and wait for the guard.
			s.Operate("operate_proc_v2", ft.J{"meta": ft.J{"namespace": "faults", "name": d.Name}, "op_type": 8,
				"spec": spec, "hosts": host1})
			ft.Until(t, time.Minute, agent.Output, func() bool { return len(argPIDs(t, "sleep\x00"+mark)) == 2 })
			title := "gozzard guard\x00" + agent.Flag("--data")
			ft.Until(t, time.Minute, agent.Output, func() bool { return len(argPIDs(t, title)) == 1 })
			guard := argPIDs(t, title)[0]
			ft.Until(t, time.Minute, agent.Output, func() bool { // it is ready
				name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", guard))
				return string(name) == "gozzard guard\n"
			})
			holdsNothing(t, guard)

			// End the agent for good.
			agent.Kill(c.signal)
			ended := time.Now()
			ft.Until(t, 30*time.Second, func() string { return "the command goes on" },
				func() bool { return len(argPIDs(t, "sleep\x00"+mark)) == 0 })
			took := time.Since(ended)
			ft.Until(t, 30*time.Second, func() string { return "the guard stays" },
				func() bool { return len(argPIDs(t, title)) == 0 })
			fmt.Printf("fault A25: %s: a command with a limit of 4 s ended %.1f s after its agent\n", c.name, took.Seconds())
			if d.PID() != pid {
				t.Errorf("the process was pid %d, is %d", pid, d.PID())
			}
		})
	}
}

// holdsNothing checks that a guard has no file of its agent open, and prints what it costs.
func holdsNothing(t *testing.T, pid int) {
	t.Helper()
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	all, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	sockets := 0
	for _, e := range all {
		switch to, err := os.Readlink(filepath.Join(dir, e.Name())); {
		case err != nil:
			t.Error(err)
		case strings.HasPrefix(to, "socket:"):
			sockets++
		case to != "/dev/null" && !strings.HasPrefix(to, "anon_inode:[event"): // of the runtime
			t.Errorf("the guard has %s open", to)
		}
	}
	if sockets != 1 {
		t.Errorf("the guard has %d sockets", sockets)
	}

	cred, err := procfs.New("/proc").Credentials(pid)
	const keep = 1<<unix.CAP_KILL | 1<<unix.CAP_SYS_PTRACE | 1<<unix.CAP_DAC_READ_SEARCH
	if err != nil || (cred.Effective|cred.Permitted|cred.Inheritable|cred.Ambient)&^keep != 0 || !cred.NoNewPrivs {
		t.Errorf("the guard has %+v, %v", cred, err)
	}
	mem, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	for line := range strings.Lines(string(mem)) {
		if f := strings.Fields(line); err == nil && (f[0] == "Rss:" || f[0] == "Pss:" || f[0] == "Private_Dirty:") {
			fmt.Printf("fault A25: guard %s %s kB\n", f[0], f[1])
		}
	}
}
