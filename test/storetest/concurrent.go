package storetest

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/control"
	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/taskname"
)

// contexts: a call with an ended context returns that error and changes nothing. If the context ends while the call is
// under way, the answer says what is in the record.
func contexts(t *testing.T, s control.Store) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()

	for name, call := range map[string]func() error{
		"accept":   func() error { _, err := s.Accept(ended, newTask(attempts(1))); return err },
		"dispatch": func() error { _, err := s.Dispatch(ended, []record.Dispatch{{}}); return err },
		"settle":   func() error { _, err := s.Settle(ended, []record.Settlement{{}}); return err },
		"session":  func() error { _, _, err := s.OpenSession(ended, host("a", 1, 1, 1)); return err },
		"rebind":   func() error { return s.Rebind(ended, addr(1), "a", gozzard.AuditRow{}) },
		"forget":   func() error { _, err := s.Forget(ended, gozzard.HostRef{Agent: "a"}, gozzard.AuditRow{}); return err },
		"groups":   func() error { return s.SetGroups(ended, nil, gozzard.AuditRow{}) },
		"prune":    func() error { _, err := s.Prune(ended, start, 1); return err },
		"task":     func() error { _, err := s.Task(ended, 1); return err },
		"attempts": func() error { _, err := s.Attempts(ended, 1); return err },
		"open":     func() error { _, err := s.Open(ended); return err },
		"open ops": func() error { _, err := s.OpenOps(ended, 0); return err },
		"hosts":    func() error { _, err := s.Hosts(ended); return err },
		"audit":    func() error { _, err := s.Audit(ended, 1); return err },
		"ping":     func() error { return s.Ping(ended) },
	} {
		if err := call(); !errors.Is(err, context.Canceled) {
			t.Errorf("%s with an ended context: %v", name, err)
		}
	}

	var wg sync.WaitGroup
	var mu sync.Mutex
	acked := map[gozzard.TaskSeq]bool{}
	for i := range 40 {
		wg.Go(func() {
			ctx, cancel := context.WithCancel(t.Context())

			if i%2 == 0 {
				go cancel()
			}

			defer cancel()
			acc, err := s.Accept(ctx, newTask(attempts(1)))
			if err == nil {
				mu.Lock()
				acked[acc.Task.Seq] = true
				mu.Unlock()
			} else if !errors.Is(err, context.Canceled) {
				t.Errorf("accept: %v", err)
			}
		})
	}

	wg.Wait()
	open, err := s.Open(t.Context())
	must(t, err)
	equal(t, "tasks recorded are those acknowledged", len(open), len(acked))

	for i := range open {
		if !acked[open[i].Ref.Task] {
			t.Errorf("task %d was recorded, but its caller got an error", open[i].Ref.Task)
		}
	}
}

// concurrency runs eight writers and eight readers: everything acknowledged is in the record, numbers are unique, and
// no reader sees a part of a task.
func concurrency(t *testing.T, s control.Store) {
	const writers, rounds, size = 8, 12, 7
	var writing, reading sync.WaitGroup
	var mu sync.Mutex
	seqs := map[gozzard.TaskSeq]bool{}
	for w := range writers {
		agent := agentID(w)
		openSession(t, s, agent, 1)
		writing.Go(func() {
			for range rounds {
				list := attempts(size)
				for i := range list {
					list[i].Agent = agent
				}
				n := newTask(list)
				if err := runTask(t.Context(), s, n); err != nil {
					t.Errorf("writer %d: %v", w, err)
					return
				}
				mu.Lock()
				if seqs[n.Task.Seq] {
					t.Errorf("number %d was given twice", n.Task.Seq)
				}
				seqs[n.Task.Seq] = true
				mu.Unlock()
			}
		})
	}

	done := make(chan struct{})
	for range 8 {
		reading.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				if err := readNewest(t.Context(), s, size); err != nil {
					t.Errorf("reader: %v", err)
					return
				}
			}
		})
	}

	writing.Wait()
	close(done)
	reading.Wait()
	equal(t, "tasks", len(seqs), writers*rounds)
	open, err := s.Open(t.Context())
	must(t, err)
	equal(t, "open attempts at the end", len(open), 0)
	rows, err := s.Audit(t.Context(), 2*writers*rounds+1)
	must(t, err)
	equal(t, "audit rows: one of each task, and one of its verdicts", len(rows), 2*writers*rounds)
}

// runTask accepts a task, dispatches its attempts and records their verdicts.
func runTask(ctx context.Context, s control.Store, n *record.NewTask) error {
	if _, err := s.Accept(ctx, n); err != nil {
		return err
	}

	var sent []record.Dispatch
	var rows []record.Settlement
	for _, a := range n.Attempts {
		sent = append(sent, record.Dispatch{Ref: a.Ref, Agent: a.Agent, Session: 1, Deadline: start})
		rows = append(rows, settlement(a, gozzard.AttemptOK))
	}

	for _, write := range []func() ([]bool, error){
		func() ([]bool, error) { return s.Dispatch(ctx, sent) },
		func() ([]bool, error) { return s.Settle(ctx, rows) },
	} {
		moved, err := write()
		if err != nil {
			return err
		}
		for _, m := range moved {
			if !m {
				return errors.New("a row did not move")
			}
		}
	}

	return nil
}

// readNewest reads the newest task and checks that it is complete.
func readNewest(ctx context.Context, s control.Store, size int) error {
	rows, err := s.Audit(ctx, 1)
	if err != nil || len(rows) == 0 {
		return err
	}

	seq, ok := taskname.Parse(rows[0].TaskID).Seq()
	if !ok {
		return errors.New("an audit row has no task")
	}

	list, err := s.Attempts(ctx, seq)
	if err == nil && len(list) != size {
		err = errors.New("a part of a task was read")
	}
	if err != nil {
		return err
	}

	_, err = s.OpenOf(ctx, []gozzard.AgentID{list[0].Agent})
	return err
}
