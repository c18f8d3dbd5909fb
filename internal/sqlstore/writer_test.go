package sqlstore

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/record"
)

// openNew opens a new record in a file until the end of the test.
func openNew(t *testing.T, o Options) *Store {
	t.Helper()
	s, err := OpenSQLite(t.Context(), filepath.Join(t.TempDir(), "record.db"), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// occupy keeps the writer busy until release is called. What is submitted meanwhile waits in its queue.
func occupy(t *testing.T, s *Store) (release func()) {
	t.Helper()
	began, free, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- s.w.submit(t.Context(), &job{op: "a test", run: func(context.Context, *conn) error {
			close(began)
			<-free
			return nil
		}})
	}()
	<-began

	return func() {
		close(free)
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// TestSharedCommit: calls that wait share a commit, a call that fails undoes only what it wrote itself, and a call that
// its caller cancelled does not run. It uses the writer directly, because no call of the store can be made to fail half
// way.
func TestSharedCommit(t *testing.T) {
	var mu sync.Mutex
	commits := 0
	s := openNew(t, Options{Observe: func(op string, _ time.Duration, _ error) {
		mu.Lock()
		defer mu.Unlock()
		if op == "commit" {
			commits++
		}
	}})

	write := func(agent string, fail error) *job {
		return &job{op: "a test", rows: 1, run: func(ctx context.Context, c *conn) error {
			if _, err := c.change(ctx,
				`INSERT INTO hosts (agent_id, session, last_seen, info) VALUES ($1, 1, 0, '{}')`, agent); err != nil {
				return err
			}
			if _, err := c.change(ctx,
				`INSERT INTO host_journals (agent_id, journal_id, lsn, since) VALUES ($1, $2, 0, 0)`, agent,
				journalID([16]byte{})); err != nil {
				return err
			}
			return fail
		}}
	}

	release := occupy(t, s)
	var wg sync.WaitGroup
	half := errors.New("half done")
	ctx, cancel := context.WithCancel(t.Context())
	results := make([]error, 4)
	for i, j := range []*job{write("one", nil), write("bad", half), write("two", nil), write("gone", nil)} {
		wg.Go(func() {
			c := t.Context()
			if i == 3 {
				c = ctx
			}
			results[i] = s.w.submit(c, j)
		})
	}

	for len(s.w.queue) < 4 {
		time.Sleep(time.Millisecond)
	}

	cancel()

	for !peekCancelled(s.w) { // the writer must not go on before that
		time.Sleep(time.Millisecond)
	}

	release()
	wg.Wait()

	if results[0] != nil || results[2] != nil || !errors.Is(results[1], half) ||
		!errors.Is(results[3], context.Canceled) {
		t.Fatalf("answers: %v", results)
	}

	hosts, err := s.Hosts(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	agents := []gozzard.AgentID{}
	for _, h := range hosts {
		agents = append(agents, h.Info.Agent)
	}

	if !slices.Equal(agents, []gozzard.AgentID{"one", "two"}) {
		t.Fatalf("recorded: %v", agents)
	}

	mu.Lock()
	defer mu.Unlock()

	if commits != 2 {
		t.Fatalf("%d commits, want one for the first call and one for all others", commits)
	}
}

// peekCancelled reports whether a queued job was cancelled by its caller. It takes every job out of the queue and
// puts it back.
func peekCancelled(w *writer) (cancelled bool) {
	for range len(w.queue) {
		j := <-w.queue
		cancelled = cancelled || j.state.Load() == jobCancelled
		w.queue <- j
	}
	return cancelled
}

// TestFatal: after an error that means that the disk failed, the store calls Fatal once and rejects every write.
func TestFatal(t *testing.T) {
	calls := 0
	s, err := OpenSQLite(t.Context(), filepath.Join(t.TempDir(), "record.db"), Options{Fatal: func(error) { calls++ }})
	if err != nil {
		t.Fatal(err)
	}

	lost := errors.New("lost")
	plain := s.d.classify
	s.d.classify = func(err error) failure {
		if errors.Is(err, lost) {
			return failFatal
		}
		return plain(err)
	}

	for range 2 {
		err := s.w.submit(t.Context(), &job{op: "a test", run: func(context.Context, *conn) error { return lost }})
		if gozzard.KindOf(err) != gozzard.ErrUnavailable {
			t.Fatalf("got %v", err)
		}
	}

	if _, err := s.Accept(t.Context(), &record.NewTask{}); gozzard.KindOf(err) != gozzard.ErrUnavailable {
		t.Fatalf("a task after that: %v", err)
	}
	if err := s.Ping(t.Context()); gozzard.KindOf(err) != gozzard.ErrUnavailable {
		t.Fatalf("a ping after that: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if calls != 1 {
		t.Fatalf("Fatal was called %d times", calls)
	}
}
