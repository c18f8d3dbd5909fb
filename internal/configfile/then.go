package configfile

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/topology"
)

// then reloads or restarts the instances that have got another file, and of which no file failed. A retry of the job does it also for
// those whose file is there already: what followed may be what has failed.
func (w *work) then(ctx context.Context, tasks []*record.JobTask, done map[*record.JobTask][]record.ConfigDone) error {
	if w.j.Choice.Then == "" {
		return nil
	}
	action, err := gozzard.ParseAction(w.j.Choice.Then)
	if err != nil {
		return err
	}
	return w.operate(ctx, action, changed(tasks, done), "then", w.thenFailed, func(*record.JobTask, gozzard.Outcome) {})
}

// changed are the tasks of instances that have got another file, and of which no file failed.
func changed(tasks []*record.JobTask, done map[*record.JobTask][]record.ConfigDone) (list []*record.JobTask) {
	for _, t := range tasks {
		got := slices.ContainsFunc(done[t], func(d record.ConfigDone) bool { return d.Changed || t.Round > 0 })
		if t.State == record.JobRunning && got {
			list = append(list, t)
		}
	}
	return list
}

// operate does something with the processes of some tasks, waits for it, and hands over each outcome that is a success; the message of
// each other one goes to fail. After a restart of the server the same operation is found again, by the word for its turn.
func (w *work) operate(ctx context.Context, action gozzard.Action, tasks []*record.JobTask, turn string,
	fail func(*record.JobTask, string), take func(*record.JobTask, gozzard.Outcome)) error {
	if len(tasks) == 0 {
		return nil
	}
	op, of, err := w.operation(ctx, action, tasks, turn, fail)
	if err != nil || len(of) == 0 {
		return err
	}
	task, err := w.f.o.Hosts.Operate(ctx, op)
	var known *gozzard.Error
	if errors.As(err, &known) && known.Kind != gozzard.ErrUnavailable {
		for _, t := range of {
			fail(t, known.Error())
		}
		return nil
	}
	if err != nil {
		return err
	}
	return w.await(ctx, task.ID, len(of), func(i int, ok bool, out gozzard.Outcome) {
		if ok {
			take(of[i], out)
		} else {
			fail(of[i], out.Message)
		}
	})
}

// thenFailed fails a task whose files were released.
func (w *work) thenFailed(t *record.JobTask, message string) {
	err := fmt.Errorf("the file was released, but %s failed: %s", w.j.Choice.Then, message)
	failWith(t, record.ReasonThen, err.Error())
}

// operation is the operation on the instances of some tasks, and the tasks that it has. It has the same key after a restart of the
// server, so it is carried out at most once.
func (w *work) operation(ctx context.Context, action gozzard.Action, tasks []*record.JobTask, turn string, fail func(*record.JobTask, string)) (
	*gozzard.Operation, []*record.JobTask, error) {
	// Find the definitions.
	type instance struct{ process, local int }
	var ids []int
	for _, t := range tasks {
		ids = append(ids, t.Process)
	}
	_, rows := w.f.o.Plane.FindProcesses(w.j.Caller, topology.Query{Biz: w.j.Biz, Processes: ids, Limit: -1})
	items, err := w.f.o.Plane.TopologyItems(ctx, w.j.Biz, rows, action)
	if err != nil {
		return nil, nil, err
	}
	found := map[instance]*record.TopologyItem{}
	for i := range items {
		it := &items[i]
		found[instance{it.Row.Process, it.Row.Instances[it.Instance].Local}] = it
	}

	// Make the items.
	op := &gozzard.Operation{Caller: w.j.Caller, Door: releaseDoor,
		IdempotencyKey: fmt.Sprintf("config·%d:%d:%d:%s", w.j.ID, tasks[0].Round, tasks[0].ID, turn)}
	hash := sha256.New()
	enc := json.NewEncoder(hash)
	var of []*record.JobTask
	for _, t := range tasks {
		it := found[instance{t.Process, t.Local}]
		switch {
		case it == nil:
			fail(t, "the process is not in the business any more, or may not be seen")
			continue
		case len(it.Missing) > 0 && action != gozzard.ActionRestart: // without a command it is a stop and a start
			fail(t, "the process has no "+strings.Join(it.Missing, ", "))
			continue
		case it.Template != "":
			fail(t, it.Template)
			continue
		}
		item := it.Item
		item.Action, item.Targets = action, []gozzard.Target{targetOf(t)}
		op.Items, of = append(op.Items, item), append(of, t)
		if err := enc.Encode([]any{t.ID, action.Stored()}); err != nil {
			return nil, nil, fmt.Errorf("cannot compute the digest of an operation: %w", err)
		}
	}
	hash.Sum(op.RequestHash[:0])
	return op, of, nil
}
