package supervise_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/supervise"
	"github.com/gozzard/gozzard/test/sim"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var game = gozzard.Key{Namespace: "gse", Name: "game_1"}

// rig is a machine, a supervisor on it, and a journal like the agent's.
type rig struct {
	t       *testing.T
	machine *sim.Host
	host    supervise.Host // machine, or something around it
	s       *supervise.Supervisor
	cancel  context.CancelFunc
	ended   chan struct{}
	skew    atomic.Int64 // of the clock that people see
	forbids atomic.Bool  // the policy, everything

	mu       sync.Mutex
	journal  map[gozzard.Key]supervise.Record
	held     map[gozzard.Key]supervise.Held
	pasts    map[gozzard.Key]supervise.Past
	boot     string
	changes  []gozzard.Status
	removed  []gozzard.Key
	reported []gozzard.Event
}

// bubble runs a test in virtual time. A goroutine that still runs at its end fails the test.
func bubble(t *testing.T, f func(r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		r.up()
		defer r.down()
		f(r)
	})
}

func newRig(t *testing.T, around func(*sim.Host) supervise.Host) *rig {
	r := &rig{t: t, machine: sim.NewHost(), journal: make(map[gozzard.Key]supervise.Record),
		held: make(map[gozzard.Key]supervise.Held), pasts: make(map[gozzard.Key]supervise.Past), boot: "boot-1"}
	r.host = r.machine
	if around != nil {
		r.host = around(r.machine)
	}
	return r
}

// up starts a supervisor with the records of the journal.
func (r *rig) up() {
	ctx, cancel := context.WithCancel(context.Background())
	r.cancel, r.ended = cancel, make(chan struct{})
	r.s = supervise.New(supervise.Options{
		Host: r.host,
		Rand: func() float64 { return 0.5 },
		Permit: func(gozzard.Key, *gozzard.Spec) error {
			if r.forbids.Load() {
				return errForbidden
			}
			return nil
		},
		Now: func() time.Time { return time.Now().Add(time.Duration(r.skew.Load())) },
		Changed: func(s gozzard.Status) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.changes = append(r.changes, s)
		},
		Removed: func(k gozzard.Key) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.removed = append(r.removed, k)
		},
		Held: func(k gozzard.Key, h supervise.Held) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.held[k] = h
		},
		Boot: r.boot,
		Past: func(k gozzard.Key, p supervise.Past) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.pasts[k] = p
		},
		Event: func(e gozzard.Event) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.reported = append(r.reported, e)
		},
	})

	r.mu.Lock()
	recs, held, pasts := slices.Collect(maps.Values(r.journal)), maps.Clone(r.held), maps.Clone(r.pasts)
	r.mu.Unlock()
	r.s.Remember(pasts)
	r.s.Restore(recs, held)
	s, ended := r.s, r.ended
	go func() {
		defer close(ended)
		if err := s.Run(ctx); err != nil {
			r.t.Errorf("run: %v", err)
		}
	}()
}

// down ends the supervisor like an agent that stops.
func (r *rig) down() {
	r.cancel()
	<-r.ended
}

// apply carries out an operation and stores its record. The channel receives the outcome.
func (r *rig) apply(a gozzard.Action, key gozzard.Key, spec []byte) <-chan gozzard.Outcome {
	done := make(chan gozzard.Outcome, 1)
	r.s.Apply(supervise.Op{
		ID: gozzard.OpID{byte(a)}, Ref: gozzard.AttemptRef{Task: gozzard.TaskSeq(a)}, Action: a, Key: key, Spec: spec,
		Begin: func() error { return nil },
		Done: func(out gozzard.Outcome, rec *supervise.Record, removed bool) {
			r.mu.Lock()
			defer r.mu.Unlock()
			if rec != nil {
				r.journal[key] = *rec
			}
			if removed {
				delete(r.journal, key)
				delete(r.pasts, key)
			}
			done <- out
		},
	})

	return done
}

func (r *rig) do(a gozzard.Action, spec []byte) gozzard.Outcome { return <-r.apply(a, game, spec) }

// want carries out an operation and checks its code and whether the process is supervised.
func (r *rig) want(a gozzard.Action, spec []byte, code gozzard.Code, hosted bool) gozzard.Outcome {
	r.t.Helper()
	out := r.do(a, spec)
	if out.Code != code || out.Hosted != hosted {
		r.t.Fatalf("%s: got %s hosted=%v (%s), want %s hosted=%v", a, out.Code, out.Hosted, out.Message, code, hosted)
	}

	synctest.Wait()

	if st := r.status(); st.Hosted != hosted {
		r.t.Fatalf("%s: status says hosted=%v, verdict %v", a, st.Hosted, hosted)
	}
	if rec := r.record(); rec.Hosted != hosted {
		r.t.Fatalf("%s: journal says hosted=%v, verdict %v", a, rec.Hosted, hosted)
	}

	return out
}

func (r *rig) record() supervise.Record {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.journal[game]
}

func (r *rig) status() gozzard.Status {
	st, _ := r.s.Status(game)
	return st
}

func (r *rig) changed() []gozzard.Status {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.changes)
}

// events returns the events since the last call, and checks what all of them must have.
func (r *rig) events() []gozzard.Event {
	r.t.Helper()
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	es := r.reported
	r.reported = nil
	for _, e := range es {
		if e.Key != game || e.At == 0 || e.Seq != 0 || e.Message == "" {
			r.t.Errorf("event %+v", e)
		}
	}
	return es
}

// kinds checks the kinds of the events since the last call.
func (r *rig) kinds(want ...gozzard.EventKind) []gozzard.Event {
	r.t.Helper()
	es := r.events()
	var got []gozzard.EventKind
	for _, e := range es {
		got = append(got, e.Kind)
	}
	if !slices.Equal(got, want) {
		r.t.Fatalf("events %+v, want %v", es, want)
	}
	return es
}

// after lets virtual time pass.
func (r *rig) after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// alive checks how many copies of the process run now.
func (r *rig) alive(n int) {
	r.t.Helper()
	synctest.Wait()
	if live := r.machine.Live(game); len(live) != n {
		r.t.Fatalf("%d live processes, want %d", len(live), n)
	}
}

func (r *rig) end(e supervise.Exit) {
	r.machine.End(game, e)
	synctest.Wait()
}

// definition makes the bytes of a definition whose commands all work.
func definition(change func(*gozzard.Spec)) []byte {
	s := &gozzard.Spec{
		Identity: gozzard.Identity{ProcName: "bash", SetupPath: "/srv", PIDPath: "/srv/pid", User: "root"},
		Control: gozzard.Control{
			Start: "./start.sh", Stop: "./stop.sh", Restart: "./restart.sh", Reload: "./reload.sh", Kill: "./kill.sh",
			Version: "./version.sh",
		},
		Policy: gozzard.DefaultPolicy(),
	}
	if change != nil {
		change(s)
	}
	return gozzard.EncodeSpec(s)
}

func start(text string) []byte {
	return definition(func(s *gozzard.Spec) { s.Control.Start = text })
}

var (
	errCancelled = errors.New("cancelled")
	errForbidden = errors.New("permission: account root is not allowed by local policy")
)
