package delivery_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
)

// host is how a host of a test answers.
type host uint8

const (
	prompt host = iota
	slow        // after three seconds
	bursts      // every two seconds
	twice       // everything twice
	dead
	hostKinds
)

// answerAt is when a host answers an operation that comes now.
func (h host) answerAt(now time.Time) time.Time {
	switch h {
	case slow:
		return now.Add(3 * time.Second)
	case bursts:
		return now.Truncate(2 * time.Second).Add(2 * time.Second)
	}
	return now
}

// V18: hosts that answer late, in bursts and everything twice, a fifth of the fleet that is dead and not known to be, and a
// disk that takes 200 ms for each write: every attempt gets its true verdict, only what is not answered is repeated, a few
// times, and no repeated verdict is written again. The dead hosts get their verdicts when they are back.
func TestV18HostsOfAllKinds(t *testing.T) {
	const hosts = 500
	inWorld(t, 256, func(w *world) {
		w.fsync = 200 * time.Millisecond
		var agents []gozzard.AgentID
		kinds := map[gozzard.AgentID]host{}
		for i := range hosts {
			id := gozzard.AgentID(fmt.Sprint("agent-", i))
			agents, kinds[id] = append(agents, id), host(i%int(hostKinds))
			w.connect(id, 1)
		}
		list := w.launch(0, agents...)
		sent := w.playHosts(kinds, 30*time.Second)

		// The others have their verdicts, and those of the dead are open.
		for i, a := range list {
			want := gozzard.AttemptOK
			if kinds[agents[i]] == dead {
				want = gozzard.AttemptUnknown
			}
			if s := w.state(a.Op); s != want {
				t.Fatalf("%s, kind %d: %v, want %v", agents[i], kinds[agents[i]], s, want)
			}
		}

		// What was answered at once was sent once, and the rest a few times.
		for id, n := range sent {
			if most := map[host]int{prompt: 1, twice: 1}[kinds[id]]; most > 0 && n > most || n > 5 {
				t.Errorf("%s, kind %d: the operation was sent %d times", id, kinds[id], n)
			}
		}
		w.mu.Lock()
		rows := w.rowsN
		w.mu.Unlock()
		if rows > hosts { // a verdict of each, and "unknown" of the dead
			t.Errorf("%d rows were written for %d attempts", rows, hosts)
		}

		// The dead come back: what they did not get did not happen.
		for i, a := range list {
			if kinds[agents[i]] != dead {
				continue
			}
			w.connect(agents[i], 2)
			if s := w.state(a.Op); s != gozzard.AttemptNotExecuted {
				t.Fatalf("%s came back: %v", agents[i], s)
			}
		}
	})
}

// playHosts answers for hosts in some time. It returns how often each got its operation.
func (w *world) playHosts(kinds map[gozzard.AgentID]host, d time.Duration) (sent map[gozzard.AgentID]int) {
	type answer struct {
		at time.Time
		to command
	}
	sent = map[gozzard.AgentID]int{}
	var answers []answer
	seen, beat := 0, time.Now()
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		// Beats of those that live.
		now := time.Now()
		if now.Sub(beat) >= time.Second {
			beat = now
			for id, kind := range kinds {
				if kind != dead {
					w.Heard(id, 1, now)
				}
			}
		}

		// What came.
		got := w.commands(gozzard.CommandOperate)
		for _, c := range got[seen:] {
			sent[c.to]++
			if kind := kinds[c.to]; kind != dead {
				answers = append(answers, answer{kind.answerAt(now), c})
			}
		}
		seen = len(got)

		// Answers that are due.
		var later []answer
		for _, a := range answers {
			if a.at.After(now) {
				later = append(later, a)
				continue
			}
			w.report(a.to.to, 1, a.to.Ops[0].ID, gozzard.PhaseDone)
			if kinds[a.to.to] == twice {
				w.report(a.to.to, 1, a.to.Ops[0].ID, gozzard.PhaseDone)
			}
		}
		answers = later
	}
	return sent
}
