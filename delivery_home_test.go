package gozzard_test

import (
	"slices"
	"testing"

	"github.com/gozzard/gozzard"
)

func TestIsHome(t *testing.T) {
	for _, tt := range []struct {
		own, session uint64
		want         bool
	}{{0, 0, false}, {0, 1, false}, {1, 1, true}, {1, 2, false}, {2, 1, false}} {
		if got := gozzard.IsHome(tt.own, tt.session); got != tt.want {
			t.Errorf("server of session %d, session %d: home %v", tt.own, tt.session, got)
		}
		if got := gozzard.MaySend(tt.own, tt.session); got != tt.want {
			t.Errorf("server of session %d, dispatched in %d: may send %v", tt.own, tt.session, got)
		}
	}
}

func TestBirth(t *testing.T) {
	for _, tt := range []struct {
		own     uint64
		ready   bool
		state   gozzard.AttemptState
		session uint64
	}{
		{7, true, gozzard.AttemptDispatched, 7},
		{7, false, gozzard.AttemptPending, 0},
		{0, true, gozzard.AttemptPending, 0},
		{0, false, gozzard.AttemptPending, 0},
	} {
		if state, session := gozzard.Birth(tt.own, tt.ready); state != tt.state || session != tt.session {
			t.Errorf("server of session %d, ready %v: %v in session %d", tt.own, tt.ready, state, session)
		}
	}
}

func TestOnLook(t *testing.T) {
	const own = 5
	for _, tt := range []struct {
		name       string
		registered uint64
		sighting   gozzard.Sighting
		do         gozzard.Look
		next       gozzard.AttemptState
	}{
		{"another home", own + 1, gozzard.Sighting{State: gozzard.AttemptPending}, gozzard.LookLeave, 0},
		{"another home dispatched it", own + 1, gozzard.Sighting{State: gozzard.AttemptDispatched, Session: own + 1,
			Held: true}, gozzard.LookLeave, 0},
		{"has its verdict", own, gozzard.Sighting{State: gozzard.AttemptOK, Session: own, Held: true},
			gozzard.LookForget, 0},
		{"accepted elsewhere", own, gozzard.Sighting{State: gozzard.AttemptPending}, gozzard.LookHold, 0},
		{"accepted elsewhere, late", own, gozzard.Sighting{State: gozzard.AttemptPending, Late: true},
			gozzard.LookHold, 0},
		{"dispatched here, answer lost", own, gozzard.Sighting{State: gozzard.AttemptDispatched, Session: own},
			gozzard.LookHold, 0},
		{"given up by another server", own, gozzard.Sighting{State: gozzard.AttemptUnknown, Session: own, Held: true},
			gozzard.LookHold, 0},
		{"the agent works on it since an older session", own, gozzard.Sighting{State: gozzard.AttemptDispatched,
			Session: own - 1, Held: true}, gozzard.LookHold, 0},
		{"recorded for a session that was over", own, gozzard.Sighting{State: gozzard.AttemptDispatched,
			Session: own - 1}, gozzard.LookSettle, gozzard.AttemptPending},
		{"the same, too late", own, gozzard.Sighting{State: gozzard.AttemptDispatched, Session: own - 1, Late: true},
			gozzard.LookSettle, gozzard.AttemptNotExecuted},
		{"the same, given up", own, gozzard.Sighting{State: gozzard.AttemptUnknown, Session: own - 1},
			gozzard.LookSettle, gozzard.AttemptNotExecuted},
	} {
		do, next := gozzard.OnLook(own, tt.registered, tt.sighting)
		if do != tt.do || next != tt.next {
			t.Errorf("%s: %d and %v, want %d and %v", tt.name, do, next, tt.do, tt.next)
		}
		if next != 0 && !slices.Contains(next.Sources(), tt.sighting.State) {
			t.Errorf("%s: %v cannot become %v", tt.name, tt.sighting.State, next)
		}
	}

	if do, _ := gozzard.OnLook(0, 0, gozzard.Sighting{State: gozzard.AttemptPending}); do != gozzard.LookLeave {
		t.Errorf("a server without a session does %d with an agent without one", do)
	}
}
