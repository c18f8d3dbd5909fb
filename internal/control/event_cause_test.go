package control_test

import (
	"testing"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/record"
)

// caused makes an event of the process that the tests operate.
func caused(seq uint64, cause gozzard.Cause) gozzard.Event {
	return gozzard.Event{Seq: seq, Key: key, Kind: gozzard.EventExited, At: 1_700_000_000_000, Cause: cause}
}

// TestEventCauses: an event names the task that caused it, and the person behind the task. An agent is not believed: only
// the operation that it was given for this process counts.
func TestEventCauses(t *testing.T) {
	r := newRig(t)
	r.hello(me, 1, journalA)
	r.hello(other, 1, journalB)
	task := r.operate(gozzard.ActionStop, 0, me)
	op := r.op(me, 1, task)
	cause := gozzard.Cause{Op: op.ID, Ref: op.Ref}

	elsewhere := caused(3, cause)
	elsewhere.Key.Name += "x"
	r.events(me, 1, caused(1, cause), caused(2, gozzard.Cause{Op: gozzard.NewOpID(), Ref: op.Ref}), elsewhere,
		caused(4, gozzard.Cause{Op: op.ID, Ref: gozzard.AttemptRef{Task: op.Ref.Task + 7}}),
		caused(5, gozzard.Cause{Op: op.ID, Ref: gozzard.AttemptRef{Task: -1, Index: -1}}), caused(6, gozzard.Cause{}))
	r.events(other, 1, caused(1, cause))

	page := r.newest(caller, record.EventFilter{}, 100)
	if len(page.Events) != 7 {
		t.Fatalf("%d events", len(page.Events))
	}
	for i, e := range page.Events {
		if want := i == 0; (e.Task == task.ID && e.User == caller.User && e.App == caller.App) != want ||
			!want && (e.Task != "" || e.User != "" || e.App != "") || !e.Cause.IsZero() {
			t.Errorf("event %d is of task %q of %q %q, cause %v", i, e.Task, e.App, e.User, e.Cause)
		}
	}
}

// TestTI3EventCauses: a caller that may see an event but not its task sees neither the task nor the person.
func TestTI3EventCauses(t *testing.T) {
	r := newRig(t)
	r.hello(me, 1, journalA)
	task := r.operate(gozzard.ActionStop, 0, me)
	op := r.op(me, 1, task)
	r.events(me, 1, caused(1, gozzard.Cause{Op: op.ID, Ref: op.Ref}))

	viewer := &gozzard.Rights{Grants: []gozzard.Grant{{Role: gozzard.RoleViewer, Namespaces: []string{key.Namespace},
		Hosts: gozzard.HostsAny}}}
	for name, test := range map[string]struct {
		caller gozzard.Caller
		shown  bool
	}{
		"the same person":                    {caller, true},
		"another person that sees all":       {gozzard.Caller{App: "app", User: "eve", Rights: gozzard.Everything()}, true},
		"another person of the same app":     {gozzard.Caller{App: "app", User: "eve", Rights: viewer}, false},
		"the same name behind another app":   {gozzard.Caller{App: "watch", User: caller.User, Rights: viewer}, false},
		"another app that sees all the same": {gozzard.Caller{App: "watch", Rights: gozzard.Everything()}, false},
	} {
		page := r.newest(test.caller, record.EventFilter{}, 10)
		stream, _ := r.after(test.caller, record.EventFilter{}, 0, 10)
		for _, events := range [][]record.Event{page.Events, stream.Events} {
			if len(events) != 1 {
				t.Fatalf("%s sees %d events", name, len(events))
			}
			if e := events[0]; (e.Task != "") != test.shown || (e.User != "") != test.shown || (e.App != "") != test.shown {
				t.Errorf("%s sees task %q of %q %q", name, e.Task, e.App, e.User)
			}
		}
	}
}
