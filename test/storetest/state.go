package storetest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/control"
	"github.com/gozzard/gozzard/internal/record"
)

var allStates = []gozzard.AttemptState{gozzard.AttemptPending, gozzard.AttemptDispatched, gozzard.AttemptUnknown,
	gozzard.AttemptOK, gozzard.AttemptFailed, gozzard.AttemptNotExecuted, gozzard.AttemptInterrupted}

// settleStates: an attempt moves exactly as AttemptState.Sources allows, for every pair of states and for states that
// do not exist.
func settleStates(t *testing.T, s control.Store) {
	targets := append([]gozzard.AttemptState{0, 8, 200}, allStates...)
	var list []gozzard.Attempt
	var rows []record.Settlement
	var want []bool
	for _, from := range allStates {
		for _, to := range targets {
			a := attempts(1)[0]
			a.State = from
			list = append(list, a)
			rows = append(rows, settlement(a, to))
			want = append(want, slices.Contains(to.Sources(), from))
		}
	}

	n := accept(t, s, list)
	for i := range rows {
		rows[i].Ref = n.Attempts[i].Ref
	}

	settle(t, s, want, rows...)
	got, err := s.Attempts(t.Context(), n.Task.Seq)
	must(t, err)

	for i := range got {
		a := n.Attempts[i]
		if want[i] {
			a.State, a.Outcome = rows[i].To, rows[i].Outcome
		}
		equal(t, "attempt from "+list[i].State.String()+" to "+rows[i].To.String(), got[i], a)
	}
}

func settleGuards(t *testing.T, s control.Store) {
	n := accept(t, s, attempts(2))
	a := n.Attempts[0]
	openSession(t, s, a.Agent, 5)
	dispatch(t, s, a, 5)

	for what, change := range map[string]func(*record.Settlement){
		"operation":     func(r *record.Settlement) { r.Op = gozzard.NewOpID() },
		"agent":         func(r *record.Settlement) { r.Agent = "another-agent" },
		"session":       func(r *record.Settlement) { r.FromSession = 4 },
		"state":         func(r *record.Settlement) { r.From = gozzard.AttemptUnknown },
		"odd state":     func(r *record.Settlement) { r.From = gozzard.AttemptOK },
		"index":         func(r *record.Settlement) { r.Ref.Index = 1 },
		"high index":    func(r *record.Settlement) { r.Ref.Index = 99 },
		"no index":      func(r *record.Settlement) { r.Ref.Index = -1 },
		"task":          func(r *record.Settlement) { r.Ref.Task += 1000 },
		"no task":       func(r *record.Settlement) { r.Ref.Task = 0 },
		"other attempt": func(r *record.Settlement) { r.Ref, r.Agent = n.Attempts[1].Ref, n.Attempts[1].Agent },
	} {
		row := settlement(a, gozzard.AttemptOK)
		change(&row)
		moved, err := s.Settle(t.Context(), []record.Settlement{row})
		must(t, err)
		if moved[0] {
			t.Errorf("a row with a wrong %s moved its attempt", what)
		}
	}

	equal(t, "states", states(t, s, n.Task.Seq), []gozzard.AttemptState{gozzard.AttemptDispatched,
		gozzard.AttemptPending})
	row := settlement(a, gozzard.AttemptOK)
	row.From, row.FromSession = gozzard.AttemptDispatched, 5
	settle(t, s, []bool{true}, row)
	settle(t, s, []bool{false}, row) // a repeated verdict
	settle(t, s, nil)
}

// settleFrom: a row that names the state before moves only attempts in that state, also where the rules allow others.
func settleFrom(t *testing.T, s control.Store) {
	openSession(t, s, "agent-0", 1)
	list := attempts(2)
	for i := range list {
		list[i].Agent = "agent-0"
	}

	n := accept(t, s, list)
	dispatch(t, s, n.Attempts[0], 1)

	withdrawn := func(a gozzard.Attempt) record.Settlement {
		row := settlement(a, gozzard.AttemptNotExecuted)
		row.From = gozzard.AttemptPending
		return row
	}

	settle(t, s, []bool{false, true}, withdrawn(n.Attempts[0]), withdrawn(n.Attempts[1]))
}

func settleTwice(t *testing.T, s control.Store) {
	n := accept(t, s, attempts(2))
	a, b := n.Attempts[0], n.Attempts[1]
	for _, x := range n.Attempts {
		openSession(t, s, x.Agent, 1)
		dispatch(t, s, x, 1)
	}
	settle(t, s, []bool{true, true, true, false, true},
		settlement(a, gozzard.AttemptUnknown), settlement(b, gozzard.AttemptPending), settlement(a, gozzard.AttemptOK),
		settlement(a, gozzard.AttemptFailed), settlement(b, gozzard.AttemptNotExecuted))
	equal(t, "states", states(t, s, n.Task.Seq), []gozzard.AttemptState{gozzard.AttemptOK, gozzard.AttemptNotExecuted})
}

