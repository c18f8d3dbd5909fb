package agent_test

import (
	"errors"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/agent"
	"github.com/gozzard/gozzard/test/sim"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestIdentityIsMadeOnceAndKept(t *testing.T) {
	dir := t.TempDir()
	open := func(id gozzard.AgentID) (gozzard.AgentID, error) {
		a, err := agent.New(agent.Options{Dir: dir, Host: sim.NewHost(), Info: gozzard.HostInfo{Agent: id}})
		if err != nil {
			return "", err
		}
		return a.ID(), a.Close()
	}

	first, err := open("")
	must(t, err)

	if len(first) != 32 || first.Validate() != nil {
		t.Errorf("made %q", first)
	}
	if again, err := open(""); again != first || err != nil {
		t.Errorf("second start: %q, %v", again, err)
	}
	if again, err := open(first); again != first || err != nil {
		t.Errorf("asked for itself: %q, %v", again, err)
	}
	if _, err := open("other"); err == nil || !strings.Contains(err.Error(), "belongs to agent "+string(first)) {
		t.Errorf("asked for another: %v", err)
	}
}

func TestHelloIsRepeatedUntilItsWelcome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.mute = true
		r.start()
		r.connect()
		r.a.Receive(&gozzard.Command{Version: 1, Kind: gozzard.CommandWelcome, Session: 7}) // of another session
		pass(10 * time.Second)
		hellos := r.taken(gozzard.ReportHello)
		if len(hellos) < 4 {
			t.Errorf("%d HELLOs in 11 s", len(hellos))
		}

		for _, h := range hellos {
			if h.Session != 1 || h.Hello.Host.Agent != r.a.ID() || h.Hello.Host.Hostname != "h1" || h.Version != 1 {
				t.Fatalf("HELLO %+v", h)
			}
		}

		if n := len(r.taken(gozzard.ReportStatus)) + len(r.taken(gozzard.ReportHeartbeat)); n > 0 {
			t.Errorf("%d other reports before the Welcome", n)
		}

		r.set(func() { r.mute = false })
		pass(7 * time.Second)
		r.forget()
		pass(31 * time.Second)

		if n := len(r.taken(gozzard.ReportHello)); n > 0 {
			t.Errorf("%d HELLOs in an open session", n)
		}
		n := len(r.taken(gozzard.ReportHeartbeat))
		for _, full := range r.taken(gozzard.ReportStatus) {
			if full.Beat > 0 { // it is a heartbeat too
				n++
			}
		}
		if n < 3 || n > 9 {
			t.Errorf("%d heartbeats in 31 s", n)
		}
	})
}

func TestEveryConnectionAndGreetIsANewSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := online(t)
		expect := func(what string, want uint64) {
			t.Helper()
			pass(time.Second)
			if got := r.hello().Session; got != want {
				t.Errorf("%s: session %d, want %d", what, got, want)
			}
		}

		expect("first", 1)
		r.a.Disconnected()
		r.a.Connected()
		expect("connected again", 2)
		greet := func(s uint64) { r.a.Receive(&gozzard.Command{Version: 1, Kind: gozzard.CommandGreet, Session: s}) }
		greet(2)
		greet(2) // the second one is about a session that is gone
		expect("greeted", 3)
		greet(1)
		expect("greeted about an old session", 3)
		greet(40) // the server knows a newer one: this folder was put back from an old copy
		expect("behind the server", 41)
		greet(1 << 63)
		expect("nonsense", 41)
		r.stop()
		r.start()
		r.connect()
		expect("restarted", 42)
	})
}

