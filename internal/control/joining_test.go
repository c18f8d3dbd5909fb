package control

import (
	"testing"
	"time"

	"github.com/gozzard/gozzard"
)

func agentNo(i int) gozzard.AgentID { return gozzard.AgentID(string(rune('a' + i))) }

// TestJoiningIsLimited: as many agents join as may. A HELLO that is repeated before its answer counts for nothing, and
// each agent that has joined makes room for another.
func TestJoiningIsLimited(t *testing.T) {
	j := newJoining(2, nil)
	expect := func(what, want, got string) {
		t.Helper()
		if want != got {
			t.Errorf("%s: got rule %q, want %q", what, got, want)
		}
	}

	expect("the first", "", j.begin("a", 1))
	expect("it repeats its HELLO", "hello_repeated", j.begin("a", 1))
	expect("it opens another session", "", j.begin("a", 2))
	expect("the second", "", j.begin("b", 1))
	expect("the third", "hello_joining", j.begin("c", 1))
	if !j.Full() {
		t.Error("it is not full")
	}

	// An answer may be lost: the next HELLO counts.
	j.answered("a")
	expect("its HELLO was answered", "", j.begin("a", 2))

	// Room for one.
	j.end("a")
	j.end("a")
	expect("the third again", "", j.begin("c", 1))
	expect("the fourth", "hello_joining", j.begin("d", 1))
}

// TestSilentJoinersKeepNobodyOut: agents that say HELLO and never report take all places once, for a moment, however often
// they say it.
func TestSilentJoinersKeepNobodyOut(t *testing.T) {
	now := time.Now()
	j := newJoining(4, func() time.Time { return now })
	silent := func() {
		for i := range 8 {
			j.begin(agentNo(i), uint64(now.Unix()))
		}
	}
	silent()
	if rule := j.begin("x", 1); rule == "" {
		t.Error("there was room")
	}

	now = now.Add(joinPatience)
	if rule := j.begin("x", 1); rule != "" {
		t.Errorf("no room: %s", rule)
	}
	for range 20 { // four of them have used up their places, and four get theirs now
		silent()
		now = now.Add(joinPatience / 2)
	}
	if j.Full() {
		t.Error("silent agents took all places again")
	}

	// One that joins after all counts the next time, and all do a minute later.
	now = now.Add(joinForgiven + joinPatience)
	j.end("a")
	silent()
	if !j.Full() {
		t.Error("agents do not count any more")
	}
}
