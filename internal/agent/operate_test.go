package agent_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gozzard/gozzard"
)

func TestDuplicatesRunOnceAndAreAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := online(t)
		r.set(func() { r.noAcks = true })
		start := r.op(gozzard.ActionStart, "sleep 5s")
		r.do(start)

		for range 3 {
			r.do(start)
			pass(10 * time.Millisecond)
		}

		if got := r.last(start.ID); got.Phase != gozzard.PhaseBegun || got.Ref != start.Ref {
			t.Errorf("a repeat while it runs is answered %+v", got)
		}

		pass(10 * time.Second)
		r.do(start, start)
		pass(10 * time.Millisecond)
		got := r.last(start.ID)
		if got.Phase != gozzard.PhaseDone || got.Outcome.Code != gozzard.CodeOK || got.Ref != start.Ref {
			t.Errorf("said %v", phases(r.said(start.ID)))
		}

		r.ack(start.ID)
		r.forget()
		pass(20 * time.Second)

		if n := len(r.said(start.ID)); n != 0 {
			t.Errorf("sent %d times after it was acknowledged", n)
		}

		r.do(start) // late copy of an operation that is forgotten: its generation is old
		pass(10 * time.Millisecond)

		if got := r.last(start.ID); got.Phase != gozzard.PhaseNever || got.Outcome.Code != gozzard.CodeSuperseded {
			t.Errorf("late copy is answered %+v", got)
		}
		if n := r.host.Commands(key, gozzard.ActionStart); n != 1 {
			t.Errorf("ran %d times", n)
		}
	})
}

func TestVerdictsAreRepeatedUntilAcknowledged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := online(t)
		r.set(func() { r.noAcks = true })
		reg := r.op(gozzard.ActionRegister, "ok")
		r.do(reg)
		pass(10 * time.Millisecond)

		if n := len(r.said(reg.ID)); n != 1 {
			t.Errorf("sent %d times at once", n)
		}

		pass(20 * time.Second)

		if n := len(r.said(reg.ID)); n < 5 || n > 9 {
			t.Errorf("sent %d times in 20 s", n)
		}

		r.a.Disconnected()
		r.connect()
		open := r.hello().Hello.Open
		if len(open) != 1 || open[0].ID != reg.ID || open[0].Phase != gozzard.PhaseDone ||
			open[0].Outcome.Code != gozzard.CodeOK {
			t.Errorf("HELLO lists %+v", open)
		}

		r.ack(reg.ID)
		r.a.Disconnected()
		r.connect()

		if open := r.hello().Hello.Open; len(open) != 0 {
			t.Errorf("HELLO lists %v after the acknowledgement", phases(open))
		}
	})
}

// A server that takes long to acknowledge gets each verdict once, as soon as the agent knows how long it takes.
func TestRepeatsFollowAcknowledgements(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := online(t)
		r.set(func() { r.noAcks = true })
		var sent []int
		for range 12 {
			op := r.op(gozzard.ActionReload, "ok")
			r.do(op)
			pass(4 * time.Second)
			sent = append(sent, len(r.said(op.ID)))
			r.ack(op.ID)
			pass(time.Second)
		}

		if sent[0] < 2 {
			t.Errorf("the first verdict was sent %d times in 4 s", sent[0])
		}
		for i, n := range sent[4:] {
			if n != 1 {
				t.Errorf("verdict %d was sent %d times, though an acknowledgement takes 4 s: %v", i+4, n, sent)
			}
		}
	})
}

// A report says how long the agent held the operation, so that the server can measure the way alone.
func TestReportsSayHowLongTheyWereHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := online(t)
		op := r.op(gozzard.ActionStart, "sleep 3s")
		r.do(op)
		pass(10 * time.Second)
		if held := r.last(op.ID).Held; held < 3*time.Second || held > 5*time.Second {
			t.Errorf("held for %v", held)
		}
	})
}

func TestOtherSessionsAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.mute = true
		r.start()
		r.connect()
		start := r.op(gozzard.ActionStart, "ok")
		r.send(1, start) // before the Welcome there is no lease
		r.set(func() { r.mute = false })
		pass(6 * time.Second)

		for _, s := range []uint64{0, 2, 1 << 63} {
			r.send(s, start)
		}

		r.a.Disconnected()
		r.connect()
		r.send(1, start)
		r.a.Receive(&gozzard.Command{Version: 1, Kind: gozzard.CommandCancel, Session: 1,
			Cancel: []gozzard.OpID{start.ID}})
		pass(time.Second)

		if n := r.host.Commands(key, gozzard.ActionStart); n != 0 || len(r.said(start.ID)) != 0 {
			t.Errorf("ran %d times, said %v", n, phases(r.said(start.ID)))
		}

		r.send(2, start)

		if n := r.host.Commands(key, gozzard.ActionStart); n != 1 {
			t.Errorf("ran %d times in its session", n)
		}
	})
}