func settleMany(t *testing.T, s control.Store) {
	list := attempts(1111)
	for i := range list {
		list[i].State = gozzard.AttemptDispatched
	}

	n := accept(t, s, list)
	var rows []record.Settlement
	want := make([]bool, len(list))
	for i, a := range n.Attempts {
		row := settlement(a, gozzard.AttemptOK)
		if want[i] = i%3 != 0; !want[i] {
			row.Op = gozzard.NewOpID()
		}
		rows = append(rows, row)
	}

	slices.Reverse(rows)
	slices.Reverse(want)
	settle(t, s, want, rows...)
}

func settleProcesses(t *testing.T, s control.Store) {
	list := attempts(4)
	for i := range list {
		list[i].State = gozzard.AttemptDispatched
	}

	n := newTask(list)
	ids := make([]gozzard.ProcID, len(list))
	for i := range list {
		ids[i] = gozzard.ProcID{Agent: list[i].Agent, Key: list[i].Key}
		n.Register = append(n.Register, record.Process{ID: ids[i], Spec: list[i].Spec, RegisteredAt: start})
	}

	_, err := s.Accept(t.Context(), n)
	must(t, err)

	row := func(i int, c record.ProcessChange) record.Settlement {
		r := settlement(n.Attempts[i], gozzard.AttemptOK)
		c.ID = ids[i]
		r.Process = &c
		return r
	}

	stale := row(2, record.ProcessChange{Hosted: true, Wanted: gozzard.StateRunning})
	stale.Op = gozzard.NewOpID() // does not move its attempt, so its process must not change
	unknown := row(3, record.ProcessChange{Wanted: gozzard.StateStopped})
	unknown.Process.ID.Name = "never registered"
	settle(t, s, []bool{true, true, false, true},
		row(0, record.ProcessChange{Hosted: true, Wanted: gozzard.StateRunning}),
		row(1, record.ProcessChange{Remove: true}), stale, unknown)
	want := []record.Process{n.Register[0], n.Register[2], n.Register[3]}
	want[0].Hosted, want[0].Wanted = true, gozzard.StateRunning
	equal(t, "processes", processes(t, s, nil), want)
}

// settleDefinedAgain: a definition is removed, and before the host says so, a later operation brings it again. The
// record keeps what the later operation brought, also when both verdicts come together.
func settleDefinedAgain(t *testing.T, s control.Store) {
	operation := func(a gozzard.Action) *record.NewTask {
		list := attempts(2)
		n := newTask(list)
		for i := range n.Attempts {
			at := &n.Attempts[i]
			at.State, at.Action = gozzard.AttemptDispatched, a
			if a == gozzard.ActionUnregister {
				at.Spec = nil
				continue
			}
			n.Register = append(n.Register, record.Process{ID: gozzard.ProcID{Agent: at.Agent, Key: at.Key}, Spec: at.Spec,
				RegisteredAt: start})
		}
		_, err := s.Accept(t.Context(), n)
		must(t, err)
		return n
	}
	row := func(n *record.NewTask, i int, c record.ProcessChange) record.Settlement {
		r := settlement(n.Attempts[i], gozzard.AttemptOK)
		c.ID = gozzard.ProcID{Agent: n.Attempts[i].Agent, Key: n.Attempts[i].Key}
		r.Process = &c
		return r
	}

	operation(gozzard.ActionStart)
	removal, again := operation(gozzard.ActionUnregister), operation(gozzard.ActionRestart)
	running := record.ProcessChange{Hosted: true, Wanted: gozzard.StateRunning}
	settle(t, s, []bool{true}, row(removal, 0, record.ProcessChange{Remove: true}))
	settle(t, s, []bool{true}, row(again, 0, running))
	settle(t, s, []bool{true, true}, row(removal, 1, record.ProcessChange{Remove: true}), row(again, 1, running))
	want := again.Register
	for i := range want {
		want[i].Hosted, want[i].Wanted = running.Hosted, running.Wanted
	}
	equal(t, "processes", processes(t, s, nil), want)

	// A removal that is the last operation removes.
	last := operation(gozzard.ActionUnregister)
	settle(t, s, []bool{true, true}, row(last, 0, record.ProcessChange{Remove: true}),
		row(last, 1, record.ProcessChange{Remove: true}))
	equal(t, "processes", processes(t, s, nil), []record.Process(nil))
}

func settleJournal(t *testing.T, s control.Store) {
	list := attempts(1)
	list[0].State = gozzard.AttemptDispatched
	n := accept(t, s, list)
	a := n.Attempts[0]
	_, _, err := s.OpenSession(t.Context(), host(a.Agent, 1, 1, 10))
	must(t, err)

	report := func(journal byte, lsn uint64, want gozzard.JournalPos) {
		t.Helper()
		row := settlement(a, gozzard.AttemptOK)
		row.Journal = &gozzard.JournalPos{ID: [16]byte{journal}, LSN: lsn}
		_, err := s.Settle(t.Context(), []record.Settlement{row})
		must(t, err)
		hosts, err := s.Hosts(t.Context())
		must(t, err)
		equal(t, "journal", hosts[0].Journal, want)
	}

	report(1, 25, gozzard.JournalPos{ID: [16]byte{1}, LSN: 25})
	report(1, 30, gozzard.JournalPos{ID: [16]byte{1}, LSN: 30}) // a verdict that moves nothing counts as well
	report(1, 12, gozzard.JournalPos{ID: [16]byte{1}, LSN: 30}) // never back
	// Another journal does not count: only a new session replaces the journal.
	report(2, 99, gozzard.JournalPos{ID: [16]byte{1}, LSN: 30})
}

