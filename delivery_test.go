package gozzard_test

import (
	"math"
	"slices"
	"testing"

	"github.com/gozzard/gozzard"
)

var allStates = []gozzard.AttemptState{gozzard.AttemptPending, gozzard.AttemptDispatched, gozzard.AttemptUnknown,
	gozzard.AttemptOK,
	gozzard.AttemptFailed, gozzard.AttemptNotExecuted, gozzard.AttemptInterrupted}

func TestFinalStatesAreNoSources(t *testing.T) {
	for _, s := range allStates {
		for _, from := range s.Sources() {
			if from.Final() {
				t.Errorf("%v may become %v, final states never change", from, s)
			}
			if from == s {
				t.Errorf("%v may become itself: a compare-and-set would not show which one won", s)
			}
		}
		if len(s.Sources()) == 0 {
			t.Errorf("nothing may become %v", s)
		}
	}

	if got := gozzard.AttemptState(0).Sources(); got != nil {
		t.Errorf("the zero state has sources %v", got)
	}
}

func TestOnlyDispatchedAttemptsAreRequeued(t *testing.T) {
	// An attempt that is Unknown may have been cancelled: sending it again would be answered "never".
	if got := gozzard.AttemptPending.Sources(); !slices.Equal(got, []gozzard.AttemptState{gozzard.AttemptDispatched}) {
		t.Errorf("sources of pending are %v", got)
	}
}

func TestStateAndPhaseNames(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range allStates {
		seen[s.String()] = true
	}

	for p := gozzard.PhaseAbsent; p <= gozzard.PhaseNever; p++ {
		seen["phase "+p.String()] = true
	}

	if len(seen) != len(allStates)+6 {
		t.Errorf("names are not distinct: %v", seen)
	}
	if got := gozzard.AttemptState(200).String(); got != "invalid" {
		t.Errorf("state 200 is called %q", got)
	}
	if got := gozzard.Phase(200).String(); got != "invalid" {
		t.Errorf("phase 200 is called %q", got)
	}
}

func TestAdmit(t *testing.T) {
	now := gozzard.AgentView{Session: 7, Leased: true, NewestGen: 40}
	with := func(change func(*gozzard.AgentView)) gozzard.AgentView {
		st := now
		change(&st)
		return st
	}

	for _, tt := range []struct {
		name     string
		standing gozzard.AgentView
		session  uint64
		gen      uint64
		readOnly bool
		want     gozzard.Admission
	}{
		{"new", now, 7, 41, false, gozzard.AdmitQueue},
		{"older session", now, 6, 41, false, gozzard.AdmitRefuseSession},
		{"session not opened yet", now, 8, 41, false, gozzard.AdmitRefuseSession},
		{"no session", gozzard.AgentView{}, 0, 1, false, gozzard.AdmitRefuseSession},
		{"lease over", with(func(s *gozzard.AgentView) { s.Leased = false }), 7, 41, false, gozzard.AdmitRefuseSession},
		{"same generation", now, 7, 40, false, gozzard.AdmitRefuseOld},
		{"older generation", now, 7, 39, false, gozzard.AdmitRefuseOld},
		{"query of an older generation", now, 7, 39, true, gozzard.AdmitQueue},
		{"repeated, queued", with(func(s *gozzard.AgentView) { s.Phase = gozzard.PhaseQueued }), 7, 41, false,
			gozzard.AdmitAnswer},
		{"repeated, done", with(func(s *gozzard.AgentView) { s.Phase = gozzard.PhaseDone }), 7, 40, false,
			gozzard.AdmitAnswer},
		{"repeated, never", with(func(s *gozzard.AgentView) { s.Phase = gozzard.PhaseNever }), 7, 41, false,
			gozzard.AdmitAnswer},
		{"repeated in an older session", with(func(s *gozzard.AgentView) { s.Phase = gozzard.PhaseDone }), 6, 40,
			false, gozzard.AdmitRefuseSession},
	} {
		if got := gozzard.Admit(tt.standing, tt.session, tt.gen, tt.readOnly); got != tt.want {
			t.Errorf("%s: admission %d, want %d", tt.name, got, tt.want)
		}
	}
}

