package control

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/record"
)

// The bounds of the tasks that viewers follow.
const (
	feedTasks   = 256                    // the newest changed tasks that are remembered
	feedTargets = 1000                   // the largest task whose hosts are compared with the rights of a viewer
	feedEvery   = 500 * time.Millisecond // between two reads of the record, for all viewers together
)

// taskFeed remembers which tasks changed last. What viewers see of these is read once for all of them, and nothing is
// read while nobody asks.
type taskFeed struct {
	mu      sync.Mutex
	n       uint64                     // number of the newest change
	tasks   map[gozzard.TaskSeq]uint64 // number of the newest change of each task
	changed chan struct{}              // closed when a task changes; nil when nobody waits

	reading sync.Mutex // guards what follows; held while the record is read
	read    uint64     // the changes up to this number are in list
	readAt  time.Time
	list    map[gozzard.TaskSeq]*fedTask
}

// fedTask is a task as the record had it last.
type fedTask struct {
	n       uint64 // number of its change
	summary record.TaskSummary
	places  []record.TaskPlace // nil: not read
}

// note records that a task changed.
func (f *taskFeed) note(seq gozzard.TaskSeq) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.n++
	if f.tasks == nil {
		f.tasks = map[gozzard.TaskSeq]uint64{}
	}
	if _, known := f.tasks[seq]; !known && len(f.tasks) >= feedTasks {
		f.dropOldest()
	}
	f.tasks[seq] = f.n
	if f.changed != nil {
		close(f.changed)
		f.changed = nil
	}
}

// dropOldest forgets the half that changed longest ago, so that it seldom runs. mu is held.
func (f *taskFeed) dropOldest() {
	for seq, n := range f.tasks {
		if n+feedTasks/2 <= f.n && len(f.tasks) > feedTasks/2 {
			delete(f.tasks, seq)
		}
	}
	for seq := range f.tasks {
		if len(f.tasks) < feedTasks {
			return
		}
		delete(f.tasks, seq)
	}
}

// after lists the tasks that changed after a number.
func (f *taskFeed) after(n uint64) (tasks map[gozzard.TaskSeq]uint64, newest uint64, changed <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	tasks = map[gozzard.TaskSeq]uint64{}
	for seq, at := range f.tasks {
		if at > n {
			tasks[seq] = at
		}
	}
	if f.changed == nil {
		f.changed = make(chan struct{})
	}
	return tasks, f.n, f.changed
}

// LastTaskChange is the number of the newest change of a task, from which TasksAfter goes on.
func (p *Plane) LastTaskChange() uint64 {
	p.taskFeed.mu.Lock()
	defer p.taskFeed.mu.Unlock()
	return p.taskFeed.n
}

// TasksAfter lists the tasks that changed after a number and that the caller may read, the newest change last. next is
// the number from which to go on, and changed is closed when there may be more. Of very large tasks of other people only
// callers that see everything get news.
func (p *Plane) TasksAfter(ctx context.Context, caller gozzard.Caller, after uint64) (list []record.TaskSummary,
	next uint64, changed <-chan struct{}, err error) {
	f := &p.taskFeed
	f.reading.Lock()
	defer f.reading.Unlock()

	// Read what changed since the last reader asked.
	tasks, newest, changed := f.after(f.read)
	if len(tasks) > 0 && p.o.Now().Sub(f.readAt) >= feedEvery {
		if err := p.readFed(ctx, tasks); err != nil {
			return nil, after, changed, err
		}
		f.read, f.readAt = newest, p.o.Now()
	} else if len(tasks) > 0 {
		changed = soon() // it is too early
	} else {
		f.read = newest
	}

	// List what is new for this reader.
	var found []*fedTask
	sees := p.sight(caller.Rights)
	for _, t := range f.list {
		if t.n > after && p.readsFed(ctx, caller, t, sees) {
			found = append(found, t)
		}
	}
	slices.SortFunc(found, func(a, b *fedTask) int { return cmp.Compare(a.n, b.n) })
	for _, t := range found {
		list = append(list, t.summary)
	}
	return list, f.read, changed, nil
}

// soon is a closed channel: there is more, but a reader must not ask for it at once.
func soon() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

// readFed reads tasks of the record. The reader holds reading.
func (p *Plane) readFed(ctx context.Context, tasks map[gozzard.TaskSeq]uint64) error {
	// Read them together.
	var seqs []gozzard.TaskSeq
	for seq := range tasks {
		seqs = append(seqs, seq)
	}
	items, err := p.o.Store.TaskItems(ctx, seqs)
	if err != nil {
		return err
	}
	verdicts, err := p.o.Store.TaskVerdicts(ctx, seqs)
	if err != nil {
		return err
	}

	// Read the tasks themselves, which do not change.
	f := &p.taskFeed
	next := map[gozzard.TaskSeq]*fedTask{}
	for _, seq := range seqs {
		old := f.list[seq]
		if old == nil {
			old = &fedTask{}
			if old.summary.Task, err = p.o.Store.Task(ctx, seq); err != nil {
				if gozzard.KindOf(err) == gozzard.ErrNotFound {
					continue // it was removed meanwhile
				}
				return err
			}
		}
		next[seq] = &fedTask{n: tasks[seq], places: old.places,
			summary: record.TaskSummary{Task: old.summary.Task, Items: items[seq]}}
	}
	for _, v := range verdicts {
		if t := next[v.Task]; t != nil {
			for i := range t.summary.Items {
				if it := &t.summary.Items[i]; it.Index == v.Item {
					t.summary.Counts.Add(it.Action, v.State, v.Code, v.N)
					break
				}
			}
		}
	}

	// Forget those that changed long ago.
	for seq, t := range f.list {
		if _, again := next[seq]; !again && len(next) < feedTasks {
			next[seq] = t
		}
	}
	f.list = next
	return nil
}

// readsFed reports whether a caller may read a task, as Results does. The reader holds reading.
func (p *Plane) readsFed(ctx context.Context, caller gozzard.Caller, t *fedTask,
	sees func(gozzard.AgentID, gozzard.HostAddr, string) bool) bool {
	task := &t.summary.Task
	if !caller.ReadsTasksOf(task.Caller.App) {
		return false
	}
	if readsWhole(caller, task) {
		return true
	}
	if task.Targets > feedTargets {
		return false
	}

	if t.places == nil {
		places, err := p.o.Store.TaskPlaces(ctx, []gozzard.TaskSeq{task.Seq})
		if err != nil { // it is in the list of tasks when that is asked for
			return false
		}
		t.places = places
	}
	spaces := map[int32]string{}
	for i := range t.summary.Items {
		spaces[t.summary.Items[i].Index] = t.summary.Items[i].Key.Namespace
	}
	return len(t.places) > 0 && !slices.ContainsFunc(t.places, func(at record.TaskPlace) bool {
		return !sees(at.Agent, at.Addr, spaces[at.Item])
	})
}
