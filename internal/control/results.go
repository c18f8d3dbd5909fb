package control

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/record"
)

// The bounds of the attempts that are kept in memory for callers that poll large tasks.
const (
	keptFrom  = 1000            // attempts of a task; the record reads fewer as fast
	keptMost  = 150_000         // attempts of all tasks together; one task may have more
	keptFor   = time.Minute     // after the last poll
	keptTrust = 5 * time.Second // while a task runs
)

// taskResults keeps the attempts of large tasks that callers poll. The record is read for the first poll. Later polls get
// what changed since from the writes of this server. Another server on the same record may write too, so while a task
// runs it is read again from time to time.
type taskResults struct {
	o *Options

	mu      sync.Mutex
	tasks   map[gozzard.TaskSeq]*keptTask
	kept    int    // attempts
	version uint64 // the last one that was given
}

// keptTask is a task that is polled.
type keptTask struct {
	reading sync.Mutex // held while the record is read: callers that come together read it once

	// guarded by taskResults.mu
	attempts []gozzard.Attempt // never changed: callers have it
	open     bool              // some attempt is not final
	version  uint64            // of attempts
	changes  []attemptChange   // that are not in attempts
	readAt   time.Time         // zero: not yet
	usedAt   time.Time
}

// attemptChange is what a write changed.
type attemptChange struct {
	index   int32
	state   gozzard.AttemptState
	outcome gozzard.Outcome

	dispatched bool // then the two below changed too
	session    uint64
	deadline   time.Time
}

func newTaskResults(o *Options) *taskResults {
	return &taskResults{o: o, tasks: map[gozzard.TaskSeq]*keptTask{}}
}

// of reads the attempts of a task. They must not be changed.
func (r *taskResults) of(ctx context.Context, t gozzard.Task) (res record.TaskResults, err error) {
	res.Task = t
	if t.Targets < keptFrom {
		res.Attempts, err = r.o.Store.Attempts(ctx, t.Seq)
		return res, err
	}

	k := r.keep(t.Seq)
	k.reading.Lock()
	defer k.reading.Unlock()
	if r.current(k, &res) {
		return res, nil
	}

	// Read the record. What is written meanwhile is noted in changes.
	list, err := r.o.Store.Attempts(ctx, t.Seq)
	if err != nil {
		r.drop(t.Seq)
		return res, err
	}
	r.put(k, list, &res)
	return res, nil
}

// keep finds a task, or adds it before the record is read: from now on its changes are noted.
func (r *taskResults) keep(seq gozzard.TaskSeq) *keptTask {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.forget()
	k := r.tasks[seq]
	if k == nil {
		k = &keptTask{}
		r.tasks[seq] = k
	}
	k.usedAt = r.o.Now()
	return k
}

// current fills in what is known of a task, with its changes. It reports false when the record must be read.
func (r *taskResults) current(k *keptTask, res *record.TaskResults) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if k.readAt.IsZero() {
		return false
	}
	r.applyChanges(k)
	if k.open && r.o.Now().Sub(k.readAt) > keptTrust {
		return false
	}
	res.Attempts, res.Version = k.attempts, k.version
	return true
}

// put takes over what the record had, and fills in what is known then.
func (r *taskResults) put(k *keptTask, list []gozzard.Attempt, res *record.TaskResults) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.tasks[res.Task.Seq] != k { // forgotten meanwhile
		res.Attempts = list
		return
	}
	r.kept += len(list) - len(k.attempts)
	k.readAt = r.o.Now()
	r.replace(k, list)
	r.applyChanges(k)
	res.Attempts, res.Version = k.attempts, k.version
}

// replace gives a task other attempts. mu is held.
func (r *taskResults) replace(k *keptTask, list []gozzard.Attempt) {
	r.version++
	k.attempts, k.version, k.open = list, r.version, false
	for i := range list { // an attempt is large: not by value
		if !list[i].State.Final() {
			k.open = true
			break
		}
	}
}

// drop forgets a task.
func (r *taskResults) drop(seq gozzard.TaskSeq) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.remove(seq)
}

// remove is drop with mu held.
func (r *taskResults) remove(seq gozzard.TaskSeq) {
	if k := r.tasks[seq]; k != nil {
		r.kept -= len(k.attempts)
		delete(r.tasks, seq)
	}
}

// settled takes over a row that was written.
func (r *taskResults) settled(row *record.Settlement) {
	r.note(row.Ref, attemptChange{state: row.To, outcome: row.Outcome})
}

// dispatched takes over a row that was written.
func (r *taskResults) dispatched(row *record.Dispatch) {
	r.note(row.Ref, attemptChange{state: gozzard.AttemptDispatched, dispatched: true, session: row.Session,
		deadline: row.Deadline.Truncate(time.Millisecond)})
}

func (r *taskResults) note(ref gozzard.AttemptRef, c attemptChange) {
	c.index = ref.Index
	r.mu.Lock()
	defer r.mu.Unlock()
	if k := r.tasks[ref.Task]; k != nil {
		k.changes = append(k.changes, c)
	}
}

// tidy forgets the tasks that are polled no more, also while no other task is polled.
func (r *taskResults) tidy() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.forget()
}

// forget forgets the tasks that are polled no more, and those polled longest ago while there are too many attempts. mu is
// held. There are few tasks: each has many attempts.
func (r *taskResults) forget() {
	now := r.o.Now()
	for seq, k := range r.tasks {
		if now.Sub(k.usedAt) > keptFor {
			r.remove(seq)
		}
	}
	for r.kept > keptMost && len(r.tasks) > 1 {
		var oldest gozzard.TaskSeq
		for seq, k := range r.tasks {
			if o := r.tasks[oldest]; o == nil || k.usedAt.Before(o.usedAt) {
				oldest = seq
			}
		}
		r.remove(oldest)
	}
}

// applyChanges brings a copy of the attempts in line with the changes. A change may have been read already, and one that was
// written before it too: a final state stays. mu is held.
func (r *taskResults) applyChanges(k *keptTask) {
	if len(k.changes) == 0 || k.attempts == nil {
		return
	}
	list := slices.Clone(k.attempts)
	for i := range k.changes {
		c := &k.changes[i]
		at, found := slices.BinarySearchFunc(list, c.index, func(a gozzard.Attempt, index int32) int {
			return int(a.Ref.Index) - int(index)
		})
		if !found || list[at].State.Final() {
			continue
		}
		list[at].State, list[at].Outcome = c.state, c.outcome
		if c.dispatched {
			list[at].Session, list[at].Deadline = c.session, c.deadline
		}
	}
	k.changes = nil
	r.replace(k, list)
}
