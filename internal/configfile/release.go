package configfile

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/record"
)

// Hosts reads and writes files of hosts.
type Hosts interface {
	WriteFiles(ctx context.Context, op *gozzard.FileOperation) (gozzard.Task, error)
	Await(ctx context.Context, caller gozzard.Caller, id gozzard.TaskID, limit time.Duration) (record.TaskResults, error)
	ReadFile(ctx context.Context, caller gozzard.Caller, q gozzard.FileRead) (gozzard.FileView, error)
	Operate(ctx context.Context, op *gozzard.Operation) (gozzard.Task, error)
}

const (
	releaseDoor  = "config" // of the operations that write files, as the record has it
	releaseLimit = 5 * time.Minute
	awaitPause   = 2 * time.Second
)

// whole is the path of a file on its host.
func whole(c *record.ConfigInstance) string { return path.Join(c.Path, c.Name) }

// lineEnds is how the lines of the files of a template end on hosts.
func lineEnds(t *record.ConfigListed) gozzard.LineEnds {
	switch t.LineSeparator {
	case "LF":
		return gozzard.LineEndsLF
	case "CRLF":
		return gozzard.LineEndsCRLF
	}
	return ""
}

// targetOf is the host of a task.
func targetOf(t *record.JobTask) gozzard.Target {
	target := gozzard.Target{Agent: t.Agent, ResultKey: fmt.Sprint(t.ID)}
	if t.Agent == "" {
		target.Addr = t.Addr
	}
	return target
}

// written is one file on one host. Several instances on a host may share it.
type written struct {
	files   []made
	write   gozzard.FileWrite
	outcome gozzard.Outcome
	ok      bool
}

// release writes the newest rendered files of some tasks to their hosts.
func (w *work) release(ctx context.Context, tasks []*record.JobTask) error {
	files, err := w.rendered(ctx, tasks, false)
	if err != nil {
		return err
	}
	if w.j.Choice.Back != nil {
		if err := w.again(ctx, files); err != nil {
			return err
		}
	}
	list := w.writes(files)
	if err := w.write(ctx, tasks, possible(list), ""); err != nil {
		return err
	}
	if err := w.writeAgain(ctx, tasks, list); err != nil {
		return err
	}

	// Record what hosts have taken.
	done := map[*record.JobTask][]record.ConfigDone{}
	var taken []int64
	for i := range list {
		for _, m := range list[i].files {
			d := doneWith(m.of, &m.file)
			if list[i].ok {
				taken = append(taken, m.file.ID)
				d.Changed = list[i].outcome.File.Code != gozzard.FileSame // also if the agent does not report it
			} else {
				d.Reason, d.Message = record.ReasonWrite, list[i].outcome.Message
				failWith(m.task, d.Reason, fmt.Sprintf("%s: %s", whole(&m.file), d.Message))
			}
			done[m.task] = append(done[m.task], d)
		}
	}
	if err := w.f.o.Store.ReleaseConfigs(ctx, w.j.Biz, taken); err != nil {
		return err
	}
	if err := w.then(ctx, tasks, done); err != nil {
		return err
	}
	if err := w.watch(ctx, tasks, done); err != nil {
		return err
	}
	return w.finish(tasks, done)
}

// failWith fails a task, unless it has failed already.
func failWith(t *record.JobTask, reason record.JobReason, message string) {
	if t.State != record.JobFailed {
		t.State, t.Reason, t.Message = record.JobFailed, reason, message
	}
}

// rendered finds the files of tasks with their contents: the newest, or those that were released last. Tasks without a file are
// ended here, except that nothing has to be released for a comparison.
func (w *work) rendered(ctx context.Context, tasks []*record.JobTask, released bool) ([]made, error) {
	// Find the places.
	var list []made
	var slots []record.ConfigSlot
	for _, t := range tasks {
		at, known := w.renderer.spots[t.Process]
		if !known {
			w.reject(t, noProcess(t.Process))
			continue
		}
		templates := w.chosen(at)
		if len(templates) == 0 {
			w.reject(t, errUnbound)
		}
		for _, tpl := range templates {
			list = append(list, made{task: t, of: tpl})
			slots = append(slots, record.ConfigSlot{Template: tpl.ID, Process: t.Process, Inst: t.Inst})
		}
	}

	// Find what was rendered for them.
	files, err := w.f.o.Store.ConfigInstances(ctx, w.j.Biz, slots)
	if err != nil {
		return nil, err
	}
	newest, last := newestOf(files)
	back := releasedWith(files, w.j.Choice.Back)
	var found []made
	for i, m := range list {
		c, before := newest[slots[i]], last[slots[i]]
		if released {
			c = before
		}
		if w.j.Choice.Back != nil {
			c = back[slots[i]]
		}
		if c == nil {
			if !released {
				failWith(m.task, record.ReasonNotMade, m.of.Name)
			}
			continue
		}
		m.file = *c
		if w.j.Choice.Expect && before != nil && whole(before) == whole(c) {
			m.before = before
		}
		found = append(found, m)
	}

	var pointers []*record.ConfigInstance
	for i := range found {
		pointers = append(pointers, &found[i].file, found[i].before)
	}
	return found, w.f.fill(ctx, w.j.Biz, pointers...)
}

