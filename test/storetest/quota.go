package storetest

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/control"
	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/topology"
)

// charge records a task that counts against quotas. over is nil if it was recorded.
func charge(t *testing.T, s control.Store, list ...gozzard.Spending) (over *gozzard.OverQuota) {
	t.Helper()
	n := newTask(attempts(1))
	n.Charge = list
	_, err := s.Accept(t.Context(), n)
	if errors.As(err, &over) {
		wantKind(t, err, gozzard.ErrRateLimited)
		return over
	}
	must(t, err)
	return nil
}

// quotaConcurrent: many spend at once, some of them larger parts, and no more than the quota is spent. What is above it is not
// recorded.
func quotaConcurrent(t *testing.T, s control.Store) {
	const calls, quota = 40, 10
	var wg sync.WaitGroup
	var spent atomic.Int64
	for i := range calls {
		wg.Go(func() {
			n := newTask(attempts(1))
			n.Charge = []gozzard.Spending{{Name: "app", N: 1 + i%2, Quota: quota}}
			var over *gozzard.OverQuota
			switch _, err := s.Accept(t.Context(), n); {
			case err == nil:
				spent.Add(int64(1 + i%2))
			case !errors.As(err, &over):
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := spent.Load(); n != quota {
		t.Errorf("%d were spent of %d", n, quota)
	}

	open, err := s.Open(t.Context())
	must(t, err)
	rows, err := s.Audit(t.Context(), calls)
	must(t, err)
	if len(open) != len(rows) || len(open) < quota/2 || len(open) > quota {
		t.Errorf("%d attempts and %d rows of the audit are recorded", len(open), len(rows))
	}
}

// quotaTogether: a task counts against all its quotas or none. What is above a quota is counted nowhere, with what must be
// counted the quota is empty, and a quota fills up.
func quotaTogether(t *testing.T, s control.Store) {
	app := gozzard.Spending{Name: "应用", N: 10, Quota: 10}
	user := gozzard.Spending{Name: "user", N: 3, Quota: 5}
	equal(t, "a whole quota", charge(t, s, app), (*gozzard.OverQuota)(nil))

	// Too little is left of the second one.
	app.N = 1
	for range 3 {
		over := charge(t, s, user, app)
		if over == nil || over.Index != 1 || over.Wait <= 0 || over.Wait > time.Hour/10 {
			t.Fatalf("above the second quota: %+v", over)
		}
	}
	equal(t, "what was counted nowhere", charge(t, s, user), (*gozzard.OverQuota)(nil))

	// More than there is.
	app.N, app.Force = 1000, true
	equal(t, "what must be counted", charge(t, s, app), (*gozzard.OverQuota)(nil))
	app.N, app.Force = 1, false
	if over := charge(t, s, app); over == nil || over.Wait > time.Hour/10 {
		t.Errorf("more was counted than there is: %+v", over)
	}
	if over := charge(t, s, gozzard.Spending{Name: "new", N: 11, Quota: 10}); over == nil {
		t.Error("more than a whole quota was spent")
	}

	// A quota that fills up while the test waits.
	quick := gozzard.Spending{Name: "quick", N: 3_600_000, Quota: 3_600_000}
	equal(t, "a whole quota", charge(t, s, quick), (*gozzard.OverQuota)(nil))
	quick.N = 3000
	over := charge(t, s, quick)
	if over == nil || over.Wait > 3*time.Second {
		t.Fatalf("above a quota of one in a millisecond: %+v", over)
	}
	time.Sleep(over.Wait + 2*time.Millisecond) // the record counts milliseconds
	equal(t, "what filled up", charge(t, s, quick), (*gozzard.OverQuota)(nil))
}

// quotaKnown: a repeated request gets its task, whatever is left, and counts once.
func quotaKnown(t *testing.T, s control.Store) {
	send := func(key string) (record.Accepted, error) {
		n := newTask(attempts(1))
		n.IdempotencyKey, n.Charge = key, []gozzard.Spending{{Name: "app", N: 1, Quota: 2}}
		return s.Accept(t.Context(), n)
	}
	first, err := send("a")
	must(t, err)
	for range 3 {
		again, err := send("a")
		must(t, err)
		equal(t, "a repeated request", again, record.Accepted{Task: first.Task, Known: true})
	}

	_, err = send("b")
	must(t, err)
	_, err = send("c")
	wantKind(t, err, gozzard.ErrRateLimited)
	again, err := send("a")
	must(t, err)
	equal(t, "a repeated request above the quota", again, record.Accepted{Task: first.Task, Known: true})
}

// businessCharge: a document above a quota changes nothing.
func businessCharge(t *testing.T, s TopologyRecord) {
	charge := []gozzard.Spending{{Name: "bytes", N: 60, Quota: 100}}
	saveBusiness(t, s, topology.Change{Biz: 2, Name: "first", Charge: charge})
	_, err := s.SaveBusiness(t.Context(), topology.Change{Biz: 2, Base: 1, Name: "second", Charge: charge}, record.SourceFile,
		topologyAudit(0))
	wantKind(t, err, gozzard.ErrRateLimited)
	equal(t, "the business", readBusiness(t, s, 2).Name, "first")
	charge[0].N = 40
	saveBusiness(t, s, topology.Change{Biz: 2, Base: 1, Name: "third", Charge: charge})
}
