//go:build linux

package faults_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	ft "github.com/gozzard/gozzard/test/fleettest"
	"github.com/gozzard/gozzard/test/ledger"
)

// P6: the daemon of a start command ends up in another cgroup, as with systemctl or sudo. The agent adopts it only if
// its pid file, name and owner agree.
func TestP6LeftItsCgroup(t *testing.T) {
	needs(t, "setpriv")
	away := filepath.Join(mountOf(t, "cgroup2"), "cgroup.procs")
	s := ft.StartServer(t, "")
	agent := s.StartAgent(t, 1, "")
	root := openDir(t)
	victim := ft.NewDaemon(t, root, "gzbeside")
	endFirst(t, agent)
	must(t, operate(t, s.API, victim, 0, victim.Spec(nil)), 0)
	pid := victim.PID()
	cases := []struct{ name, run, file string }{
		{"honest", "./NAME", "$!"},
		{"no pid file", "./NAME", ""},
		{"pid of another", "./NAME", strconv.Itoa(pid)},
		{"another owner", "setpriv --reuid=65534 --regid=65534 --clear-groups ./NAME", "$!"},
	}
	tried, wrong, right := 0, 0, 0
	for round := range min(*scale, 25) {
		for i, c := range cases {
			d := ft.NewDaemon(t, root, fmt.Sprintf("gzaway%d-%d", round, i))
			endFirst(t, agent)
			stray := filepath.Join(d.Dir, "stray")
			file := "rm -f " + d.PIDFile()
			if c.file != "" {
				file = "echo " + c.file + " > " + d.PIDFile()
			}
			d.Script("start.sh", "echo start >> calls\nsetsid "+strings.ReplaceAll(c.run, "NAME", d.Name)+
				" 1000000 </dev/null >/dev/null 2>&1 &\necho $! >> stray\necho $! > "+away+"\n"+file)
			t.Cleanup(func() { killAll(t, stray) })
			tried++
			e := operate(t, s.API, d, 0, d.Spec(nil))
			row := s.Status("faults", d.Name, ft.Host(1))
			if c.name == "honest" {
				if e.Code == 0 && len(row) == 1 && row[0].PID == d.PID() {
					right++
				} else {
					t.Errorf("%s: %+v, %+v", c.name, e, row)
				}
				cameBack(t, d)
				must(t, operate(t, s.API, d, 1, d.Spec(nil)), 0)
				continue
			}
			// A process that was seen in its group before it left is on record: then it is the right one.
			known := e.Code == 0 && len(row) == 1 && row[0].PID == lastPID(t, stray) && c.name != "another owner"
			if !known && (e.Code != 836 || len(row) == 1 && row[0].PID > 0) {
				wrong++
				t.Errorf("%s: %+v, %+v", c.name, e, row)
			}
			for _, op := range []int{1, 9} { // by signal: no other process may get one
				spec := d.Spec(nil)
				spec["control"] = ft.J{"start_cmd": "./start.sh"}
				if e := operate(t, s.API, d, op, spec); e.Code == 0 && op == 9 {
					t.Logf("%s, op %d: %+v", c.name, op, e)
				}
			}
			if victim.PID() != pid {
				t.Fatalf("%s: the process beside it is gone", c.name)
			}
		}
	}

	fmt.Printf("fault P6: %d daemons left their cgroup: %d adopted by a right pid file, %d wrong adoptions\n", tried,
		right, wrong)
}