func dispatchStates(t *testing.T, s control.Store) {
	list := attempts(len(allStates))
	for i := range list {
		list[i].State = allStates[i]
	}

	n := accept(t, s, list)
	var rows []record.Dispatch
	want := make([]bool, len(list))
	for i, a := range n.Attempts {
		openSession(t, s, a.Agent, 3)
		rows = append(rows, record.Dispatch{Ref: a.Ref, Agent: a.Agent, Session: 3,
			Deadline: start.Add(9 * time.Minute)})
		want[i] = a.State == gozzard.AttemptPending
	}

	moved, err := s.Dispatch(t.Context(), rows)
	must(t, err)
	equal(t, "moved", moved, want)
	got, err := s.Attempts(t.Context(), n.Task.Seq)
	must(t, err)
	first := n.Attempts[0]
	first.State, first.Session, first.Deadline = gozzard.AttemptDispatched, 3, start.Add(9*time.Minute)
	equal(t, "dispatched attempt", got[0], first)
	equal(t, "the others", got[1:], n.Attempts[1:])
	moved, err = s.Dispatch(t.Context(), nil)
	must(t, err)
	equal(t, "moved of none", len(moved), 0)
}

func dispatchSessions(t *testing.T, s control.Store) {
	n := accept(t, s, attempts(3))
	try := func(i int, agent gozzard.AgentID, session uint64) bool {
		moved, err := s.Dispatch(t.Context(), []record.Dispatch{{Ref: n.Attempts[i].Ref, Agent: agent,
			Session: session}})
		must(t, err)
		return moved[0]
	}

	openSession(t, s, n.Attempts[0].Agent, 7)
	openSession(t, s, n.Attempts[1].Agent, 7)

	for _, session := range []uint64{0, 6, 8} {
		if try(0, n.Attempts[0].Agent, session) {
			t.Errorf("dispatched in session %d, registered is 7", session)
		}
	}

	if try(2, n.Attempts[2].Agent, 7) {
		t.Error("dispatched to an agent that has no session")
	}
	if try(0, n.Attempts[1].Agent, 7) {
		t.Error("dispatched to another agent")
	}

	openSession(t, s, n.Attempts[0].Agent, 8)

	if try(0, n.Attempts[0].Agent, 7) {
		t.Error("dispatched in a session that was replaced")
	}

	moved, err := s.Dispatch(t.Context(), []record.Dispatch{
		{Ref: n.Attempts[0].Ref, Agent: n.Attempts[0].Agent, Session: 8},
		{Ref: n.Attempts[1].Ref, Agent: n.Attempts[1].Agent, Session: 7},
		{Ref: n.Attempts[0].Ref, Agent: n.Attempts[0].Agent, Session: 8}})
	must(t, err)
	equal(t, "moved", moved, []bool{true, true, false})
}

func openAttempts(t *testing.T, s control.Store) {
	list := attempts(len(allStates))
	for i := range list {
		list[i].State, list[i].Agent = allStates[i], agentID(i%2)
	}

	first := accept(t, s, list)
	second := accept(t, s, attempts(2))
	open, err := s.Open(t.Context())
	must(t, err)
	equal(t, "all open attempts", open, append(slices.Clone(first.Attempts[:3]), second.Attempts...))
	open, err = s.OpenOf(t.Context(), []gozzard.AgentID{agentID(0)})
	must(t, err)
	equal(t, "open attempts of one agent", open, []gozzard.Attempt{first.Attempts[0], first.Attempts[2],
		second.Attempts[0]})
	open, err = s.OpenOf(t.Context(), []gozzard.AgentID{"unknown"})
	must(t, err)
	equal(t, "open attempts of an unknown agent", len(open), 0)

	for seq, want := range map[gozzard.TaskSeq][]gozzard.Attempt{0: append(slices.Clone(first.Attempts[:3]), second.Attempts...),
		first.Task.Seq: first.Attempts[:3], second.Task.Seq: second.Attempts, 4711: nil} {
		ops, err := s.OpenOps(t.Context(), seq)
		must(t, err)
		equal(t, fmt.Sprintf("open operations of task %d", seq), byOp(ops), byOp(opsOf(want)))
	}
}

// opsOf names attempts as OpenOps does.
func opsOf(list []gozzard.Attempt) (ops []record.OpenOp) {
	for i := range list {
		ops = append(ops, record.OpenOp{Op: list[i].Op, Agent: list[i].Agent})
	}
	return ops
}

func byOp(ops []record.OpenOp) map[record.OpenOp]int {
	counts := map[record.OpenOp]int{}
	for _, o := range ops {
		counts[o]++
	}
	return counts
}
