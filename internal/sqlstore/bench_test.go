//go:build !windows

package sqlstore_test

import (
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/sqlstore"
)

// databases runs a benchmark on SQLite and on PostgreSQL.
func databases(b *testing.B, run func(*testing.B, *sqlstore.Store)) {
	b.Run("sqlite", func(b *testing.B) {
		run(b, openSQLite(b, filepath.Join(b.TempDir(), "record.db"), sqlstore.Options{}))
	})
	b.Run("postgres", func(b *testing.B) {
		run(b, openPostgres(b, startPostgres(b, "on"), "bench", sqlstore.Options{}))
	})
}

func BenchmarkAccept20000(b *testing.B) {
	databases(b, func(b *testing.B, s *sqlstore.Store) {
		t := benchTask(20_000)
		for b.Loop() {
			if _, err := s.Accept(b.Context(), t); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkAcceptAndRegister20000(b *testing.B) {
	databases(b, func(b *testing.B, s *sqlstore.Store) {
		t := benchTask(20_000)
		for i := range t.Attempts {
			a := &t.Attempts[i]
			t.Register = append(t.Register, record.Process{ID: gozzard.ProcID{Agent: a.Agent, Key: a.Key},
				Labels: a.Labels, Spec: a.Spec, RegisteredAt: t.Task.At})
		}
		for b.Loop() {
			if _, err := s.Accept(b.Context(), t); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkSettle500 records verdicts of 500 hosts in each call, with their journals and flags.
func BenchmarkSettle500(b *testing.B) {
	databases(b, func(b *testing.B, s *sqlstore.Store) {
		const batch = 500
		pos := &gozzard.JournalPos{}
		var rows []record.Settlement
		for b.Loop() {
			if len(rows) == 0 {
				b.StopTimer()
				t := benchTask(20_000)
				for i := range t.Attempts {
					t.Attempts[i].State = gozzard.AttemptDispatched
				}
				if _, err := s.Accept(b.Context(), t); err != nil {
					b.Fatal(err)
				}
				for i, a := range t.Attempts {
					if _, _, err := s.OpenSession(b.Context(),
						record.Host{Info: gozzard.HostInfo{Agent: a.Agent},
							Session: uint64(t.Task.Seq)}); err != nil && i == 0 {
						b.Fatal(err)
					}
					if pos.LSN == 0 && i >= 2*batch { // enough hosts to see what their journals cost
						break
					}
				}
				for _, a := range t.Attempts {
					pos = &gozzard.JournalPos{LSN: uint64(t.Task.Seq) * 10}
					rows = append(rows, record.Settlement{Ref: a.Ref, Op: a.Op, Agent: a.Agent, To: gozzard.AttemptOK,
						Journal: pos,
						Outcome: gozzard.Outcome{Code: gozzard.CodeOK, Message: "success", Hosted: true},
						Process: &record.ProcessChange{ID: gozzard.ProcID{Agent: a.Agent, Key: a.Key}, Hosted: true,
							Wanted: gozzard.StateRunning}})
				}
				b.StartTimer()
			}
			moved, err := s.Settle(b.Context(), rows[:batch])
			if err != nil || !moved[0] || !moved[batch-1] {
				b.Fatal(err, moved[0])
			}
			rows = rows[batch:]
		}
	})
}

func BenchmarkAcceptSingle8Callers(b *testing.B) { acceptSingle(b, nil) }

// BenchmarkAcceptCharged8Callers is BenchmarkAcceptSingle8Callers with tasks that count against two quotas, as at several servers.
func BenchmarkAcceptCharged8Callers(b *testing.B) {
	acceptSingle(b, []gozzard.Spending{{Name: "app", N: 1, Quota: 1 << 40}, {Name: "user", N: 1, Quota: 1 << 40}})
}

func acceptSingle(b *testing.B, charge []gozzard.Spending) {
	databases(b, func(b *testing.B, s *sqlstore.Store) {
		var failed atomic.Int64
		b.SetParallelism(4) // of two cores
		b.ResetTimer()

		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				task := benchTask(1)
				task.Charge = charge
				if _, err := s.Accept(b.Context(), task); err != nil {
					failed.Add(1)
				}
			}
		})

		if failed.Load() > 0 {
			b.Fatalf("%d calls failed", failed.Load())
		}

		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "accepts/s")
	})
}

func BenchmarkAttempts20000(b *testing.B) {
	databases(b, func(b *testing.B, s *sqlstore.Store) {
		t := benchTask(20_000)
		if _, err := s.Accept(b.Context(), t); err != nil {
			b.Fatal(err)
		}
		for b.Loop() {
			if list, err := s.Attempts(b.Context(), t.Task.Seq); err != nil || len(list) != 20_000 {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkSaveBusiness50000(b *testing.B) {
	databases(b, func(b *testing.B, s *sqlstore.Store) {
		c := benchBusiness(50_000)
		for b.Loop() {
			c.Biz++
			if _, err := s.SaveBusiness(b.Context(), c, record.SourceFile, topologyAudit()); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkBusiness50000(b *testing.B) {
	databases(b, func(b *testing.B, s *sqlstore.Store) {
		if _, err := s.SaveBusiness(b.Context(), benchBusiness(50_000), record.SourceFile,
			topologyAudit()); err != nil {
			b.Fatal(err)
		}
		for b.Loop() {
			if rec, err := s.Business(b.Context(), 2); err != nil || len(rec.Numbers) != 50_000 {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkJob50000 creates a job, gives its tasks their verdicts and reads a page of them.
func BenchmarkJob50000(b *testing.B) {
	databases(b, func(b *testing.B, s *sqlstore.Store) {
		j, tasks := benchJob(50_000)
		var create, save, page time.Duration
		for b.Loop() {
			start := time.Now()
			if err := s.CreateJob(b.Context(), &j, tasks); err != nil {
				b.Fatal(err)
			}
			create += time.Since(start)
			start = time.Now()
			if err := s.SaveTasks(b.Context(), nil, tasks); err != nil {
				b.Fatal(err)
			}
			save += time.Since(start)
			start = time.Now()
			p, err := s.Tasks(b.Context(), record.JobTaskFilter{Job: j.ID, Modules: []int{7}, Limit: 100})
			if err != nil || p.Total != 1000 || len(p.Tasks) != 100 {
				b.Fatal(p.Total, err)
			}
			page += time.Since(start)
		}

		for name, d := range map[string]time.Duration{"create-ms/op": create, "save-ms/op": save, "page-ms/op": page} {
			b.ReportMetric(float64(d.Milliseconds())/float64(b.N), name)
		}
	})
}
