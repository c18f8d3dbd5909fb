package sqlstore

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/record"
)

// BenchmarkFollowLog writes the checksums of all pages in the write-ahead log, as before a checkpoint.
func BenchmarkFollowLog(b *testing.B) {
	path := filepath.Join(b.TempDir(), "record.db")
	s, err := OpenSQLite(b.Context(), path, Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			b.Error(err)
		}
	}()

	// Make a log that is nearly long enough for a checkpoint.
	size := func() int64 {
		st, err := os.Stat(path + "-wal")
		if err != nil {
			b.Fatal(err)
		}
		return st.Size()
	}
	task := &record.NewTask{Task: gozzard.Task{Caller: gozzard.Caller{App: "bench"}, At: time.Now(), Targets: 200},
		Attempts: make([]gozzard.Attempt, 200)}
	task.Audit = gozzard.AuditRow{At: task.Task.At, Caller: task.Task.Caller, Act: "operate:start"}
	for i := range task.Attempts {
		task.Attempts[i] = gozzard.Attempt{Op: gozzard.NewOpID(), Agent: "02000000000000000000000000000001",
			Key: gozzard.Key{Namespace: "a", Name: "b"}, State: gozzard.AttemptPending}
	}
	for size() < checkpointPages*4096*3/4 {
		if _, err := s.Accept(b.Context(), task); err != nil {
			b.Fatal(err)
		}
	}

	b.SetBytes(size())
	for b.Loop() {
		s.sums.at = walPosition{}
		if err := s.sums.follow(); err != nil {
			b.Fatal(err)
		}
	}
}
