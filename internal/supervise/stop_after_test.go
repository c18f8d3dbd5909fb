package supervise_test

import (
	"testing"
	"time"

	"github.com/gozzard/gozzard"
)

// TestStopAfterFailedStart: a process that an operation stops is stopped, also if its start failed before: nobody has to look
// after it any more.
func TestStopAfterFailedStart(t *testing.T) {
	bubble(t, func(r *rig) {
		r.want(gozzard.ActionStart, definition(func(s *gozzard.Spec) { s.Control.Start = "fail 3 no such config" }),
			gozzard.CodeCommandFailed, false)
		if st := r.status(); st.Condition != gozzard.ConditionFailed || st.Message != "no such config" {
			t.Errorf("after the start: %v, %q", st.Condition, st.Message)
		}

		r.want(gozzard.ActionStop, nil, gozzard.CodeNotRunning, false)
		r.after(time.Second)
		if st := r.status(); st.Condition != gozzard.ConditionStopped || st.Message != "" {
			t.Errorf("after the stop: %v, %q", st.Condition, st.Message)
		}
	})
}

// TestReloadThatWorksAgain: the message of a reload that failed is shown until one works. What something else says stays.
func TestReloadThatWorksAgain(t *testing.T) {
	bubble(t, func(r *rig) {
		reload := func(command string) []byte {
			return definition(func(s *gozzard.Spec) { s.Control.Reload = command })
		}
		r.want(gozzard.ActionStart, reload("fail 1 bad config"), gozzard.CodeOK, true)
		r.want(gozzard.ActionReload, nil, gozzard.CodeCommandFailed, true)
		if st := r.status(); st.Message != "bad config" {
			t.Errorf("after a reload that failed: %q", st.Message)
		}
		r.want(gozzard.ActionReload, reload("fine"), gozzard.CodeOK, true)
		if st := r.status(); st.Message != "" {
			t.Errorf("after one that worked: %q", st.Message)
		}
	})
}
