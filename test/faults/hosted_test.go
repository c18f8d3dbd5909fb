//go:build linux

package faults_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	ft "github.com/gozzard/gozzard/test/fleettest"
	"github.com/gozzard/gozzard/test/ledger"
)

// A1: the agent is killed again and again while it supervises many processes and operations run. No process is
// affected, and the agent finds all of them again.
func TestA1Hosted(t *testing.T) {
	s := ft.StartServer(t, "")
	agent := s.StartAgent(t, 1, "")
	hosted, kills := 80, 12
	if *scale > 1 {
		hosted, kills = 200, 25**scale
	}
	f := startFleet(t, s, agent, "gzkeep", hosted)
	l := ledger.New(t, s.API)
	stop := l.Steady(1, 5*time.Millisecond)
	for i := range kills {
		time.Sleep(time.Duration(rand.IntN(150)) * time.Millisecond)
		agent.Kill(syscall.SIGKILL)
		if i%2 == 0 { // every other time it dies before its session opens
			s.AgainOnline(t, agent)
			time.Sleep(50 * time.Millisecond)
		} else {
			agent.Again()
		}
	}

	agent.Kill(syscall.SIGKILL)
	s.AgainOnline(t, agent)
	stop()
	restarted, doubled := f.touched()
	unseen := f.unseen()
	fmt.Printf("fault A1 hosted: agent killed %d times with %d hosted processes: %d restarted, %d doubled, %d lost sight of\n", kills+1, len(f.ds), restarted, doubled, unseen)

	if restarted+doubled+unseen > 0 {
		t.Error("see the line above")
	}

	l.Afterwards(8, 1)
	l.Judge("A1 hosted", ledger.Floor{OK: 20, Percent: 25})

	for _, d := range f.ds[:5] { // they are watched, not only listed
		cameBack(t, d)
	}
}

// A4: an agent is frozen with operations on their way to it, until its lease has expired. Afterwards it must not carry
// them out.
func TestA4FrozenAgent(t *testing.T) {
	t.Parallel()
	s := ft.StartServer(t, "")
	agent := s.StartAgent(t, 1, "")
	f := startFleet(t, s, agent, "gzfrost", 3)
	l := ledger.New(t, s.API)
	never := make(chan struct{})
	agent.Kill(syscall.SIGSTOP)
	n := min(40**scale, 1000)
	for i := range n {
		l.Send(fmt.Sprintf("frozen-%d", i), 1, i%8, never)
	}

	began := time.Now()

	ft.Until(t, time.Minute, func() string { return "a frozen agent stays online" },
		func() bool { return !s.Online(1) })

	if left := 17*time.Second - time.Since(began); left > 0 { // the agent's own lease is 15 s
		time.Sleep(left)
	}

	sessions := agent.Sessions()
	agent.Kill(syscall.SIGCONT)
	ft.Until(t, time.Minute, agent.Output, func() bool { return agent.Sessions() > sessions })
	l.Afterwards(8, 1)
	figs := l.Collect()
	fmt.Printf("fault A4: frozen for %.0f s with %d operations on their way: %d stale executions (%s)\n",
		time.Since(began).Seconds(), n, figs.Twice+figs.Wrong, figs)

	if fault := figs.Fault(ledger.Floor{OK: 8}); fault != "" || figs.Ops != n+8 {
		t.Errorf("see the line above: %s", fault)
	}

	f.untouched("after the thaw")
}

