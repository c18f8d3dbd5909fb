package gozzard_test

import (
	"testing"

	"github.com/gozzard/gozzard"
)

func TestActionNames(t *testing.T) {
	for a := gozzard.ActionStart; a <= gozzard.ActionUnregister; a++ {
		got, err := gozzard.ParseAction(a.String())
		if err != nil || got != a {
			t.Errorf("%v is read back as %v: %v", a, got, err)
		}
		if got, err := gozzard.ParseAction(a.Stored()); err != nil || got != a {
			t.Errorf("%v is stored as %s and read back as %v: %v", a, a.Stored(), got, err)
		}
	}

	for _, s := range []string{"", "none", "START", "start ", "action(99)"} {
		if a, err := gozzard.ParseAction(s); err == nil {
			t.Errorf("%q is read as %v", s, a)
		}
	}

	// People read new words. What is stored has the words of the first version.
	for a, words := range map[gozzard.Action][2]string{gozzard.ActionHost: {"manage", "host"},
		gozzard.ActionUnhost: {"unmanage", "unhost"}, gozzard.ActionStart: {"start", "start"}} {
		if a.String() != words[0] || a.Stored() != words[1] {
			t.Errorf("%s is stored as %s, not %v", a, a.Stored(), words)
		}
	}

	if got := gozzard.Action(99).String(); got != "action(99)" {
		t.Errorf("action 99 is called %q", got)
	}
}

func TestSupersedes(t *testing.T) {
	wanted := map[gozzard.Action]bool{gozzard.ActionStart: true, gozzard.ActionStop: true, gozzard.ActionHost: true,
		gozzard.ActionUnhost: true}
	for newer := gozzard.ActionNone; newer <= gozzard.ActionUnregister; newer++ {
		for older := gozzard.ActionNone; older <= gozzard.ActionUnregister; older++ {
			if got := newer.Supersedes(older); got != (wanted[newer] && wanted[older]) {
				t.Errorf("%v supersedes %v: %v", newer, older, got)
			}
		}
	}
}

func TestOnlyQueriesAreReadOnly(t *testing.T) {
	for a := gozzard.ActionNone; a <= gozzard.ActionUnregister; a++ {
		if a.ReadOnly() != (a == gozzard.ActionQuery) {
			t.Errorf("%v is read-only: %v", a, a.ReadOnly())
		}
		if a.ReadOnly() && a.RunsCommand() {
			t.Errorf("%v is read-only and runs a command", a)
		}
	}
}
