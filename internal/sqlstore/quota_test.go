package sqlstore_test

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/sqlstore"
)

// twoServersQuota: two servers that spend from the same quotas at the same time spend them once.
func twoServersQuota(t *testing.T, address string) {
	const quota, calls = 20, 80
	stores := []*sqlstore.Store{openPostgres(t, address, "two_quotas", sqlstore.Options{Server: "one"}),
		openPostgres(t, address, "two_quotas", sqlstore.Options{Server: "two"})}
	var wg sync.WaitGroup
	var accepted [2]atomic.Int64
	for i := range calls {
		wg.Go(func() {
			task := benchTask(1)
			task.Charge = []gozzard.Spending{{Name: "app", N: 1, Quota: quota}, {Name: "user", N: 1, Quota: 2 * quota}}
			var over *gozzard.OverQuota
			switch _, err := stores[i%2].Accept(t.Context(), task); {
			case err == nil:
				accepted[i%2].Add(1)
			case !errors.As(err, &over) || over.Index != 0:
				t.Error(err)
			}
		})
	}
	wg.Wait()

	one, two := accepted[0].Load(), accepted[1].Load()
	if one+two != quota {
		t.Errorf("two servers accepted %d and %d, with a quota of %d", one, two, quota)
	}
	for _, s := range stores { // what was rejected left half of the other quota
		task := benchTask(1)
		task.Charge = []gozzard.Spending{{Name: "user", N: quota / 2, Quota: 2 * quota}}
		if _, err := s.Accept(t.Context(), task); err != nil {
			t.Error(err)
		}
	}
}
