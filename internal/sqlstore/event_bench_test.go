//go:build !windows

package sqlstore_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/sqlstore"
)

// benchEvents makes events of 5,000 processes on 1,000 hosts, beginning with a number.
func benchEvents(first, n int) []record.Event {
	list := make([]record.Event, n)
	for i := range list {
		k := first + i
		host := k % 1000
		list[i] = record.Event{Agent: gozzard.AgentID(fmt.Sprintf("0f8fad5b-d9cb-469f-a165-%012d", host)),
			Addr: gozzard.HostAddr{IP: netip.AddrFrom4([4]byte{10, 0, byte(host >> 8), byte(host)})},
			Event: gozzard.Event{Seq: uint64(1 + k/1000), At: 1_700_000_000_000 + int64(k), PID: 10_000 + k%50_000,
				Key: gozzard.Key{Namespace: "shop", Name: fmt.Sprintf("process-%d", k/1000%5)}}}
		switch e := &list[i]; k % 3 {
		case 0:
			e.Kind, e.Task, e.App, e.User = gozzard.EventStarted, "20240102030405:17", "shop-app", "alice"
		case 1:
			e.Kind, e.Code, e.Known, e.Message = gozzard.EventExited, 1, true, "the process ended with exit code 1"
		default:
			e.Kind = gozzard.EventRestarted
		}
	}
	return list
}

// cpuTime is the processor time of this process.
func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkEvents records 100,000 events for each step, 500 in a transaction as a busy server does, and says what one takes
// of the processor and of the disk. Then it reads pages of a record with a million events.
func BenchmarkEvents(b *testing.B) {
	b.Run("sqlite", func(b *testing.B) {
		path := filepath.Join(b.TempDir(), "record.db")
		s := openSQLite(b, path, sqlstore.Options{})
		benchEventStore(b, s, func() int64 { return sizeOf(path) })
	})
	b.Run("postgres", func(b *testing.B) {
		address := startPostgres(b, "on")
		s := openPostgres(b, address, "events", sqlstore.Options{Sole: true})
		benchEventStore(b, s, func() (size int64) {
			db, err := sql.Open("pgx", address)
			if err == nil {
				err = db.QueryRowContext(b.Context(), `SELECT CAST(SUM(pg_total_relation_size(c.oid)) AS BIGINT) FROM pg_class c
					JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = 'events' AND c.relkind = 'r'`).Scan(&size)
				err = errors.Join(err, db.Close())
			}
			if err != nil {
				b.Fatal(err)
			}
			return size
		})
	})
}

