//go:build linux

package faults_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	ft "github.com/gozzard/gozzard/test/fleettest"
	"github.com/gozzard/gozzard/test/ledger"
	"github.com/gozzard/gozzard/test/sim"
)

// returnNames is how many processes of each host the large task of V20 is about.
const returnNames = 8

// V20: a whole fleet goes away and comes back in the middle of a large task, because the server is killed or all
// connections are cut. Every attempt gets a true verdict, none is done twice, and the server comes to rest. The next task
// is executed everywhere.
func TestV20FleetReturnsDuringALargeTask(t *testing.T) {
	s := ft.StartServer(t, "", "--log-level=warn")
	links := ft.NewProxy(t, s.Agents)
	fleet := s.StartSim(t, *comeBack, "--server", links.Addr())
	hosts := simulated(*comeBack)
	awaitHosts(t, s, hosts)
	rest := cpuPerSecond(s, 3*time.Second)
	notes := filepath.Join(fleet.Flag("--data"), sim.Notes)

	for _, c := range []struct {
		name  string
		fault func()
	}{
		{"killed", func() {
			s.Kill(syscall.SIGKILL)
			s.Again()
			s.AwaitReady()
		}},
		{"cut", links.Cut},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := &largeTask{t: t, s: s, hosts: hosts, notes: notes}
			l.during(c.name, c.fault)
			awaitHosts(t, s, hosts)
			awaitRest(t, s, "V20 "+c.name, rest)

			mark := c.name + "-after"
			after := l.judge(l.send(mark), mark)
			if wrong := after.Fault(ledger.Floor{Percent: 100}); wrong != "" {
				t.Errorf("afterwards: %s: %s", wrong, after)
			}
		})
	}
}

// largeTask sends tasks on several processes of every host, whose effects are notes.
type largeTask struct {
	t     *testing.T
	s     *ft.Server
	hosts []ft.J
	notes string
}

// during causes a fault in the middle of a task, and judges what becomes of the task.
func (l *largeTask) during(name string, fault func()) {
	l.t.Helper()
	task := l.send(name)
	done := l.awaitSome(task)
	fault()
	began := time.Now()
	f := l.judge(task, name)

	fmt.Printf("fault V20 %s: after %d verdicts of %d; all after %.1f s: %s\n", name, done, l.size(),
		time.Since(began).Seconds(), f)
	for why, n := range f.Why {
		fmt.Printf("fault V20 %s:   %d × %s\n", name, n, why)
	}
	// How many are on their way when the fault comes, and are then not executed, depends on the speed of the machine.
	if wrong := f.Fault(ledger.Floor{Percent: 30}); wrong != "" {
		l.t.Error(wrong)
	}
}

// size is the number of attempts.
func (l *largeTask) size() int { return returnNames * *scale * len(l.hosts) }

// send sends one task. Its commands take a moment, so that a fault finds some that wait, some that run and some that
// ended.
func (l *largeTask) send(mark string) string {
	l.t.Helper()
	var items []ft.J
	for i := range returnNames * *scale {
		name := fmt.Sprintf("p%d", i)
		items = append(items, ft.J{"meta": ft.J{"namespace": "faults", "name": name}, "op_type": 8, "hosts": l.hosts,
			"spec": ft.J{"identity": ft.J{"proc_name": name, "setup_path": "/srv", "pid_path": "/srv/pid", "user": "root"},
				"control": ft.J{"reload_cmd": fmt.Sprintf("sleep %dms; note %s-%s", 200*(i%3), mark, name)}}})
	}
	return l.s.For(l.t).Operate("operate_proc_multi", ft.J{"proc_operate_req": items})
}

// awaitSome waits until a tenth of the attempts has a verdict, and returns how many do.
func (l *largeTask) awaitSome(task string) (done int) {
	l.t.Helper()
	words := func() string { return fmt.Sprintf("%d verdicts", done) }
	ft.Until(l.t, time.Minute, words, func() bool {
		status, body := l.s.Get(l.t, "/api/v1/tasks/"+url.PathEscape(task)+"?show=none")
		var state struct{ Counts struct{ Done int } }
		if err := json.Unmarshal([]byte(body), &state); status != 200 || err != nil {
			l.t.Fatalf("task %s: HTTP %d %s", task, status, body)
		}
		done = state.Counts.Done
		return done >= l.size()/10
	})
	if done == l.size() {
		l.t.Fatal("the task was over before the fault")
	}
	return done
}

// verdicts waits until every attempt of a task has its verdict.
func (l *largeTask) verdicts(task string) (entries map[string]ft.Entry) {
	l.t.Helper()
	open := 0
	words := func() string { return fmt.Sprintf("%d of %d entries have no verdict", open, len(entries)) }
	ft.Until(l.t, 2*time.Minute, words, func() bool {
		entries, open = l.s.For(l.t).Results(task), 0
		for _, e := range entries {
			if e.Code == 115 || strings.Contains(e.Msg, "not known yet") {
				open++
			}
		}
		return open == 0
	})
	return entries
}

// judge waits for all verdicts of a task and compares each with what its host did.
func (l *largeTask) judge(task, mark string) (f ledger.Figures) {
	l.t.Helper()
	entries := l.verdicts(task)
	effects, counted := ledger.ReadNotes(l.t, l.notes), 0
	judge := ledger.New(l.t)
	f.Why = map[string]int{}
	for i := range l.hosts {
		for p := range returnNames * *scale {
			name := fmt.Sprintf("p%d", p)
			e, ok := entries["0:"+simulatedIP(i)+":faults:"+name]
			if !ok {
				f.Lost++
				continue
			}
			n := effects[fmt.Sprintf("%s %s-%s", sim.AgentID(i), mark, name)]
			f.Ops++
			counted += n
			judge.Compare(&f, fmt.Sprintf("%s-%s on %s", mark, name, sim.AgentID(i)), e, n)
		}
	}

	if counted == 0 {
		l.t.Errorf("nothing was noted for %s: %d entries", mark, len(entries))
	}
	return f
}
