package agent_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gozzard/gozzard"
)

// TestInterruptedFirstStartIsKnown: the agent ends during the first start of a process, which brought the definition. The
// server has that definition on record, so the next life of the agent has it too: it reports what the start left running,
// does not supervise it, and starts nothing.
func TestInterruptedFirstStartIsKnown(t *testing.T) {
	for name, meanwhile := range map[string]func(*rig){"plain": func(*rig) {}, "compacted": (*rig).fillJournal} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				r.o.Simulated = true
				r.start()
				r.connect()

				// Interrupt it during its check.
				start := r.op(gozzard.ActionStart, "")
				start.Spec, start.Labels = slowCheck(t), map[string]string{"tier": "front"}
				r.do(start)
				pass(time.Second)
				meanwhile(r)
				live := r.host.Live(key)
				if len(live) != 1 || len(r.said(start.ID)) != 0 {
					t.Fatalf("live %v, said %v", live, phases(r.said(start.ID)))
				}
				r.stop()

				// The second life reads what the first wrote.
				for life := range 2 {
					r.forget()
					r.start()
					r.connect()
					pass(5 * time.Minute)
					st := r.reported(key)
					if int(st.PID) != live[0].PID || st.State != gozzard.StateRunning || st.Hosted ||
						st.Labels["tier"] != "front" {
						t.Errorf("life %d reports %+v, live %v", life, st, live)
					}
					if n := r.host.Starts(key); n != 1 {
						t.Errorf("life %d: %d starts", life, n)
					}
					r.stop()
				}

				// Its definition can be used.
				r.start()
				r.connect()
				stop := r.op(gozzard.ActionStop, "")
				r.do(stop)
				pass(time.Minute)
				if got := r.last(stop.ID); got.Outcome.Code != gozzard.CodeOK || len(r.host.Live(key)) != 0 {
					t.Errorf("stop: %+v, live %v", got, r.host.Live(key))
				}
			})
		})
	}
}

// slowCheck is a definition whose start check takes a minute.
func slowCheck(t *testing.T) []byte {
	t.Helper()
	s, err := gozzard.DecodeSpec(spec("ok"))
	must(t, err)
	s.Policy.StartCheckSecs = 60
	return gozzard.EncodeSpec(s)
}

// reported is the status of a process in the newest full report.
func (r *rig) reported(k gozzard.Key) gozzard.Status {
	r.t.Helper()
	for _, rep := range slices.Backward(r.taken(gozzard.ReportStatus)) {
		if rep.Round == 0 {
			continue
		}
		if i := slices.IndexFunc(rep.Statuses, func(s gozzard.Status) bool { return s.Key == k }); i >= 0 {
			return rep.Statuses[i]
		}
		break
	}
	return gozzard.Status{}
}

// fillJournal registers other processes until the journal is compacted.
func (r *rig) fillJournal() {
	r.t.Helper()
	file := filepath.Join(r.dir, "journal")
	size := func() int64 {
		st, err := os.Stat(file)
		must(r.t, err)
		return st.Size()
	}

	for i := range 60 { // each 200 KB
		before := size()
		op := r.op(gozzard.ActionRegister, fmt.Sprintf("print %d %s", i, strings.Repeat("x", 150<<10)))
		op.Key.Name = fmt.Sprintf("p%d", i%3)
		r.do(op)
		pass(10 * time.Millisecond)
		if size() < before {
			return
		}
	}
	r.t.Fatal("the journal was not compacted")
}