// A4: an operation that waited in the socket buffer while the agent was frozen arrives after the lease has ended, and
// answers from before the freeze do not renew the lease.
func TestLeaseIsOverAfterAFreeze(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := online(t)
		r.set(func() { r.noBeats = true })
		pass(5 * time.Second)
		beats := r.taken(gozzard.ReportHeartbeat)
		beat := beats[len(beats)-1]
		start := r.op(gozzard.ActionStart, "ok")
		r.forget()
		r.set(func() { r.mute = true })
		time.Sleep(60 * time.Second) // the buffer, in its order: an answer, then an operation
		r.a.Receive(&gozzard.Command{Version: 1, Kind: gozzard.CommandAck, Session: 1, Beat: beat.Beat})
		r.send(1, start)

		if n := r.host.Commands(key, gozzard.ActionStart); n != 0 || len(r.said(start.ID)) != 0 {
			t.Errorf("ran %d times, said %v", n, phases(r.said(start.ID)))
		}
		if s := r.hello().Session; s != 2 {
			t.Errorf("HELLO of session %d, want 2", s)
		}
		if len(r.hello().Hello.Open) != 0 {
			t.Errorf("HELLO lists %v", phases(r.hello().Hello.Open))
		}

		r.set(func() { r.mute, r.noBeats = false, false })
		pass(6 * time.Second)
		r.do(start)

		if n := r.host.Commands(key, gozzard.ActionStart); n != 1 {
			t.Errorf("in the new session it ran %d times", n)
		}
	})
}

func TestLeaseHoldsWhileHeartbeatsAreAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := online(t)
		pass(10 * time.Minute)
		if s := r.hello().Session; s != 1 {
			t.Errorf("session %d after ten quiet minutes", s)
		}
		start := r.op(gozzard.ActionStart, "ok")
		r.do(start)
		if r.last(start.ID).Outcome.Code != gozzard.CodeOK {
			t.Errorf("said %v", phases(r.said(start.ID)))
		}
	})
}

// A full report is a heartbeat: its answer renews the lease, and no heartbeat follows it for a while.
func TestFullReportsAreHeartbeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.interval = 4 * time.Second
		r.start()
		r.connect()
		pass(10 * time.Second)
		r.forget()
		r.set(func() { r.noBeats = true })
		pass(5 * time.Minute)

		if n := len(r.taken(gozzard.ReportHello)); n > 0 {
			t.Errorf("%d HELLOs although every full report was answered", n)
		}
		if n := len(r.taken(gozzard.ReportHeartbeat)); n > 0 {
			t.Errorf("%d heartbeats beside full reports every 4 s", n)
		}
	})
}

// While heartbeats are answered there is one in 10 s. One that gets no answer is followed by another after 2 s, before
// the server takes the host for lost, and by no third one.
func TestUnansweredHeartbeatIsRepeatedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.interval = time.Hour
		r.start()
		r.connect()
		pass(20 * time.Second)
		r.forget()
		pass(5 * time.Minute)
		if n := len(r.taken(gozzard.ReportHeartbeat)); n < 30 || n > 34 {
			t.Errorf("%d heartbeats in 5 min at rest", n)
		}

		// Begin after an answer, so that the silence is as long as it gets.
		for r.forget(); len(r.taken(gozzard.ReportHeartbeat)) == 0; {
			pass(100 * time.Millisecond)
		}
		r.set(func() { r.noBeats = true })
		r.forget()
		pass(12 * time.Second)
		if n := len(r.taken(gozzard.ReportHeartbeat)); n != 2 {
			t.Errorf("%d heartbeats within 12 s, want one and its repeat", n)
		}

		r.set(func() { r.noBeats = false })
		r.forget()
		pass(5 * time.Minute)
		if n := len(r.taken(gozzard.ReportHello)); n != 1 {
			t.Errorf("%d HELLOs after a lease ended, want 1", n)
		}
	})
}

// Heartbeats come sooner while the server is slow to answer them.
func TestHeartbeatsToASlowServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.interval = time.Hour
		r.start()
		r.connect()
		pass(20 * time.Second)
		r.set(func() { r.noBeats = true })
		beats := func() []*gozzard.Report { return r.taken(gozzard.ReportHeartbeat) }
		answered := 0
		r.forget()
		for begin := time.Now(); time.Since(begin) < 5*time.Minute; {
			for n := len(beats()); len(beats()) == n; {
				pass(50 * time.Millisecond)
			}
			pass(time.Second)
			r.a.Receive(&gozzard.Command{Version: 1, Kind: gozzard.CommandAck, Session: 1, Beat: beats()[len(beats())-1].Beat})
			answered++
		}

		if answered < 43 || answered > 52 { // one in 6 to 6.7 s
			t.Errorf("%d heartbeats in 5 min", answered)
		}
		if n := len(r.taken(gozzard.ReportHello)); n != 0 {
			t.Errorf("%d HELLOs although all heartbeats were answered", n)
		}
	})
}