func TestPhaseAfterCancelAndRecovery(t *testing.T) {
	for _, tt := range []struct{ phase, cancelled, recovered gozzard.Phase }{
		{gozzard.PhaseAbsent, gozzard.PhaseNever, gozzard.PhaseAbsent},
		{gozzard.PhaseQueued, gozzard.PhaseNever, gozzard.PhaseQueued},
		{gozzard.PhaseBegun, gozzard.PhaseBegun, gozzard.PhaseInterrupted},
		{gozzard.PhaseDone, gozzard.PhaseDone, gozzard.PhaseDone},
		{gozzard.PhaseInterrupted, gozzard.PhaseInterrupted, gozzard.PhaseInterrupted},
		{gozzard.PhaseNever, gozzard.PhaseNever, gozzard.PhaseNever},
	} {
		if got := gozzard.OnCancel(tt.phase); got != tt.cancelled {
			t.Errorf("%v becomes %v on cancel, want %v", tt.phase, got, tt.cancelled)
		}
		if got := gozzard.OnRecovery(tt.phase); got != tt.recovered {
			t.Errorf("%v becomes %v on recovery, want %v", tt.phase, got, tt.recovered)
		}
		if got := gozzard.MayBegin(tt.phase); got != (tt.phase == gozzard.PhaseQueued) {
			t.Errorf("%v may begin: %v", tt.phase, got)
		}
	}
}

func TestFinalise(t *testing.T) {
	for _, tt := range []struct {
		phase gozzard.Phase
		code  gozzard.Code
		want  gozzard.AttemptState
	}{
		{gozzard.PhaseDone, gozzard.CodeOK, gozzard.AttemptOK},
		{gozzard.PhaseDone, gozzard.CodeCommandFailed, gozzard.AttemptFailed},
		{gozzard.PhaseDone, gozzard.CodeAlreadyRunning, gozzard.AttemptFailed},
		{gozzard.PhaseDone, "", gozzard.AttemptFailed},
		{gozzard.PhaseInterrupted, "", gozzard.AttemptInterrupted},
		{gozzard.PhaseNever, "", gozzard.AttemptNotExecuted},
		{gozzard.PhaseNever, gozzard.CodeOK, gozzard.AttemptNotExecuted},
		{gozzard.PhaseAbsent, gozzard.CodeOK, 0},
		{gozzard.PhaseQueued, gozzard.CodeOK, 0},
		{gozzard.PhaseBegun, gozzard.CodeOK, 0},
	} {
		got, ok := gozzard.Finalise(tt.phase, tt.code)
		if got != tt.want || ok != (tt.want != 0) {
			t.Errorf("%v with code %q gives %v (%v), want %v", tt.phase, tt.code, got, ok, tt.want)
		}
		if ok && !got.Final() {
			t.Errorf("%v is not final", got)
		}
	}
}

func TestReconcile(t *testing.T) {
	const dispatched, hello = 3, 4
	for _, tt := range []struct {
		name  string
		state gozzard.AttemptState
		late  bool
		phase gozzard.Phase
		same  bool
		want  gozzard.AttemptState
	}{
		{"never arrived, in time", gozzard.AttemptDispatched, false, gozzard.PhaseAbsent, true, gozzard.AttemptPending},
		{"never arrived, too late", gozzard.AttemptDispatched, true, gozzard.PhaseAbsent, true,
			gozzard.AttemptNotExecuted},
		{"given up and never arrived", gozzard.AttemptUnknown, false, gozzard.PhaseAbsent, true,
			gozzard.AttemptNotExecuted},
		{"journal lost", gozzard.AttemptDispatched, false, gozzard.PhaseAbsent, false, gozzard.AttemptInterrupted},
		{"given up, journal lost", gozzard.AttemptUnknown, true, gozzard.PhaseAbsent, false,
			gozzard.AttemptInterrupted},
		{"journal new but knows it", gozzard.AttemptDispatched, false, gozzard.PhaseDone, false, gozzard.AttemptOK},
		{"waiting on the host", gozzard.AttemptDispatched, true, gozzard.PhaseQueued, true, 0},
		{"running on the host", gozzard.AttemptUnknown, true, gozzard.PhaseBegun, true, 0},
		{"done meanwhile", gozzard.AttemptUnknown, true, gozzard.PhaseDone, true, gozzard.AttemptOK},
		{"died in the middle", gozzard.AttemptDispatched, false, gozzard.PhaseInterrupted, true,
			gozzard.AttemptInterrupted},
		{"cancelled", gozzard.AttemptUnknown, true, gozzard.PhaseNever, true, gozzard.AttemptNotExecuted},
		{"not sent yet", gozzard.AttemptPending, false, gozzard.PhaseAbsent, true, 0},
		{"has its verdict", gozzard.AttemptNotExecuted, false, gozzard.PhaseDone, true, 0},
	} {
		c := gozzard.Contact{Session: hello, Phase: tt.phase, SameJournal: tt.same}
		got, ok := gozzard.Reconcile(tt.state, dispatched, tt.late, c, gozzard.CodeOK)
		if got != tt.want || ok != (tt.want != 0) {
			t.Errorf("%s: %v (%v), want %v", tt.name, got, ok, tt.want)
		}
		if ok && !slices.Contains(got.Sources(), tt.state) {
			t.Errorf("%s: %v cannot become %v", tt.name, tt.state, got)
		}
		// a HELLO says nothing about what was sent in its session or after it
		for _, own := range []uint64{hello, hello + 1} {
			if got, ok := gozzard.Reconcile(tt.state, own, tt.late, c, gozzard.CodeOK); ok {
				t.Errorf("%s, dispatched in session %d: %v", tt.name, own, got)
			}
		}
	}
}