// lastPID is the last pid that a start script wrote to a file.
func lastPID(t *testing.T, list string) int {
	t.Helper()
	b, err := os.ReadFile(list)
	if err != nil {
		t.Fatal(err)
	}
	words := strings.Fields(string(b))
	pid, err := strconv.Atoi(words[len(words)-1])
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

// killAll kills the processes whose pids a start script wrote to a file.
func killAll(t *testing.T, list string) {
	b, err := os.ReadFile(list)
	if err != nil {
		return // the script never ran
	}

	for _, w := range strings.Fields(string(b)) {
		pid, err := strconv.Atoi(w)
		if err != nil {
			t.Errorf("%s: %v", list, err)
			continue
		}
		if args, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); err == nil &&
			strings.Contains(string(args), "1000000") {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

// P7: a process does not react to signals, like one that waits for a dead disk. Stop and kill report that in time, and
// the agent starts no second copy.
func TestP7Frozen(t *testing.T) {
	t.Parallel() // it mostly waits
	needs(t)
	s := ft.StartServer(t, "")
	agent := s.StartAgent(t, 1, "")
	unified := mountOf(t, "cgroup2")
	freezers := map[string]func(t *testing.T, pid int) (freeze, thaw func()){
		"v2": func(t *testing.T, pid int) (freeze, thaw func()) {
			_, path, ok := strings.Cut(string(read(t, fmt.Sprintf("/proc/%d/cgroup", pid))), "0::")
			if !ok {
				t.Fatal("not in a cgroup")
			}
			file := filepath.Join(unified, strings.TrimSpace(path), "cgroup.freeze")
			return func() { control(t, file, "1") }, func() { _ = os.WriteFile(file, []byte("0"), 0) }
		},
		"v1": func(t *testing.T, pid int) (freeze, thaw func()) { // it delays SIGKILL as well
			file := filepath.Join(groupV1(t, "freezer", pid), "freezer.state")
			return func() { control(t, file, "FROZEN") }, func() { _ = os.WriteFile(file, []byte("THAWED"), 0) }
		},
	}

	for name, freezer := range freezers {
		t.Run(name, func(t *testing.T) {
			second, stillAlive, ended, n := 0, 0, 0, min(2**scale, 50)
			var longest time.Duration
			for i := range n {
				d := ft.NewDaemon(t, t.TempDir(), fmt.Sprintf("gzice%s%d", name, i))
				must(t, operate(t, s.For(t), d, 0, d.Spec(nil)), 0)
				freeze, thaw := freezer(t, d.PID())
				t.Cleanup(thaw)
				freeze()
				for _, op := range []int{1, 9} {
					began := time.Now()
					e := operate(t, s.For(t), d, op, d.Spec(nil))
					longest = max(longest, time.Since(began))
					alive := d.Copies()
					switch {
					case alive == 0 && (e.Code == 0 || op == 9): // cgroup version 2 lets a deadly signal through
						ended++
					case alive == 1 && e.Code != 0 && strings.Contains(e.Msg, "still alive"):
						stillAlive++
						must(t, operate(t, s.For(t), d, 0, d.Spec(nil)), 828)
					default:
						t.Errorf("op %d: %d copies, %+v", op, alive, e)
					}
					second += max(0, d.Copies()-1)
				}
				thaw()
				ft.Until(t, time.Minute, func() string { return "the signal never came" },
					func() bool { return d.Count("start") > 1 || d.PID() < 0 })
				_ = operate(t, s.For(t), d, 4, d.Spec(nil)) // a process that was not stopped is still supervised
			}

			fmt.Printf("fault P7 %s: %d frozen processes: %d operations reported that it is still alive, %d that it is gone, at most after %.1f s; %d second copies\n",
				name, n, stillAlive, ended, longest.Seconds(), second)

			if second > 0 {
				t.Errorf("%d second copies", second)
			}
		})
	}

	endFirst(t, agent)
}

// H1: the host boots again. Old pid files name foreign processes now. The agent does not trust them, and it starts what
// must run.
func TestH1Reboot(t *testing.T) {
	needs(t, "unshare")
	s := ft.StartServer(t, "")
	agent := s.StartAgent(t, 1, "")
	victim := ft.NewDaemon(t, t.TempDir(), "gzstranger")
	n := min(10**scale, 100)
	ds := daemons(t, "gzboot", 2*n)
	endFirst(t, agent)
	startAll(t, s.API, append(ds, victim), nil)

	for _, d := range ds[n:] {
		must(t, operate(t, s.API, d, 4, d.Spec(nil)), 0)
	}

	l := ledger.New(t, s.API)
	stop := l.Steady(1, 2*time.Millisecond)
	time.Sleep(200 * time.Millisecond)
	agent.Kill(syscall.SIGKILL)

	for _, d := range ds {
		ft.KillPID(t, d.PID())
		write(t, d.PIDFile(), fmt.Appendf(nil, "%d\n", victim.PID()))
	}

	pid := victim.PID()
	boot := filepath.Join(t.TempDir(), "boot_id")
	write(t, boot, []byte("11111111-2222-3333-4444-555555555555\n"))
	agent.Through("unshare", "--mount", "--propagation", "private", "sh", "-c",
		"mount --bind '"+boot+"' /proc/sys/kernel/random/boot_id && exec \"$@\"", "sh")
	s.AgainOnline(t, agent)
	began := time.Now()

	ft.Until(t, time.Minute, func() string { return "not all hosted processes are started after the reboot" },
		func() bool {
			for _, d := range ds[:n] {
				if d.PID() < 0 {
					return false
				}
			}
			return true
		})

	up := time.Since(began)
	stop()
	started, foreign := 0, 0
	for _, d := range ds[n:] {
		if d.Copies() > 0 {
			started++
		}
	}

	if victim.PID() != pid || victim.Count("start") != 1 {
		foreign++
	}

	fmt.Printf("fault H1: new boot id, %d pid files that name a stranger: %d hosted processes up after %.1f s, %d unhosted ones started, %d foreign kills\n", len(ds), n, up.Seconds(), started, foreign)

	if started+foreign > 0 {
		t.Error("see the line above")
	}

	l.Afterwards(8, 1)
	l.Judge("H1", ledger.Floor{OK: 10})
}
