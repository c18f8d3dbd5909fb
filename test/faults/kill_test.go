//go:build linux

package faults_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	ft "github.com/gozzard/gozzard/test/fleettest"
	"github.com/gozzard/gozzard/test/ledger"
)

// hosted starts daemons that must not be affected by what happens to their agent.
func hosted(t *testing.T, api *ft.API, n int) []*ft.Daemon {
	t.Helper()
	var ds []*ft.Daemon
	for i := range n {
		d := ft.NewDaemon(t, t.TempDir(), fmt.Sprintf("gzbystander%d", i))
		task := api.Operate("operate_proc_v2", ft.J{"meta": ft.J{"namespace": "faults", "name": d.Name}, "op_type": 0,
			"spec":  d.Spec(nil),
			"hosts": []ft.J{{"ip": "127.0.0.1", "bk_cloud_id": 0}}})
		if e := api.Await(task)["0:127.0.0.1:faults:"+d.Name]; e.Code != 0 {
			t.Fatalf("%+v", e)
		}
		ds = append(ds, d)
	}

	return ds
}

func TestA1AgentKilledUnderLoad(t *testing.T) {
	s := ft.StartServer(t, "")
	agent := s.StartAgent(t, 1, "")
	ds := hosted(t, s.API, 3)
	pids := map[*ft.Daemon]int{}
	for _, d := range ds {
		pids[d] = d.PID()
	}

	l := ledger.New(t, s.API)
	stop := l.Load(8, 1, 2000**scale)
	kills := 8 * *scale
	for range kills {
		time.Sleep(time.Duration(150+rand.IntN(400)) * time.Millisecond)
		agent.Kill(syscall.SIGKILL)
		time.Sleep(time.Duration(rand.IntN(200)) * time.Millisecond)
		agent.Again()
	}

	s.AwaitOnline(t, 1)
	time.Sleep(time.Second)
	stop()
	restarts := 0
	for _, d := range ds {
		if d.PID() != pids[d] || d.Count("start") != 1 {
			restarts++
		}
	}

	fmt.Printf("fault A1: agent killed %d times, %d of %d processes touched\n", kills, restarts, len(ds))

	if restarts > 0 {
		t.Errorf("%d processes were touched", restarts)
	}

	l.Afterwards(24, 1)
	l.Judge("A1", ledger.Floor{OK: 40, Percent: 25})
}

// A2 and A3: the agent is killed at each step of an operation. The test names the step, and the agent kills itself
// there once.
func TestA2A3AgentKilledAtEachStep(t *testing.T) {
	s := ft.StartServer(t, "")
	arm := filepath.Join(t.TempDir(), "failpoint")
	agent := s.StartAgent(t, 1, "", "GOZZARD_FAILPOINT_FILE="+arm)
	rounds := 2 * *scale
	for _, step := range []struct {
		place string
		least ledger.Floor // of one operation
	}{
		{"intent", ledger.Floor{OK: 1}}, // it is sent again
		{"after-intent", ledger.Floor{Interrupted: 1}},
		{"after-effect", ledger.Floor{Interrupted: 1}},
		{"after-done", ledger.Floor{OK: 1}},
	} {
		t.Run(step.place, func(t *testing.T) {
			place, least := step.place, step.least
			l := ledger.New(t, s.For(t))
			l.Prefix = place + "-"
			never := make(chan struct{})
			for i := range rounds {
				if err := os.WriteFile(arm, []byte(place), 0o600); err != nil {
					t.Fatal(err)
				}
				l.Send(fmt.Sprintf("%s-%d", place, i), 1, 0, never)
				select {
				case <-agent.Done():
				case <-time.After(20 * time.Second):
					t.Fatalf("the agent never came to %s", place)
				}
				agent.Again()
				s.AwaitOnline(t, 1)
			}

			l.Afterwards(2, 1)
			l.Judge("A3 "+place, ledger.Floor{OK: 2 + least.OK*rounds, Interrupted: least.Interrupted * rounds})
		})
	}

	t.Run("second copies", func(t *testing.T) {
		copies := 0
		for i := range rounds {
			d := ft.NewDaemon(t, t.TempDir(), fmt.Sprintf("gzcopy%d", i))
			if err := os.WriteFile(arm, []byte("after-effect"), 0o600); err != nil {
				t.Fatal(err)
			}
			s.For(t).Operate("operate_proc_v2", ft.J{"meta": ft.J{"namespace": "faults", "name": d.Name},
				"op_type": 0, "spec": d.Spec(nil),
				"hosts": []ft.J{{"ip": "127.0.0.1", "bk_cloud_id": 0}}})
			<-agent.Done()
			agent.Again()
			s.AwaitOnline(t, 1)
			key := "0:127.0.0.1:faults:" + d.Name
			again := s.Operate("operate_proc_v2", ft.J{"meta": ft.J{"namespace": "faults", "name": d.Name},
				"op_type": 0, "spec": d.Spec(nil),
				"hosts": []ft.J{{"ip": "127.0.0.1", "bk_cloud_id": 0}}})
			if e := s.Await(again)[key]; e.Code != 828 && e.Code != 0 {
				t.Errorf("%+v", e)
			}
			if d.Copies() != 1 {
				copies++
			}
		}

		fmt.Printf("fault A2: %d of %d processes have a second copy\n", copies, rounds)

		if copies > 0 {
			t.Errorf("%d second copies", copies)
		}
	})
}

