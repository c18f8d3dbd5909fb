package delivery_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gozzard/gozzard"
)

// outcome is what the record has about an attempt.
func (w *world) outcome(op gozzard.OpID) gozzard.Outcome {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.rows[op].Outcome
}

// TestReasonsOfAttemptsThatAreGivenUp: the record says why an attempt was given up. Only a host that does not answer is
// said not to answer: not one that has the operation, and not one to which the operation was never sent.
func TestReasonsOfAttemptsThatAreGivenUp(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		var agents []gozzard.AgentID
		for i := range 30 {
			agents = append(agents, gozzard.AgentID(fmt.Sprintf("host%d", i)))
			w.connect(agents[i], 1)
		}

		// The first host has the operation, the others are silent about it: each fills the window for a second.
		list := w.launch(0, agents...)
		time.Sleep(100 * time.Millisecond)
		w.report(agents[0], 1, list[0].Op, gozzard.PhaseQueued)
		for range 11 {
			time.Sleep(time.Second)
			for _, id := range agents {
				w.Heard(id, 1, time.Now())
			}
		}

		for i, words := range map[int]string{0: "the host has it", 1: "no answer from the host", 29: "it was not sent"} {
			if got := w.outcome(list[i].Op); !strings.Contains(got.Message, words) ||
				w.state(list[i].Op) != gozzard.AttemptUnknown {
				t.Errorf("host %d: %v %+v, want %q", i, w.state(list[i].Op), got, words)
			}
		}

		// The agents do not have the operations. What was sent was lost on its way, the rest waited here.
		for i, code := range map[int]gozzard.Code{1: gozzard.CodeExpired, 29: gozzard.CodeBusy} {
			w.Receive(agents[i], 0, &gozzard.Report{Session: 1, Results: []gozzard.OpReport{{ID: list[i].Op,
				Phase: gozzard.PhaseNever, Outcome: gozzard.Outcome{Code: gozzard.CodeExpired}}}})
			if got := w.outcome(list[i].Op); got.Code != code || w.state(list[i].Op) != gozzard.AttemptNotExecuted {
				t.Errorf("host %d: %v %+v, want %s", i, w.state(list[i].Op), got, code)
			}
		}
	})
}
