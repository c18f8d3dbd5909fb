package record_test

import (
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/record"
)

// TestEventFilter: every field that is not empty must fit, and one value of a list is enough.
func TestEventFilter(t *testing.T) {
	at := time.UnixMilli(1_700_000_000_000)
	e := record.Event{Agent: "a", Event: gozzard.Event{Key: gozzard.Key{Namespace: "shop-eu", Name: "web"},
		Kind: gozzard.EventExited, At: at.UnixMilli()}}
	for name, tt := range map[string]struct {
		filter record.EventFilter
		fits   bool
	}{
		"everything":         {record.EventFilter{}, true},
		"a pattern":          {record.EventFilter{Namespaces: []string{"pay", "shop-*"}}, true},
		"another namespace":  {record.EventFilter{Namespaces: []string{"shop"}}, false},
		"a name":             {record.EventFilter{Names: []string{"w?b"}}, true},
		"another name":       {record.EventFilter{Names: []string{"we"}}, false},
		"an agent":           {record.EventFilter{Agents: []gozzard.AgentID{"b", "a"}}, true},
		"another agent":      {record.EventFilter{Agents: []gozzard.AgentID{"b"}}, false},
		"a kind":             {record.EventFilter{Kinds: []gozzard.EventKind{gozzard.EventExited}}, true},
		"another kind":       {record.EventFilter{Kinds: []gozzard.EventKind{gozzard.EventStarted}}, false},
		"since then":         {record.EventFilter{Since: at}, true},
		"since later":        {record.EventFilter{Since: at.Add(time.Millisecond)}, false},
		"all but one fields": {record.EventFilter{Names: []string{"web"}, Since: at.Add(time.Hour)}, false},
	} {
		if got := tt.filter.Fits(&e); got != tt.fits {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestOpenResults: results are open until every attempt has its verdict.
func TestOpenResults(t *testing.T) {
	var r record.TaskResults
	if r.Open() != 0 {
		t.Error("a task without attempts is open")
	}
	for s := gozzard.AttemptPending; s <= gozzard.AttemptInterrupted; s++ {
		r.Attempts = append(r.Attempts, gozzard.Attempt{State: s})
	}
	if n := r.Open(); n != 3 {
		t.Errorf("%d attempts are open", n)
	}
}

// TestPageCheck: a file with damage is not sound, and its text says where the damage is.
func TestPageCheck(t *testing.T) {
	for _, c := range []record.PageCheck{{Damaged: []uint32{7}}, {LogDamaged: true}} {
		if c.Sound() || c.String() == (&record.PageCheck{}).String() {
			t.Errorf("%+v: %s", c, c.String())
		}
	}
	if c := (record.PageCheck{}); !c.Sound() {
		t.Error("a file without damage is not sound")
	}
}
