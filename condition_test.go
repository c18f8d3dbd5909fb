package gozzard_test

import (
	"testing"

	"github.com/gozzard/gozzard"
)

func TestParseCondition(t *testing.T) {
	for _, c := range gozzard.Conditions() {
		if got, ok := gozzard.ParseCondition(c.String()); !ok || got != c {
			t.Errorf("%s is read as %s, %t", c, got, ok)
		}
	}
	for _, word := range []string{"crash-loop", "crash_loop", "crash loop"} {
		if got, ok := gozzard.ParseCondition(word); !ok || got != gozzard.ConditionCrashLoop {
			t.Errorf("%q is read as %s, %t", word, got, ok)
		}
	}
	for _, word := range []string{"", "up", "Running", "running "} {
		if got, ok := gozzard.ParseCondition(word); ok {
			t.Errorf("%q is read as %s", word, got)
		}
	}
}

// TestConditionOf: a report of an agent of an earlier version, or a forged one, never shows a state that its run state
// contradicts by its kind.
func TestConditionOf(t *testing.T) {
	for _, tc := range []struct {
		status gozzard.Status
		want   gozzard.Condition
	}{
		{gozzard.Status{}, gozzard.ConditionUnregistered},
		{gozzard.Status{State: gozzard.StateRunning}, gozzard.ConditionRunning},
		{gozzard.Status{State: gozzard.StateStopped}, gozzard.ConditionStopped},
		{gozzard.Status{State: gozzard.StateStopped, Condition: gozzard.ConditionCrashLoop}, gozzard.ConditionCrashLoop},
		{gozzard.Status{State: gozzard.StateRunning, Condition: gozzard.ConditionUnhealthy}, gozzard.ConditionUnhealthy},
		{gozzard.Status{State: gozzard.StateRunning, Condition: gozzard.ConditionUnregistered}, gozzard.ConditionRunning},
		{gozzard.Status{State: gozzard.StateStopped, Condition: 77}, gozzard.ConditionStopped},
		{gozzard.Status{Condition: gozzard.ConditionRunning}, gozzard.ConditionUnregistered},
	} {
		if got := tc.status.ConditionOf(); got != tc.want {
			t.Errorf("%+v is %s, want %s", tc.status, got, tc.want)
		}
	}
}

func TestShownKind(t *testing.T) {
	for want, p := range map[gozzard.ShownKind]gozzard.Policy{
		gozzard.ShownResident: {Kind: gozzard.KindPeriodic, CrontabRule: " "},
		gozzard.ShownPeriodic: {Kind: gozzard.KindPeriodic, CrontabRule: "* * * * *"},
		gozzard.ShownOneShot:  {Kind: gozzard.KindOneShot},
	} {
		if got := p.Shown(); got != want {
			t.Errorf("%+v is %s, want %s", p, got, want)
		}
	}
}
