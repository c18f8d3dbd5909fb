package sqlstore_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/sqlstore"
)

// TestCopyWhileWritten: copies of a record that is being written to are complete, and each shows the record at one
// moment.
func TestCopyWhileWritten(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "gozzard.db")
	s := openSQLite(t, path, sqlstore.Options{})
	stop, done := make(chan struct{}), make(chan int)
	go func() {
		n := 0
		for ; ; n++ {
			select {
			case <-stop:
				done <- n
				return
			default:
			}
			if _, err := s.Accept(t.Context(), benchTask(5)); err != nil {
				t.Error(err)
			}
		}
	}()

	var before int
	for i := range 3 {
		to := filepath.Join(dir, "copy"+string(rune('0'+i)))
		if err := sqlstore.Copy(t.Context(), path, to); err != nil {
			t.Fatal(err)
		}
		v, err := sqlstore.Look(t.Context(), to)
		if err != nil {
			t.Fatal(err)
		}
		if err := sqlstore.Verify(t.Context(), to, v.Audit); err != nil {
			t.Error(err)
		}
		if v.Open != 5*v.Tasks || v.AuditRows != v.Tasks || v.Tasks < before {
			t.Errorf("copy %d does not show one moment: %+v", i, v)
		}
		before = v.Tasks
		if err := sqlstore.Verify(t.Context(), to, gozzard.AuditHead{Seq: v.Audit.Seq + 1,
			Hash: v.Audit.Hash}); err == nil {
			t.Error("a copy with another audit than noted passed the check")
		}
		if err := sqlstore.Copy(t.Context(), path, to); err == nil {
			t.Error("a copy overwrote another one")
		}
	}

	close(stop)

	if n := <-done; n < 3 {
		t.Errorf("%d tasks were accepted beside three copies", n)
	}
	if level, err := sqlstore.Synchronous(t.Context(), path); err != nil || level != sqlstore.FullSync {
		t.Errorf("synchronous %d, %v", level, err)
	}
}