// HELLO carries the newest generation of all processes: of operations that are done or queued, also after a restart of
// the agent and for processes that are not registered any more.
func TestHelloCarriesTheNewestGeneration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := online(t)
		if got := r.hello().Hello.NewestGen; got != 0 {
			t.Errorf("an agent without operations says %d", got)
		}

		again := func(what string, want uint64) {
			t.Helper()
			r.stop()
			r.start()
			r.connect()
			if got := r.hello().Hello.NewestGen; got != want {
				t.Errorf("%s: HELLO says %d, want %d", what, got, want)
			}
		}

		reg := r.op(gozzard.ActionRegister, "ok")
		reg.Gen = 1000
		r.do(reg)
		pass(time.Second)
		again("registered", 1000)

		unreg := r.op(gozzard.ActionUnregister, "")
		unreg.Gen = 1 << 40
		r.do(unreg)
		pass(time.Second)
		again("unregistered", 1<<40)
	})
}

// The newest generation of HELLO includes operations that wait for their turn.
func TestHelloCountsQueuedGenerations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := online(t)
		first, second := r.op(gozzard.ActionStart, "sleep 5s"), r.op(gozzard.ActionReload, "ok")
		second.Gen = 500
		r.do(first, second)
		r.a.Disconnected()
		r.connect()
		if got := r.hello().Hello.NewestGen; got != 500 {
			t.Errorf("HELLO says %d while generation 500 waits", got)
		}
	})
}

func TestOldIntentComesTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := online(t)
		first, second := r.op(gozzard.ActionStart, "ok"), r.op(gozzard.ActionRegister, "ok")
		r.do(second)
		r.do(first) // overtaken on the way
		pass(time.Second)
		got := r.last(first.ID)
		want := fmt.Sprintf("not executed: this operation has generation %d, but the host has generation %d on record",
			first.Gen, second.Gen)
		if got.Phase != gozzard.PhaseNever || got.Outcome.Code != gozzard.CodeSuperseded ||
			!strings.HasPrefix(got.Outcome.Message, want) {
			t.Errorf("said %+v", got)
		}

		unreg := r.op(gozzard.ActionUnregister, "")
		r.do(unreg)
		pass(time.Second)
		r.stop()
		r.start()
		r.connect()
		late := gozzard.Op{ID: gozzard.NewOpID(), Gen: second.Gen, Action: gozzard.ActionStart, Key: key,
			Spec: spec("ok")}
		r.do(late) // the newest generation outlives the registration and the agent
		pass(time.Second)

		if got := r.last(late.ID); got.Phase != gozzard.PhaseNever {
			t.Errorf("said %+v", got)
		}
		if n := r.host.Commands(key, gozzard.ActionStart); n != 0 {
			t.Errorf("ran %d times", n)
		}
	})
}

// Several operations wait for one process of which none has begun yet: each of them waited for the others.
func TestCancelBetweenTwoOperations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := online(t)
		r.set(func() { r.noAcks = true })
		first, second := r.op(gozzard.ActionReload, ""), r.op(gozzard.ActionReload, "")
		r.a.Receive(&gozzard.Command{Version: 1, Kind: gozzard.CommandOperate, Session: 1, Ops: []gozzard.Op{first, second}})
		r.a.Receive(&gozzard.Command{Version: 1, Kind: gozzard.CommandCancel, Session: 1, Cancel: []gozzard.OpID{second.ID}})
		pass(10 * time.Millisecond)

		if got := r.last(second.ID); got.Phase != gozzard.PhaseNever ||
			!strings.Contains(got.Outcome.Message, "waited for other operations on the same process") {
			t.Errorf("said %+v", got)
		}
	})
}

func TestCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := online(t)
		r.set(func() { r.noAcks = true })
		running, queued, absent := r.op(gozzard.ActionStart, "sleep 20s"), r.op(gozzard.ActionReload, ""),
			r.op(gozzard.ActionReload, "")
		r.do(running, queued)
		r.cancelOps(running.ID, queued.ID, absent.ID)
		pass(10 * time.Millisecond)

		for id, want := range map[gozzard.OpID]gozzard.Phase{
			running.ID: gozzard.PhaseBegun, queued.ID: gozzard.PhaseNever, absent.ID: gozzard.PhaseNever,
		} {
			if got := r.last(id); got.Phase != want {
				t.Errorf("said %v, want %s", phases(r.said(id)), want)
			}
		}

		if got := r.last(queued.ID).Outcome; got.Code != gozzard.CodeBusy ||
			!strings.Contains(got.Message, "waited for other operations on the same process") {
			t.Errorf("the queued one: %+v", got)
		}
		if got := r.last(absent.ID).Outcome; got.Code != gozzard.CodeExpired ||
			!strings.Contains(got.Message, "before it reached the host") {
			t.Errorf("the absent one: %+v", got)
		}

		r.ack(queued.ID, absent.ID)
		r.do(absent, queued) // the cancelled one arrives at last, after its tombstone was acknowledged
		pass(time.Minute)
		r.cancelOps(absent.ID)
		pass(10 * time.Millisecond)

		if got := r.last(absent.ID); got.Phase != gozzard.PhaseNever {
			t.Errorf("said %v", phases(r.said(absent.ID)))
		}
		if got := r.last(running.ID); got.Phase != gozzard.PhaseDone || got.Outcome.Code != gozzard.CodeOK {
			t.Errorf("said %v", phases(r.said(running.ID)))
		}
		if n := r.host.Commands(key, gozzard.ActionReload); n != 0 {
			t.Errorf("cancelled operations ran %d times", n)
		}

		r.stop()
		r.start()
		r.connect()
		r.send(1, absent)

		if n := r.host.Commands(key, gozzard.ActionReload); n != 0 {
			t.Errorf("ran %d times after a restart", n)
		}
	})
}

func TestQueriesNeedNoJournal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := online(t)
		r.do(r.op(gozzard.ActionStart, "ok"))
		pass(12 * time.Second)
		beats := r.taken(gozzard.ReportHeartbeat)
		before := beats[len(beats)-1].Journal.LSN
		q := r.op(gozzard.ActionQuery, "")
		q.Gen = 0
		r.do(q, q)
		pass(12 * time.Second)
		got := r.last(q.ID)
		if got.Phase != gozzard.PhaseDone || got.Outcome.Detail == nil || got.Outcome.Detail.PID <= 0 {
			t.Errorf("said %+v", got)
		}

		beats = r.taken(gozzard.ReportHeartbeat)
		if after := beats[len(beats)-1].Journal.LSN; after != before {
			t.Errorf("lsn went from %d to %d", before, after)
		}
	})
}

func TestHostileCommands(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := online(t)
		r.a.Receive(nil)
		r.a.Receive(&gozzard.Command{})
		r.a.Receive(&gozzard.Command{Version: 99, Kind: gozzard.CommandOperate, Session: 1,
			Ops: []gozzard.Op{r.op(gozzard.ActionStart, "ok")}})
		r.a.Receive(&gozzard.Command{Version: 1, Kind: 200, Session: 1})
		r.a.Receive(&gozzard.Command{Version: 1, Kind: gozzard.CommandAck, Session: 1, Beat: 1 << 63,
			AckRound: 1 << 63, Acked: make([]gozzard.OpID, 9)})
		r.a.Receive(&gozzard.Command{Version: 1, Kind: gozzard.CommandWelcome, Session: 1, Interval: -1})
		huge := strings.Repeat("x", 1<<20)
		for name, change := range map[string]func(*gozzard.Op){
			"no action":      func(o *gozzard.Op) { o.Action = gozzard.ActionNone },
			"unknown action": func(o *gozzard.Op) { o.Action = 250 },
			"no id":          func(o *gozzard.Op) { o.ID = gozzard.OpID{} },
			"no name":        func(o *gozzard.Op) { o.Key.Name = "" },
			"huge name":      func(o *gozzard.Op) { o.Key.Name = huge },
			"path as name":   func(o *gozzard.Op) { o.Key.Name = "../../etc" },
			"bad bytes":      func(o *gozzard.Op) { o.Key.Namespace = "\xff\x00" },
			"huge spec":      func(o *gozzard.Op) { o.Spec = []byte(huge + huge) },
			"bad spec":       func(o *gozzard.Op) { o.Spec = []byte(`{"identity":7}`) },
			"huge label":     func(o *gozzard.Op) { o.Labels = map[string]string{"a": huge} },
		} {
			op := r.op(gozzard.ActionStart, "ok")
			change(&op)
			r.do(op)
			pass(10 * time.Millisecond)
			got := r.last(op.ID)
			if name == "bad spec" { // only looked at when its turn has come
				if got.Phase != gozzard.PhaseDone || got.Outcome.Code != gozzard.CodeRefused {
					t.Errorf("%s: said %+v", name, got)
				}
				continue
			}
			if got.Phase != gozzard.PhaseNever || got.Outcome.Code != gozzard.CodeRefused &&
				got.Outcome.Code != gozzard.CodeUnknownAction || got.Outcome.Message == "" {
				t.Errorf("%s: said %+v", name, got)
			}
		}

		if keys := r.host.Keys(); len(keys) != 0 {
			t.Errorf("something ran for %v", keys)
		}

		r.stop()
		r.start() // and the journal is none the worse
	})
}