// A5: the kernel kills the agent for its memory. The agent gets no warning. After a restart it continues.
func TestA5AgentOutOfMemory(t *testing.T) {
	needs(t)
	s := ft.StartServer(t, "")
	agent := s.StartAgent(t, 1, "")
	f := startFleet(t, s, agent, "gzmem", 5)
	agent.Kill(syscall.SIGKILL)
	dir := groupV1(t, "memory", 0)
	endFirst(t, agent)
	l := ledger.New(t, s.API)
	stop := l.Steady(1, 2*time.Millisecond)
	rounds, killed := 2**scale, 0
	var back []time.Duration
	for i := range rounds {
		control(t, filepath.Join(dir, "memory.limit_in_bytes"), fmt.Sprint((2+i%3)<<20))
		agent.Through("sh", "-c", "echo $$ > '"+dir+"/cgroup.procs' && exec \"$@\"", "sh")
		agent.Again()
		select {
		case <-agent.Done():
			if agent.Signal() == syscall.SIGKILL {
				killed++
			}
		case <-time.After(20 * time.Second):
			t.Fatal("it needs less memory than that")
		}
		agent.Through()
		began := time.Now()
		s.AgainOnline(t, agent)
		back = append(back, time.Since(began))
		time.Sleep(100 * time.Millisecond)
		agent.Kill(syscall.SIGKILL)
	}

	s.AgainOnline(t, agent)
	stop()
	fmt.Printf("fault A5: agent killed for its memory %d of %d times, in session again at most %d ms after its start\n", killed, rounds, percentile(back, 1).Milliseconds())

	if killed != rounds {
		t.Error(agent.Output())
	}

	l.Afterwards(8, 1)
	l.Judge("A5", ledger.Floor{OK: 12})
	f.untouched("after the agent was out of memory")
}

// A6: a new program replaces the running agent by exec, and the agent is stopped and started. No process is affected.
func TestA6Upgrade(t *testing.T) {
	s := ft.StartServer(t, "")
	agent := s.StartAgent(t, 1, "")
	f := startFleet(t, s, agent, "gzup", min(50**scale, 500))
	l := ledger.New(t, s.API)
	stop := l.Steady(1, 5*time.Millisecond)
	rounds := 2 * *scale
	var gaps [2][]time.Duration
	for range rounds {
		pid, sessions := agent.PID(), agent.Sessions()
		began := time.Now()
		if err := syscall.Kill(pid, syscall.SIGUSR2); err != nil {
			t.Fatal(err)
		}
		ft.Until(t, time.Minute, agent.Output, func() bool { return agent.Sessions() > sessions })
		gaps[0] = append(gaps[0], time.Since(began))
		began = time.Now()
		agent.Kill(syscall.SIGTERM)
		s.AgainOnline(t, agent)
		gaps[1] = append(gaps[1], time.Since(began))
	}

	stop()
	restarted, doubled := f.touched()
	unseen := f.unseen()
	fmt.Printf("fault A6: %d take-overs and %d stops and starts with %d hosted processes: %d restarted, %d doubled, %d lost sight of; in session again after p50 %d ms and %d ms\n",
		rounds, rounds, len(f.ds), restarted, doubled, unseen, percentile(gaps[0], 0.5).Milliseconds(),
		percentile(gaps[1], 0.5).Milliseconds())

	if restarted+doubled+unseen > 0 {
		t.Error("see the line above")
	}

	l.Afterwards(8, 1)
	l.Judge("A6", ledger.Floor{OK: 12, Percent: 50})
	cameBack(t, f.ds[0])
}