func TestV1ServerKilledUnderLoad(t *testing.T) {
	s := ft.StartServer(t, "")
	s.StartAgent(t, 1, "")
	s.StartAgent(t, 2, "")
	l := ledger.New(t, s.API)
	stop := l.Load(8, 2, 2000**scale)
	kills := 5 * *scale
	for range kills {
		time.Sleep(time.Duration(200+rand.IntN(500)) * time.Millisecond)
		s.Kill(syscall.SIGKILL)
		s.Again()
		s.AwaitReady()
	}

	s.AwaitOnline(t, 1)
	s.AwaitOnline(t, 2)
	time.Sleep(time.Second)
	stop()
	fmt.Printf("fault V1: server killed %d times\n", kills)
	l.Afterwards(24, 1, 2)
	l.Judge("V1", ledger.Floor{OK: 40, Percent: 25})
}

// N2: one agent is frozen, and the cable of another is pulled. No other host waits, and in the end every open operation
// is reported truly.
func TestN2SilentAgent(t *testing.T) {
	t.Parallel() // it mostly waits
	s := ft.StartServer(t, "")
	s.StartAgent(t, 1, "")
	cable := ft.NewProxy(t, s.Agents)
	s.StartAgent(t, 2, cable.Addr())
	frozen := s.StartAgent(t, 3, "")
	l := ledger.New(t, s.API)
	stop := l.Load(6, 3, 100000)
	time.Sleep(time.Second)
	began := time.Now()
	cable.Hold(true)
	frozen.Kill(syscall.SIGSTOP)
	found := map[int]time.Duration{}
	for len(found) < 2 && time.Since(began) < time.Minute {
		for _, n := range []int{2, 3} {
			if _, ok := found[n]; !ok && !s.Online(n) {
				found[n] = time.Since(began)
			}
		}
		time.Sleep(50 * time.Millisecond)
	}

	if len(found) < 2 {
		t.Fatal("silent agents stay online")
	}

	task := s.Operate("operate_proc_v2", ft.J{"meta": ft.J{"namespace": "faults", "name": "p0"}, "op_type": 2,
		"spec": ft.J{"identity": ft.J{"proc_name": "gzledger"}},
		"hosts": []ft.J{{"ip": "127.0.0.1", "bk_cloud_id": 0}, {"ip": "127.0.0.2", "bk_cloud_id": 0},
			{"ip": "127.0.0.3", "bk_cloud_id": 0}}})
	r := s.Await(task)
	if r["0:127.0.0.1:faults:p0"].Code != 0 || r["0:127.0.0.2:faults:p0"].Code != 117 ||
		r["0:127.0.0.3:faults:p0"].Code != 117 {
		t.Errorf("%v", r)
	}

	stop()
	fmt.Printf("fault N2: pulled cable noticed after %.1f s, frozen agent after %.1f s\n", found[2].Seconds(),
		found[3].Seconds())
	cable.Hold(false)
	frozen.Kill(syscall.SIGCONT)
	s.AwaitOnline(t, 2)
	s.AwaitOnline(t, 3)
	l.Afterwards(24, 1, 2, 3)
	l.Judge("N2", ledger.Floor{OK: 40})
}