// A1, A3: the verdict after a crash at each point of an operation is true, and nothing runs twice by itself.
func TestCrashAtEachPoint(t *testing.T) {
	for _, c := range []struct {
		point string
		phase gozzard.Phase // reported by the next life
		ran   int
	}{
		{"intent", gozzard.PhaseAbsent, 0},
		{"after-intent", gozzard.PhaseInterrupted, 0},
		{"after-effect", gozzard.PhaseInterrupted, 1},
		{"after-done", gozzard.PhaseDone, 1},
	} {
		t.Run(c.point, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				crashed := filepath.Join(t.TempDir(), "crashed")
				armed, ran := false, -1
				r.o.Failpoint = func(name string) {
					if armed && name == c.point {
						must(t, copyDir(r.dir, crashed))
						ran = r.host.Commands(key, gozzard.ActionReload)
					}
				}

				r.start()
				r.connect()
				r.do(r.op(gozzard.ActionStart, "ok"))
				pass(time.Second)
				armed = true
				reload := r.op(gozzard.ActionReload, "")
				r.do(reload)
				pass(time.Second)
				r.stop()

				if ran != c.ran {
					t.Errorf("at the crash the command had run %d times, want %d", ran, c.ran)
				}

				armed = false
				r.dir = crashed
				r.forget()
				r.set(func() { r.noAcks = true })

				for life := range 2 { // the second finds what the first wrote
					r.start()
					r.connect()
					phase := gozzard.PhaseAbsent
					for _, o := range r.hello().Hello.Open {
						if o.ID == reload.ID {
							phase = o.Phase
							if o.Ref != reload.Ref || o.Outcome.Code == "" {
								t.Errorf("reported %+v", o)
							}
						}
					}
					if phase != c.phase {
						t.Errorf("life %d reports %s, want %s", life, phase, c.phase)
					}
					if len(r.host.Live(key)) != 1 || r.a.Processes() != 1 {
						t.Errorf("life %d: %d processes live, %d managed", life, len(r.host.Live(key)), r.a.Processes())
					}
					if c.phase != gozzard.PhaseAbsent {
						r.do(reload) // a repeat in the new session is answered, not run
					}
					r.stop()
				}

				// done by the first life, which did not really end
				if n := r.host.Commands(key, gozzard.ActionReload); n != 1 {
					t.Errorf("the command ran %d times", n)
				}
			})
		})
	}
}

// Without a link, the agent supervises the processes that are on its disk.
func TestOfflineLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := online(t)
		r.do(r.op(gozzard.ActionStart, "ok"))
		pass(time.Second)
		r.do(r.op(gozzard.ActionHost, ""))
		pass(time.Second)
		r.stop()

		if len(r.host.Live(key)) != 1 {
			t.Fatal("the end of the agent ended the process")
		}

		r.host.Reboot()
		r.start() // without a connection
		pass(time.Minute)

		if n := len(r.host.Live(key)); n != 1 {
			t.Errorf("%d processes live after the reboot", n)
		}

		r.connect()

		if st := r.taken(gozzard.ReportStatus); len(st) == 0 {
			t.Error("no status was sent")
		}
	})
}

func TestOpenOperationsOutliveTheSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := online(t)
		running, queued := r.op(gozzard.ActionStart, "sleep 30s"), r.op(gozzard.ActionReload, "")
		r.do(running, queued)
		r.a.Disconnected()
		r.connect()
		var got []string
		for _, o := range r.hello().Hello.Open {
			got = append(got, o.Phase.String())
		}

		slices.Sort(got)

		if !slices.Equal(got, []string{"begun", "queued"}) {
			t.Errorf("HELLO lists %v", got)
		}

		pass(40 * time.Second)

		for _, o := range []gozzard.Op{running, queued} {
			if res := r.last(o.ID); res.Phase != gozzard.PhaseDone || res.Outcome.Code != gozzard.CodeOK {
				t.Errorf("said %v", phases(r.said(o.ID)))
			}
		}
	})
}