func TestJournalSince(t *testing.T) {
	a, b := [16]byte{1}, [16]byte{2}
	known := gozzard.JournalPos{ID: a, LSN: 10}
	for _, tt := range []struct {
		name  string
		hello gozzard.JournalPos
		want  uint64
	}{
		{"grown", gozzard.JournalPos{ID: a, LSN: 12}, 2},
		{"unchanged", known, 2},
		{"rolled back", gozzard.JournalPos{ID: a, LSN: 9}, 5},
		{"another", gozzard.JournalPos{ID: b, LSN: 12}, 5},
	} {
		since := gozzard.JournalSince(known, 2, tt.hello, 5)
		if since != tt.want {
			t.Errorf("%s: journal since session %d, want %d", tt.name, since, tt.want)
		}
		if got := gozzard.SameJournal(4, since); got != (tt.want == 2) {
			t.Errorf("%s: an attempt of session 4 has the same journal: %v", tt.name, got)
		}
	}
}

func TestMayOpenSession(t *testing.T) {
	for _, tt := range []struct {
		registered, hello uint64
		want              bool
	}{{0, 1, true}, {0, 0, false}, {5, 5, false}, {5, 4, false}, {5, 9, true},
		{5, 5 + gozzard.MaxSessionStep, true}, {5, 6 + gozzard.MaxSessionStep, false}, {0, math.MaxUint64, false}} {
		if got := gozzard.MayOpenSession(tt.registered, tt.hello); got != tt.want {
			t.Errorf("session %d after %d: %v", tt.hello, tt.registered, got)
		}
	}
}

// TestLiftBase: the next task is newer than everything that the agent has, no earlier one is, the base never goes down,
// and an agent cannot bring generations to their end.
func TestLiftBase(t *testing.T) {
	const most = gozzard.MaxGen
	for _, tt := range []struct{ counter, base, newest, want uint64 }{
		{0, 0, 0, 0}, {7, 0, 0, 0}, {7, 0, 7, 0}, {7, 0, 6, 0}, {7, 0, 8, 1}, {0, 0, 1 << 40, 1 << 40},
		{7, 0, most, most - 7}, {7, 0, most + 1, 0}, {7, 0, math.MaxUint64, 0},
		{8, 1, 9, 1}, {8, 1, 10, 2}, {8, 5, 10, 5}, {1 << 53, most, most, most},
	} {
		got := gozzard.LiftBase(tt.counter, tt.base, tt.newest)
		if got != tt.want {
			t.Errorf("counter %d, base %d, newest %d: %d, want %d", tt.counter, tt.base, tt.newest, got, tt.want)
		}
		if tt.newest <= most && (tt.counter+1+got <= tt.newest || got > tt.base && tt.counter+got > tt.newest) {
			t.Errorf("counter %d, base %d, newest %d: base %d is not right", tt.counter, tt.base, tt.newest, got)
		}
	}
}