func benchEventStore(b *testing.B, s *sqlstore.Store, size func() int64) {
	const step, batch, all = 100_000, 500, 1_000_000
	added := 0
	add := func(b *testing.B, n int) {
		for end := added + n; added < end; added += batch {
			if _, err := s.AddEvents(b.Context(), benchEvents(added, batch)); err != nil {
				b.Fatal(err)
			}
		}
	}

	b.Run("add", func(b *testing.B) {
		before, cpu, first := size(), cpuTime(b), added
		for b.Loop() {
			add(b, step)
		}
		n := float64(added - first)
		b.ReportMetric(float64(size()-before)/n, "bytes/event")
		b.ReportMetric(float64(cpuTime(b)-cpu)/n, "cpu-ns/event")
		b.ReportMetric(float64(b.Elapsed())/n, "ns/event")
	})
	add(b, max(0, all-added))

	st, err := s.EventState(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	one := gozzard.AgentID(fmt.Sprintf("0f8fad5b-d9cb-469f-a165-%012d", 7))
	for name, q := range map[string]record.EventQuery{
		"newest":     {Newest: true},
		"process":    {Newest: true, Filter: record.EventFilter{Agents: []gozzard.AgentID{one}, Names: []string{"process-3"}}},
		"name":       {Newest: true, Filter: record.EventFilter{Names: []string{"*-3"}}},
		"no such":    {Newest: true, Filter: record.EventFilter{Names: []string{"none"}}},
		"rare kind":  {Newest: true, Filter: record.EventFilter{Kinds: []gozzard.EventKind{gozzard.EventOrphaned}}},
		"from start": {},
	} {
		b.Run("page of "+name, func(b *testing.B) {
			q.UpTo, q.Limit = st.Last, 100
			for b.Loop() {
				if _, err := s.Events(b.Context(), q); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("prune", func(b *testing.B) {
		for b.Loop() {
			n, err := s.PruneEvents(b.Context(), record.EventKeep{Most: all - 100_000})
			if err != nil {
				b.Fatal(err)
			}
			b.StopTimer()
			b.ReportMetric(float64(n), "events")
			add(b, n)
			b.StartTimer()
		}
	})
}

// BenchmarkAcceptBesideEvents says what very many events cost small tasks. They are recorded as the server does it: 500 in a
// transaction, and then a rest of three times its duration.
func BenchmarkAcceptBesideEvents(b *testing.B) {
	for _, beside := range []bool{false, true} {
		b.Run(fmt.Sprint("beside events ", beside), func(b *testing.B) {
			databases(b, func(b *testing.B, s *sqlstore.Store) {
				stop := func() int { return 0 }
				if beside {
					stop = recordOn(b, s)
				}
				var failed atomic.Int64
				b.SetParallelism(4) // of two cores
				b.ResetTimer()
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						if _, err := s.Accept(b.Context(), benchTask(1)); err != nil {
							failed.Add(1)
						}
					}
				})
				b.ReportMetric(float64(stop())/b.Elapsed().Seconds(), "events/s")
				if failed.Load() > 0 {
					b.Fatalf("%d calls failed", failed.Load())
				}
			})
		})
	}
}

// recordOn records events until stop, which returns how many.
func recordOn(b *testing.B, s *sqlstore.Store) (stop func() int) {
	const batch, rest = 500, 3
	ctx, cancel := context.WithCancel(b.Context())
	var wg sync.WaitGroup
	added := 0
	wg.Go(func() {
		for ctx.Err() == nil {
			began := time.Now()
			if _, err := s.AddEvents(b.Context(), benchEvents(added, batch)); err != nil {
				b.Error(err)
				return
			}
			added += batch
			time.Sleep(rest * time.Since(began))
		}
	})
	return func() int {
		cancel()
		wg.Wait()
		return added
	}
}

// twoServersEvents: two stores on one database record the same events of the same hosts at the same time. Each event is
// there once, and a reader of one misses nothing that the other has recorded.
func twoServersEvents(t *testing.T, address string) {
	stores := []*sqlstore.Store{openPostgres(t, address, "two_events", sqlstore.Options{}),
		openPostgres(t, address, "two_events", sqlstore.Options{})}
	const rounds, each = 30, 50
	stop, seen := make(chan struct{}), make(chan map[uint64]bool, 1)
	go func() {
		ids, last := map[uint64]bool{}, uint64(0)
		for ended := false; ; {
			list, err := stores[0].Events(t.Context(), record.EventQuery{After: last, UpTo: 1 << 60, Limit: 100})
			if err != nil {
				t.Error(err)
			}
			for _, e := range list {
				ids[e.ID], last = true, e.ID
			}
			if ended && len(list) == 0 || err != nil {
				seen <- ids
				return
			}
			select {
			case <-stop:
				ended = true
			default:
			}
		}
	}()

	var wg sync.WaitGroup
	for i := range stores {
		wg.Go(func() {
			for n := range rounds {
				if _, err := stores[i].AddEvents(t.Context(), benchEvents(n*each, each)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	close(stop)
	ids := <-seen
	all, err := stores[1].Events(t.Context(), record.EventQuery{UpTo: 1 << 60, Limit: 1 << 20})
	if err != nil || len(all) != rounds*each || len(ids) != len(all) {
		t.Errorf("%d events, a reader saw %d, want %d: %v", len(all), len(ids), rounds*each, err)
	}
}
