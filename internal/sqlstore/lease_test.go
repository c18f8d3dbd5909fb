//go:build !windows

package sqlstore_test

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/lease"
	"github.com/gozzard/gozzard/internal/sqlstore"
)

// TestLeasesOfTwoServers: two servers take a lease away from each other again and again, in the middle of what the other
// one writes. The number that they write never falls: the database itself looks at every write.
func TestLeasesOfTwoServers(t *testing.T) {
	address := startPostgres(t, "off")
	stores := []*sqlstore.Store{openPostgres(t, address, "two", sqlstore.Options{}),
		openPostgres(t, address, "two", sqlstore.Options{})}
	execPostgres(t, address, `
		CREATE FUNCTION two.rises() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN
			IF NEW.seq < OLD.seq THEN RAISE 'a late write: % after %', NEW.seq, OLD.seq; END IF;
			PERFORM pg_sleep(0.001); -- so that the lease is taken now and then before this transaction ends
			RETURN NEW;
		END $$;
		CREATE TRIGGER rises BEFORE UPDATE ON two.audit_exports FOR EACH ROW EXECUTE FUNCTION two.rises();`)

	var wrote, late atomic.Int64
	var wg sync.WaitGroup
	deadline, latest := time.Now().Add(3*time.Second), time.Now().Add(time.Minute)
	goesOn := func() bool { // a slow machine gets more time
		return time.Now().Before(deadline) || (wrote.Load() < 20 || late.Load() < 20) && time.Now().Before(latest)
	}
	for i, s := range stores {
		holder := string(rune('a' + i))
		for range 4 {
			wg.Go(func() {
				for goesOn() {
					got, err := s.ClaimLeases(t.Context(), holder, []string{"work"}, nil, 0)
					if err != nil {
						t.Error(err)
						return
					}
					for _, l := range got {
						ctx := lease.WithFence(t.Context(), l.Fence)
						err := s.SaveExportPosition(ctx, "x", gozzard.AuditHead{Seq: l.Number}, time.Now())
						switch {
						case err == nil:
							wrote.Add(1)
						case errors.Is(err, lease.ErrLost):
							late.Add(1)
						default:
							t.Error(err)
							return
						}
					}
				}
			})
		}
	}
	wg.Wait()

	t.Logf("%d writes by the holder, %d late ones rejected", wrote.Load(), late.Load())
	if wrote.Load() < 20 || late.Load() < 20 {
		t.Error("the servers did not get in each other's way")
	}
}