// writes are the files to write, each once for a host. Tasks that have failed get none.
func (w *work) writes(files []made) []written {
	type place struct {
		target gozzard.Target
		path   string
	}
	at := map[place]int{}
	var list []written
	for _, m := range files {
		if m.task.State == record.JobFailed {
			continue
		}
		target := targetOf(m.task)
		p := place{gozzard.Target{Agent: target.Agent, Addr: target.Addr}, whole(&m.file)}
		i, known := at[p]
		if known && list[i].write.Account == m.of.Owner && string(list[i].write.Content) == m.file.Content {
			list[i].files = append(list[i].files, m)
			if m.before != nil && list[i].write.Expect == "" {
				list[i].write.Expect = digestOf(m.of, m.before)
			}
			continue
		}
		x := written{files: []made{m}, write: gozzard.FileWrite{Namespace: gozzard.BusinessNamespace(w.j.Biz), Target: target, Path: p.path,
			Account: m.of.Owner, Group: m.of.Group, Mode: m.of.Mode, LineEnds: lineEnds(m.of), Content: []byte(m.file.Content)}}
		if m.before != nil {
			x.write.Expect = digestOf(m.of, m.before)
		}
		if known {
			x.outcome.Message = "another file of this job has the same path on this host and another content"
		} else if err := checkWrite(&x.write); err != nil {
			x.outcome.Message = err.Error()
		} else {
			at[p] = len(list)
		}
		list = append(list, x)
	}
	return list
}

// checkWrite finds what makes one file impossible, so that it does not reject the others.
func checkWrite(w *gozzard.FileWrite) error {
	content, err := w.LineEnds.Apply(w.Content)
	if err != nil {
		return err
	}
	spec := gozzard.FileSpec{Path: w.Path, Group: w.Group, Mode: w.Mode}
	spec.SetContent(content)
	return spec.Validate()
}

// possible are the files that hosts can be asked to write.
func possible(list []written) (open []*written) {
	for i := range list {
		if list[i].outcome.Message == "" {
			open = append(open, &list[i])
		}
	}
	return open
}

// write writes files and waits for the verdicts of the hosts. After a restart of the server the same operation is found again, by the
// word for its turn within the job.
func (w *work) write(ctx context.Context, tasks []*record.JobTask, open []*written, turn string) error {
	if len(open) == 0 {
		return nil
	}
	hash := sha256.New()
	enc := json.NewEncoder(hash)
	op := &gozzard.FileOperation{Caller: w.j.Caller, Door: releaseDoor,
		IdempotencyKey: fmt.Sprintf("config·%d:%d:%d%s", w.j.ID, tasks[0].Round, tasks[0].ID, turn)}
	for _, x := range open {
		op.Writes = append(op.Writes, x.write)
		if err := enc.Encode([]any{x.write.Target.Agent, x.write.Target.Addr, x.write.Path, gozzard.FileDigest(x.write.Content)}); err != nil {
			return fmt.Errorf("cannot compute the digest of an operation: %w", err)
		}
	}
	hash.Sum(op.RequestHash[:0])

	task, err := w.f.o.Hosts.WriteFiles(ctx, op)
	var known *gozzard.Error
	if errors.As(err, &known) && known.Kind != gozzard.ErrUnavailable {
		for _, x := range open {
			x.outcome.Message = known.Error()
		}
		return nil
	}
	if err != nil {
		return err
	}
	return w.verdicts(ctx, task.ID, open)
}

// verdicts waits for the verdicts of an operation that writes files.
func (w *work) verdicts(ctx context.Context, id gozzard.TaskID, open []*written) error {
	return w.await(ctx, id, len(open), func(i int, ok bool, outcome gozzard.Outcome) { open[i].ok, open[i].outcome = ok, outcome })
}

// await waits for the verdicts of an operation with some targets, and hands over each. What did not succeed has a message.
func (w *work) await(ctx context.Context, id gozzard.TaskID, targets int, take func(i int, ok bool, outcome gozzard.Outcome)) error {
	for end := w.f.o.Now().Add(releaseLimit); ; {
		res, err := w.f.o.Hosts.Await(ctx, w.j.Caller, id, awaitPause)
		if err != nil && gozzard.KindOf(err) != gozzard.ErrNotFound {
			return err
		}
		late := !w.f.o.Now().Before(end)
		if err == nil && len(res.Attempts) == targets && res.Open() > 0 && !late {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(awaitPause / 20):
			}
			continue
		}

		for i := range targets {
			switch {
			case err != nil || len(res.Attempts) != targets:
				take(i, false, gozzard.Outcome{Message: "the results of the operation are gone"})
			case !res.Attempts[i].State.Final():
				take(i, false, gozzard.Outcome{Message: "no verdict in time; it may still be done"})
			default:
				out := res.Attempts[i].Outcome
				if out.Message == "" {
					out.Message = string(out.Code)
				}
				take(i, res.Attempts[i].State == gozzard.AttemptOK, out)
			}
		}
		return nil
	}
}