// TestRestoredRecordSendsNothing: an attempt that was open in a backup may have been done since. So it is not sent
// again, and its verdict is not "not executed". New tasks have higher numbers than all tasks that the server made
// after the backup.
func TestRestoredRecordSendsNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "gozzard.db")
	s := openSQLite(t, path, sqlstore.Options{})
	task := benchTask(2)
	agent := task.Attempts[0].Agent
	journal := gozzard.JournalPos{ID: [16]byte{7}, LSN: 9}
	old := record.Host{Info: gozzard.HostInfo{Agent: agent}, Session: 5, Journal: journal, LastSeen: time.Now()}
	if _, opened, err := s.OpenSession(t.Context(), old); err != nil || !opened {
		t.Fatal(opened, err)
	}

	before, err := s.Accept(t.Context(), task)
	if err != nil {
		t.Fatal(err)
	}

	job := record.Job{Biz: 2, Action: gozzard.ActionRestart, State: record.JobRunning, Started: time.Now()}
	steps := []record.JobTask{{State: record.JobSucceeded}, {State: record.JobRunning, Task: before.Task.ID},
		{State: record.JobPending, Wave: 1}}
	if err := s.CreateJob(t.Context(), &job, steps); err != nil {
		t.Fatal(err)
	}
	if err := s.MarkRestored(t.Context(), time.Now().Add(-time.Hour), time.Now()); err != nil {
		t.Fatal(err)
	}

	if jobs, err := s.OpenJobs(t.Context()); err != nil || len(jobs) > 0 {
		t.Errorf("open jobs would continue: %+v, %v", jobs, err)
	}

	page, err := s.Tasks(t.Context(), record.JobTaskFilter{Job: job.ID, Limit: -1})
	if err != nil || page.Counts[record.JobSucceeded] != 1 || page.Counts[record.JobFailed] != 2 {
		t.Errorf("steps of a job: %+v, %v", page.Counts, err)
	}

	open, err := s.OpenOf(t.Context(), []gozzard.AgentID{agent})
	if err != nil || len(open) != 1 || open[0].State != gozzard.AttemptDispatched || open[0].Session != 0 {
		t.Fatalf("open: %+v, %v", open, err)
	}

	now, opened, err := s.OpenSession(t.Context(),
		record.Host{Info: old.Info, Session: 9, Journal: gozzard.JournalPos{ID: journal.ID, LSN: 40},
			LastSeen: time.Now()})
	if err != nil || !opened || now.JournalSince != 9 || now.RestoredJournal != 9 {
		t.Fatalf("the host is not treated as new: %+v, %v, %v", now, opened, err)
	}

	again, opened, err := s.OpenSession(t.Context(),
		record.Host{Info: old.Info, Session: 10, Journal: gozzard.JournalPos{ID: journal.ID, LSN: 41},
			LastSeen: time.Now()})
	if err != nil || !opened || again.JournalSince != 9 || again.RestoredJournal != 9 {
		t.Fatalf("in its second session the host gets its old definitions: %+v, %v, %v", again, opened, err)
	}

	c := gozzard.Contact{Session: 9, Phase: gozzard.PhaseAbsent,
		SameJournal: gozzard.SameJournal(open[0].Session, now.JournalSince)}
	if next, ok := gozzard.Reconcile(open[0].State, open[0].Session, false, c, ""); !ok ||
		next != gozzard.AttemptInterrupted {
		t.Errorf("an operation that the host does not remember is %v, %v", next, ok)
	}

	c.Phase = gozzard.PhaseDone
	if next, ok := gozzard.Reconcile(open[0].State, open[0].Session, false, c, gozzard.CodeOK); !ok ||
		next != gozzard.AttemptOK {
		t.Errorf("an operation that the host remembers is %v, %v", next, ok)
	}

	after, err := s.Accept(t.Context(), benchTask(1))
	if err != nil || after.Task.Seq < before.Task.Seq+1<<40 {
		t.Errorf("the next task is %d after %d: agents refuse it as old (%v)", after.Task.Seq, before.Task.Seq, err)
	}

	v, err := sqlstore.Look(t.Context(), path)
	if err != nil || v.Restored.IsZero() || sqlstore.Verify(t.Context(), path, v.Audit) != nil {
		t.Errorf("after the restore: %+v, %v", v, err)
	}
}

// TestRestoredEvents: the events of a backup are there after a restore. Numbers go on behind all that the server gave out
// after the backup, also when the clock was set back, and readers learn that events may be missing.
func TestRestoredEvents(t *testing.T) {
	now := time.Now()
	s := openSQLite(t, filepath.Join(t.TempDir(), "gozzard.db"), sqlstore.Options{Now: func() time.Time { return now }})
	add := func(seq uint64) uint64 {
		t.Helper()
		list := []record.Event{{Agent: "a", Event: gozzard.Event{Seq: seq, Kind: gozzard.EventExited}}}
		if _, err := s.AddEvents(t.Context(), list); err != nil {
			t.Fatal(err)
		}
		return list[0].ID
	}

	first := add(1)
	for i, later := range []time.Duration{time.Hour, -48 * time.Hour} {
		taken := add(uint64(2 + i))
		given := taken + 1_000_000 // after the backup
		now = now.Add(later)
		if err := s.MarkRestored(t.Context(), now, now); err != nil {
			t.Fatal(err)
		}
		st, err := s.EventState(t.Context())
		if err != nil || st.Last <= given || st.Removed != st.Last {
			t.Errorf("%s later: %+v after %d, %v", later, st, given, err)
		}
	}
	list, err := s.Events(t.Context(), record.EventQuery{UpTo: 1 << 60, Limit: 10})
	if err != nil || len(list) != 3 || list[0].ID != first {
		t.Errorf("%d events, %v", len(list), err)
	}
}