// A14: more processes than the agent may have open files. Each operation is done or rejected with a clear error, and
// the connection stays.
func TestA14FewDescriptors(t *testing.T) {
	needs(t, "prlimit")
	s := ft.StartServer(t, "")
	agent := s.StartAgent(t, 1, "")
	agent.Kill(syscall.SIGKILL)
	agent.Through("prlimit", "--nofile=64:64")
	s.AgainOnline(t, agent)
	sessions := agent.Sessions()
	ds := daemons(t, "gzfew", 100)
	endFirst(t, agent)
	var items []ft.J
	for _, d := range ds {
		items = append(items, ft.J{"meta": ft.J{"namespace": "faults", "name": d.Name}, "op_type": 0,
			"spec": d.Spec(nil), "hosts": host1})
	}

	started, refused, odd := 0, 0, 0
	done := map[string]bool{}
	for k, e := range s.Await(s.Operate("operate_proc_multi", ft.J{"proc_operate_req": items})) {
		switch {
		case e.Code == 0:
			started++
			done[k[strings.LastIndexByte(k, ':')+1:]] = true
		case e.Code == 65535 && e.Msg != "":
			refused++
			if refused == 1 {
				t.Logf("%s: %+v", k, e)
			}
		default:
			odd++
			t.Errorf("%s: %+v", k, e)
		}
	}

	copies, doubled, back := copiesByName(t), 0, 0
	for _, d := range ds {
		if copies[d.Name] > 1 {
			doubled++
		}
	}

	for _, d := range ds {
		if done[d.Name] && back < 10 {
			cameBack(t, d)
			back++
		}
	}

	// What a rejected start has started is ended, as soon as there are descriptors for it.
	ft.Until(t, 30*time.Second, func() string { return "a rejected start has left a process" }, func() bool {
		copies := copiesByName(t)
		return !slices.ContainsFunc(ds, func(d *ft.Daemon) bool { return !done[d.Name] && copies[d.Name] > 0 })
	})

	fmt.Printf("fault A14: 64 descriptors, %d starts: %d done, %d rejected with a clear error, %d doubled; %d of %d killed ones came back; %d disconnects\n",
		len(ds), started, refused, doubled, back, back, agent.Sessions()-sessions)

	if doubled+odd > 0 || started == 0 || agent.Sessions() != sessions || !s.Online(1) {
		t.Error("see the line above")
	}
}

// A15: the account of a process has reached its limit of processes. The error says so, and no other process is
// affected.
func TestA15AccountFull(t *testing.T) {
	t.Parallel() // it mostly waits
	needs(t, "prlimit")
	s := ft.StartServer(t, "")
	agent := s.StartAgent(t, 1, "")
	agent.Kill(syscall.SIGKILL)
	agent.Through("prlimit", "--nproc=1:1") // the limit does not apply to root
	s.AgainOnline(t, agent)
	f := startFleet(t, s, agent, "gzroot", 3)
	d := ft.NewDaemon(t, openDir(t), "gzfull")
	d.User = "nobody"
	if err := os.Chmod(d.Dir, 0o777); err != nil {
		t.Fatal(err)
	}

	n := 3 * *scale
	clear := 0
	var last ft.Entry
	for range n {
		if last = operate(t, s.API, d, 0, d.Spec(nil)); last.Code == 65535 &&
			(contains(last.Msg, "fork") || contains(last.Msg, "temporarily unavailable")) {
			clear++
		}
	}

	fmt.Printf("fault A15: %d of %d starts of an account without room for processes failed with a clear error: %q\n",
		clear, n, last.Msg)

	if clear != n || d.PID() > 0 {
		t.Errorf("%+v", last)
	}

	f.untouched("beside an account that is full")
}

// A15: the agent's own cgroup has reached its limit of tasks. The Go runtime ends a program that gets no thread, so the
// agent may end. As after every end, no process is affected and every operation is reported truly.
func TestA15AgentFull(t *testing.T) {
	needs(t)
	s := ft.StartServer(t, "")
	agent := s.StartAgent(t, 1, "")
	f := startFleet(t, s, agent, "gztask", 5)
	l := ledger.New(t, s.API)
	l.MayFail = true
	ends := 0
	for i := range *scale {
		l.Prefix = fmt.Sprintf("full%d-", i)
		dir := groupV1(t, "pids", agent.PID())
		endFirst(t, agent)
		stop := l.Steady(1, 5*time.Millisecond)
		control(t, filepath.Join(dir, "pids.max"), "1")
		select {
		case <-agent.Done():
			ends++
		case <-time.After(5 * time.Second):
			agent.Kill(syscall.SIGKILL)
		}
		s.AgainOnline(t, agent) // outside that group
		time.Sleep(200 * time.Millisecond)
		stop()
	}

	fmt.Printf("fault A15: agent without a task to spare %d times: it ended by itself %d times\n", *scale, ends)
	l.Prefix = ""
	l.Afterwards(8, 1)
	l.Judge("A15", ledger.Floor{OK: 12})
	f.untouched("after the agent ran out of tasks")
}