// The answer to a heartbeat names the time of the next one, within what keeps the lease and does not flood the server.
func TestServerChoosesTheTimeOfHeartbeats(t *testing.T) {
	for _, c := range []struct {
		name        string
		wish        time.Duration
		least, most time.Duration
	}{
		{"obeyed", 6 * time.Second, 6 * time.Second, 6100 * time.Millisecond},
		{"too soon", time.Second, 9 * time.Second, 10100 * time.Millisecond},
		{"too late", 11 * time.Second, 9 * time.Second, 10100 * time.Millisecond},
		{"nonsense", -time.Hour, 9 * time.Second, 10100 * time.Millisecond},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				r.interval = time.Hour
				r.start()
				r.connect()
				pass(20 * time.Second)
				r.set(func() { r.noBeats = true })
				r.forget()
				beats := func() []*gozzard.Report { return r.taken(gozzard.ReportHeartbeat) }

				var last time.Time
				for n := 1; n <= 10; n++ {
					for len(beats()) < n {
						pass(50 * time.Millisecond)
					}
					if gap := time.Since(last); n > 2 && (gap < c.least || gap > c.most) {
						t.Errorf("heartbeat %d came %s after the one before, want %s to %s", n, gap, c.least, c.most)
					}
					last = time.Now()
					r.a.Receive(&gozzard.Command{Version: 1, Kind: gozzard.CommandAck, Session: 1, Beat: beats()[n-1].Beat, NextBeat: c.wish})
				}
			})
		})
	}
}

// An older server answers full reports without the number of the heartbeat: heartbeats follow, and the lease holds.
func TestHeartbeatsToAnOlderServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.interval, r.oldRounds = 4*time.Second, true
		r.start()
		r.connect()
		pass(10 * time.Second)
		r.forget()
		pass(5 * time.Minute)

		if n := len(r.taken(gozzard.ReportHello)); n > 0 {
			t.Errorf("%d HELLOs although every heartbeat was answered", n)
		}
		if n := len(r.taken(gozzard.ReportHeartbeat)); n < 40 {
			t.Errorf("%d heartbeats in 5 min", n)
		}
	})
}

// A9: an agent with a state folder that was restored from an old copy reports a position before the one that the
// server saw, however often the agent is started before the server hears it.
func TestRollbackIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := online(t)
		backup := t.TempDir()
		r.stop()
		must(t, copyDir(r.dir, backup))
		r.start()
		r.connect()
		r.do(r.op(gozzard.ActionRegister, "ok"))
		pass(10 * time.Second)
		beats := r.taken(gozzard.ReportHeartbeat)
		seen := beats[len(beats)-1].Journal
		r.stop()

		r.dir = backup
		r.mute = true
		for range 4 {
			r.start()
			for range 3 { // each connection writes records
				r.connect()
			}
			if h := r.hello(); h.Journal.ID != seen.ID || h.Journal.LSN >= seen.LSN {
				t.Errorf("HELLO has lsn %d, the server saw %d", h.Journal.LSN, seen.LSN)
			}
			r.stop()
		}
	})
}

// Without a rollback the reported position never falls.
func TestPositionNeverFalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		for range 3 {
			r.start()
			r.connect()
			r.do(r.op(gozzard.ActionRegister, "ok"))
			pass(7 * time.Second)
			r.a.Disconnected()
			r.connect()
			r.stop()
		}

		r.mu.Lock()
		defer r.mu.Unlock()
		var last uint64
		for _, rep := range r.reports {
			if rep.Journal.LSN < last {
				t.Fatalf("lsn %d after %d", rep.Journal.LSN, last)
			}
			last = rep.Journal.LSN
		}
	})
}

func TestFailedSyncEndsTheAgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		var got error
		r.o.Fatal = func(err error) { got = err }
		boom := errors.New("input/output error")
		var broken atomic.Bool
		r.o.Sync = func(f *os.File) error {
			if broken.Load() {
				return boom
			}
			return f.Sync()
		}

		r.start()
		broken.Store(true)
		r.a.Connected()
		synctest.Wait()
		err := <-r.ended
		r.cancel()
		r.cancel = nil

		if !errors.Is(err, boom) || !errors.Is(got, boom) {
			t.Errorf("Run ended with %v, Fatal got %v", err, got)
		}
		if n := len(r.taken(gozzard.ReportHello)); n != 0 {
			t.Errorf("%d HELLOs of a session that is not durable", n)
		}
	})
}

// A13: a slow disk makes operations slow. It does not make the host look dead.
func TestSlowDiskDoesNotStopHeartbeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		var slow atomic.Bool
		r.o.Sync = func(f *os.File) error {
			if slow.Load() {
				time.Sleep(40 * time.Second)
			}
			return f.Sync()
		}

		r.start()
		r.connect()
		r.forget()
		slow.Store(true)
		start := r.op(gozzard.ActionStart, "ok")
		r.do(start)
		pass(39 * time.Second)

		if n := r.host.Commands(key, gozzard.ActionStart); n != 0 {
			t.Errorf("ran %d times before its intent was durable", n)
		}
		if n := len(r.taken(gozzard.ReportHeartbeat)); n < 3 { // one in 10 s, unless a full report was one
			t.Errorf("%d heartbeats in 39 s", n)
		}

		pass(time.Minute)

		if n := len(r.taken(gozzard.ReportHello)); n != 0 {
			t.Errorf("the session was given up")
		}
		if got := r.last(start.ID); got.Outcome.Code != gozzard.CodeOK {
			t.Errorf("said %v", phases(r.said(start.ID)))
		}
	})
}

// The lease counts from when the answered heartbeat was sent, not from when its answer came.
func TestLateAnswerRenewsLittle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := online(t)
		r.set(func() { r.noBeats = true })
		r.forget()
		pass(12 * time.Second)
		beats := r.taken(gozzard.ReportHeartbeat)
		if len(beats) == 0 {
			t.Fatal("no heartbeat")
		}

		r.set(func() { r.mute = true })
		pass(time.Second) // within the lease of the last answer
		r.a.Receive(&gozzard.Command{Version: 1, Kind: gozzard.CommandAck, Session: 1, Beat: beats[0].Beat})
		pass(13 * time.Second) // within 15 s of the answer, beyond 15 s of its heartbeat
		start := r.op(gozzard.ActionStart, "ok")
		r.send(1, start)

		if n := r.host.Commands(key, gozzard.ActionStart); n != 0 || r.hello().Session != 2 {
			t.Errorf("ran %d times, session %d", n, r.hello().Session)
		}
	})
}

// An agent that lost its state counts its sessions from the beginning. An answer to its first life must not open the
// first session of its second.
func TestTT2WelcomeOfAnotherRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.mute = true
		r.start()
		r.connect()
		hello := r.hello()
		op := r.op(gozzard.ActionStart, "ok")
		for _, run := range []uint64{0, hello.Hello.Run + 1} {
			r.a.Receive(&gozzard.Command{Version: 1, Kind: gozzard.CommandWelcome, Session: hello.Session, Beat: run})
			r.do(op)
		}

		pass(time.Second)

		if n := r.host.Starts(key); n != 0 {
			t.Fatalf("%d processes were started in a session that was not opened", n)
		}

		r.a.Receive(&gozzard.Command{Version: 1, Kind: gozzard.CommandWelcome, Session: hello.Session,
			Beat: hello.Hello.Run})
		r.do(op)
		pass(time.Second)

		if n := r.host.Starts(key); n != 1 {
			t.Fatalf("%d processes were started in an open session", n)
		}
	})
}
