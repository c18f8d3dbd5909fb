package approval_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/approval"
	"github.com/gozzard/gozzard/internal/sqlstore"
	"github.com/gozzard/gozzard/test/storetest"
)

// tampered is a store whose requests were changed after they were asked.
type tampered struct {
	approval.Store
	change func(*approval.Request)
}

func (s *tampered) Request(ctx context.Context, id int64) (approval.Request, error) {
	r, err := s.Store.Request(ctx, id)
	if s.change != nil {
		s.change(&r)
	}
	return r, err
}

func person(name string) gozzard.Caller {
	return gozzard.Caller{App: "user:" + name, User: name, Rights: gozzard.Everything()}
}

// rig is a desk on a real store that counts what is carried out.
type rig struct {
	t     *testing.T
	store *tampered
	desk  *approval.Desk
	now   time.Time

	mu   sync.Mutex
	done []string
}

func newRig(t *testing.T) *rig {
	t.Helper()
	path := filepath.Join(t.TempDir(), "r.db")
	storetest.NewSQLite(t, path)
	store, err := sqlstore.OpenSQLite(t.Context(), path, sqlstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	r := &rig{t: t, store: &tampered{Store: store}, now: time.Now()}
	r.desk, err = approval.NewDesk(t.Context(), approval.Options{Store: r.store, Wait: time.Hour,
		Now:    func() time.Time { return r.now },
		Rights: func(gozzard.Caller) *gozzard.Rights { return gozzard.Everything() },
		Do: map[approval.Kind]approval.Do{approval.AdminGrant: func(ctx context.Context, asker gozzard.Caller,
			act []byte) (string, error) {
			if !gozzard.IsApproved(ctx) {
				t.Error("the act is not marked as approved")
			}
			r.mu.Lock()
			defer r.mu.Unlock()
			r.done = append(r.done, asker.User+" "+string(act))
			return "", nil
		}}})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// ask asks as alice.
func (r *rig) ask() approval.Request {
	r.t.Helper()
	err := r.desk.Ask(r.t.Context(), person("alice"), approval.AdminGrant, "make carol an admin", "carol")
	var held *approval.Held
	if !errors.As(err, &held) {
		r.t.Fatalf("asked: %v", err)
	}
	return held.Request
}

// refused approves as bob, which must fail with a text.
func (r *rig) refused(q approval.Request, text string) {
	r.t.Helper()
	_, err := r.desk.Decide(r.t.Context(), person("bob"), true, q.ID, q.Digest, true)
	if err == nil || !strings.Contains(err.Error(), text) {
		r.t.Fatalf("approved: %v, want %q", err, text)
	}
	if len(r.done) > 0 {
		r.t.Fatalf("carried out: %v", r.done)
	}
}

// TestTT13ChangedRequest: a request that was changed after it was asked is not carried out, whatever was changed.
func TestTT13ChangedRequest(t *testing.T) {
	r := newRig(t)
	q := r.ask()
	for name, change := range map[string]func(*approval.Request){
		"act":     func(q *approval.Request) { q.Act = []byte(`"mallory"`) },
		"words":   func(q *approval.Request) { q.What = "nothing" },
		"kind":    func(q *approval.Request) { q.Kind = approval.RootCommand },
		"person":  func(q *approval.Request) { q.Person = "dave" },
		"app":     func(q *approval.Request) { q.App = "shop" },
		"expires": func(q *approval.Request) { q.Expires = q.Expires.Add(time.Hour) },
	} {
		t.Run(name, func(t *testing.T) {
			r.store.change = change
			r.refused(q, "was changed")
		})
	}

	// A change together with its digest is another request than the one that the second person saw.
	r.store.change = func(q *approval.Request) { q.Digest = strings.Repeat("1", len(q.Digest)) }
	r.refused(q, "was changed")

	// As it was asked, it is carried out once, also when two people approve it at the same time.
	r.store.change = nil
	var wg sync.WaitGroup
	for _, name := range []string{"bob", "dave", "erin"} {
		wg.Go(func() { _, _ = r.desk.Decide(t.Context(), person(name), true, q.ID, q.Digest, true) })
	}
	wg.Wait()
	if len(r.done) != 1 || r.done[0] != `alice "carol"` {
		t.Errorf("carried out: %v", r.done)
	}
}

// TestTT13ExpiredRequest: a request that waited too long is not carried out, and one person has few waiting.
func TestTT13ExpiredRequest(t *testing.T) {
	r := newRig(t)
	q := r.ask()
	for range 19 {
		r.ask()
	}
	err := r.desk.Ask(t.Context(), person("alice"), approval.AdminGrant, "one more", "carol")
	if gozzard.KindOf(err) != gozzard.ErrConflict || !strings.Contains(err.Error(), "20 requests") {
		t.Fatalf("the 21st: %v", err)
	}

	r.now = r.now.Add(time.Hour)
	r.refused(q, "is expired")
	r.ask() // those do not count any more
}
