//go:build linux

package sqlstore_test

import (
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/sqlstore"
)

// smallDisk mounts a file system of a size and returns its folder.
func smallDisk(t *testing.T, size string) string {
	t.Helper()

	if os.Geteuid() != 0 {
		t.Skip("not run: only root can mount a small file system")
	}

	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size="+size); err != nil {
		t.Skipf("not run: cannot mount a small file system: %v", err)
	}

	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})

	return dir
}

// fill accepts tasks until the disk is full.
func fill(t *testing.T, s *sqlstore.Store) (acked []*record.NewTask) {
	t.Helper()

	for {
		n := benchTask(20)
		for i := range n.Attempts {
			n.Attempts[i].State = gozzard.AttemptDispatched
			n.Attempts[i].Outcome.Message = strings.Repeat("long ", 2000)
		}
		_, err := s.Accept(t.Context(), n)
		if gozzard.KindOf(err) == gozzard.ErrStorageFull {
			if n.Task.Seq != 0 {
				t.Fatal("a refused task was given a number")
			}
			return acked
		}
		if err != nil {
			t.Fatal(err)
		}
		if acked = append(acked, n); len(acked) > 10_000 {
			t.Fatal("the disk does not become full")
		}
	}
}

func settleAll(t *testing.T, s *sqlstore.Store, n *record.NewTask) {
	t.Helper()
	var rows []record.Settlement
	for _, a := range n.Attempts {
		rows = append(rows, record.Settlement{Ref: a.Ref, Op: a.Op, Agent: a.Agent, To: gozzard.AttemptOK,
			Outcome: gozzard.Outcome{Code: gozzard.CodeOK}})
	}

	moved, err := s.Settle(t.Context(), rows)
	if err != nil {
		t.Fatalf("cannot record a verdict on a full disk: %v", err)
	}

	for _, m := range moved {
		if !m {
			t.Fatal("a verdict did not move its attempt")
		}
	}
}

func there(t *testing.T, s *sqlstore.Store, acked []*record.NewTask) {
	t.Helper()
	for _, n := range acked {
		list, err := s.Attempts(t.Context(), n.Task.Seq)
		if err != nil || len(list) != len(n.Attempts) {
			t.Fatalf("acknowledged task %d: %d attempts, %v", n.Task.Seq, len(list), err)
		}
	}
}

// resumes waits until a task is accepted again, and returns that task.
func resumes(t *testing.T, s *sqlstore.Store) *record.NewTask {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		n := benchTask(1)
		_, err := s.Accept(t.Context(), n)
		if err == nil {
			return n
		}
		if gozzard.KindOf(err) != gozzard.ErrStorageFull || time.Now().After(deadline) {
			t.Fatalf("accepting does not resume: %v", err)
		}
	}
}

// TestDiskFull (K1): on a full disk the store rejects new tasks, loses nothing, and still accepts verdicts and pruning.
// When there is space again, it accepts tasks again.
func TestDiskFull(t *testing.T) {
	dir := smallDisk(t, "32m")
	ballast := filepath.Join(dir, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 8<<20), 0o600); err != nil {
		t.Fatal(err)
	}

	path := filepath.Join(dir, "record.db")
	// The store looks for space once a second of this clock. It stands still at first, so that the test does not
	// depend on the speed of the machine.
	var clockRuns atomic.Bool
	began := time.Now()
	s := openSQLite(t, path, sqlstore.Options{Now: func() time.Time {
		if clockRuns.Load() {
			return time.Now()
		}
		return began
	}})

	job, tasks := benchJob(20)
	if err := s.CreateJob(t.Context(), &job, tasks); err != nil {
		t.Fatal(err)
	}

	acked := fill(t, s)
	t.Logf("%d tasks acknowledged before the disk was full", len(acked))

	if len(acked) == 0 {
		t.Fatal("nothing was acknowledged")
	}

	there(t, s, acked)
	settleAll(t, s, acked[0])
	refusesGrowth(t, s, job, tasks)

	if err := s.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}

	if err := os.Remove(ballast); err != nil { // an admin frees space
		t.Fatal(err)
	}

	clockRuns.Store(true)
	extra := []*record.NewTask{resumes(t, s)}
	acked = append(acked, fill(t, s)...)
	there(t, s, append(extra, acked...))

	for _, n := range acked[1:] { // no admin frees space, but results get old
		settleAll(t, s, n)
	}

	for n := 1; n > 0; {
		var err error
		if n, err = s.Prune(t.Context(), time.Now().Add(time.Hour), 100); err != nil {
			t.Fatalf("cannot prune on a full disk: %v", err)
		}
	}

	extra = append(extra, resumes(t, s))
	there(t, s, extra)

	if err := s.Close(); err != nil {
		t.Fatal(err)
	}

	there(t, openSQLite(t, path, sqlstore.Options{}), extra) // opening checks the whole database
}

// refusesGrowth: on a full disk the store rejects businesses and jobs, and a job that is under way can still end.
func refusesGrowth(t *testing.T, s *sqlstore.Store, j record.Job, tasks []record.JobTask) {
	t.Helper()

	if _, err := s.SaveBusiness(t.Context(), benchBusiness(1), record.SourceFile,
		topologyAudit()); gozzard.KindOf(err) != gozzard.ErrStorageFull {
		t.Fatalf("a business on a full disk: %v", err)
	}

	more, list := benchJob(1)
	if err := s.CreateJob(t.Context(), &more, list); gozzard.KindOf(err) != gozzard.ErrStorageFull || more.ID != 0 {
		t.Fatalf("a job on a full disk: %d, %v", more.ID, err)
	}

	for i := range tasks {
		tasks[i].State = record.JobSucceeded
	}

	j.State, j.Ended = record.JobSucceeded, time.Now()
	if err := s.SaveTasks(t.Context(), &j, tasks); err != nil {
		t.Fatalf("cannot record the end of a job on a full disk: %v", err)
	}
	if err := s.Reopen(t.Context(), &j, nil, topologyAudit()); gozzard.KindOf(err) != gozzard.ErrStorageFull {
		t.Fatalf("a retry on a full disk: %v", err)
	}
}

// TestOpenOnFullDisk: with the reserve file a store can be opened on a disk that is full to the last byte.
func TestOpenOnFullDisk(t *testing.T) {
	dir := smallDisk(t, "32m")
	path := filepath.Join(dir, "record.db")
	s := openSQLite(t, path, sqlstore.Options{})
	n := benchTask(100)
	for i := range n.Attempts {
		n.Attempts[i].State = gozzard.AttemptDispatched
	}

	if _, err := s.Accept(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}

	ballast, err := os.Create(filepath.Join(dir, "ballast"))
	if err != nil {
		t.Fatal(err)
	}

	defer ballast.Close()

	for size := 1 << 16; size > 0; {
		if _, err := ballast.Write(make([]byte, size)); err != nil {
			size /= 2
		}
	}

	s = openSQLite(t, path, sqlstore.Options{})
	there(t, s, []*record.NewTask{n})
	settleAll(t, s, n)
}
