package waves

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/pace"
	"github.com/gozzard/gozzard/internal/record"
)

// send starts one operation for a batch of tasks and records its id. The operation is never started twice. If the
// server dies before the id is recorded, the next run starts it with the same idempotency key and gets the id of the
// same operation.
func (r *Runner) send(ctx context.Context, j *record.Job, part []*record.JobTask) error {
	// Start the operation.
	op, err := operation(r.o.Door, j, part)
	if err == nil {
		var task gozzard.Task
		if task, err = r.operate(ctx, op); err == nil {
			for _, t := range part {
				t.State, t.Task, t.Started = record.JobRunning, task.ID, r.o.Now()
			}
			return r.save(ctx, nil, part)
		}
		if ended(ctx, err) {
			return err
		}
	}

	// Fail the tasks of an operation that was rejected. The message is for callers, the cause for the log.
	reason, message := record.ReasonInternal, "the operation could not be recorded"
	var known *gozzard.Error
	if errors.As(err, &known) {
		public := gozzard.Error{Message: known.Message, Faults: known.Faults}
		reason, message = record.ReasonRefused, public.Error()
	}

	r.o.Log.Error("cannot start an operation of a job",
		"job", j.ID, "group", part[0].Group, "wave", part[0].Wave, "err", err)
	for _, t := range part {
		t.State, t.Reason, t.Message, t.Ended = record.JobFailed, reason, message, r.o.Now()
	}

	return r.save(ctx, nil, part)
}

// operate starts an operation. It tries again only while the result is unknown. An operation that exceeds a limit is
// rejected and not tried again: no caller wants a process to start hours later.
func (r *Runner) operate(ctx context.Context, op *gozzard.Operation) (task gozzard.Task, err error) {
	select {
	case <-ctx.Done():
		return task, ctx.Err()
	case r.sending <- struct{}{}:
	}

	defer func() { <-r.sending }()

	var refused error
	err = r.retryUntilDone(ctx, "an operation", func() error {
		var err error
		op.Caller.Rights = r.o.Rights(op.Caller)
		if task, err = r.o.Plane.Operate(ctx, op); isKind(err, gozzard.ErrUnavailable) || ctx.Err() != nil {
			return err
		}
		refused = err
		return nil
	})

	return task, errors.Join(err, refused)
}

// operation builds the operation of a batch of tasks. It must be the same after a restart.
func operation(door string, j *record.Job, part []*record.JobTask) (*gozzard.Operation, error) {
	first := part[0]
	op := &gozzard.Operation{
		Caller: j.Caller, Door: door, Items: make([]gozzard.Item, len(part)), IdempotencyKey: idempotencyKey(first),
	}
	specs := map[string]*gozzard.Spec{}
	hash := sha256.New()
	enc := json.NewEncoder(hash)
	for i, t := range part {
		spec, known := specs[string(t.Spec)]
		if !known && len(t.Spec) > 0 {
			var err error
			if spec, err = gozzard.DecodeSpec(t.Spec); err != nil {
				return nil, fmt.Errorf("cannot decode the definition of %s: %w", t.Key, err)
			}
			specs[string(t.Spec)] = spec
		}

		target := targetOf(t)
		op.Items[i] = gozzard.Item{
			Action: j.Action, Key: t.Key, Labels: t.Labels, Spec: spec, Targets: []gozzard.Target{target},
		}
		if err := enc.Encode([]any{t.ID, j.Action.Stored(), t.Agent, target.ResultKey, t.Labels, t.Spec}); err != nil {
			return nil, fmt.Errorf("cannot compute the digest of %s: %w", t.Key, err)
		}
	}

	hash.Sum(op.RequestHash[:0])
	return op, nil
}

func targetOf(t *record.JobTask) gozzard.Target {
	target := gozzard.Target{Agent: t.Agent, ResultKey: string(t.Agent) + ":" + t.Key.String()}
	if t.Addr.IP.IsValid() {
		target.ResultKey = t.Addr.String() + ":" + t.Key.String()
	}
	if t.Agent == "" {
		target.Addr = t.Addr
	}
	return target
}

// idempotencyKey identifies an operation for ever. The first task distinguishes the batches of a wave. The character
// "·" is not allowed in the keys of callers, so no caller can have used the key.
func idempotencyKey(first *record.JobTask) string {
	return fmt.Sprintf("rollout·%d:%d:%s:%d:%d", first.Job, first.Round, first.Group, first.Wave, first.ID)
}

// await waits for the verdicts of an operation and records them as they arrive. A task without a verdict in time has
// failed; its message says that the operation may still be carried out.
func (r *Runner) await(ctx context.Context, j *record.Job, op []*record.JobTask) error {
	limit := r.limit(j, op)
	// Reading the results of a large operation takes time.
	pause := time.Second + time.Duration(len(op))*100*time.Microsecond
	for {
		asked := time.Now()
		wait := max(0, min(pause, limit.Sub(r.o.Now())))
		var res record.TaskResults
		err := r.retryUntilDone(ctx, "results of an operation", func() (err error) {
			res, err = r.o.Plane.Await(ctx, j.Caller, op[0].Task, wait)
			return err
		})
		if err != nil && !isKind(err, gozzard.ErrNotFound) {
			return err
		}

		lost := ""
		switch {
		case err != nil:
			lost = "the results of the operation are gone"
		case !fits(op, res.Attempts):
			lost = "the results of the operation are not those of these processes"
		}
		news, open := r.applyVerdicts(op, res.Attempts, lost, !r.o.Now().Before(limit))
		if err := r.save(ctx, nil, news); err != nil || open == 0 {
			return err
		}

		// Await returns early when another server has the operation: do not ask again at once.
		if err := pace.Sleep(ctx, wait-time.Since(asked)); err != nil {
			return err
		}
	}
}

// applyVerdicts writes the final verdicts into the open tasks of an operation. lost: why there are no results, "" if
// there are. late: tasks without a verdict fail now. It returns the tasks that became final, and how many are still
// open.
func (r *Runner) applyVerdicts(
	op []*record.JobTask, attempts []gozzard.Attempt, lost string, late bool,
) (news []*record.JobTask, open int) {
	for i, t := range op {
		if t.State.Final() {
			continue
		}
		switch {
		case lost != "":
			t.State, t.Reason, t.Message = record.JobFailed, record.ReasonInternal, lost
		case attempts[i].State.Final():
			applyVerdict(t, &attempts[i])
		case late:
			t.State, t.Reason, t.Message = record.JobFailed, record.ReasonTimeout, attempts[i].Outcome.Message
			if t.Message == "" {
				t.Message = "no verdict in time; it may still be done"
			}
		default:
			open++
			continue
		}

		t.Ended = r.o.Now()
		news = append(news, t)
	}
	return news, open
}

// fits reports whether the attempts belong to the tasks, one for each and in the same order.
func fits(op []*record.JobTask, attempts []gozzard.Attempt) bool {
	if len(op) != len(attempts) {
		return false
	}
	for i, t := range op {
		if attempts[i].Key != t.Key {
			return false
		}
	}
	return true
}

// limit is when to stop waiting for an operation. After a restart of the server the hosts get time to reconnect.
func (r *Runner) limit(j *record.Job, op []*record.JobTask) time.Time {
	budget := time.Duration(0)
	var last []byte
	for _, t := range op {
		if len(t.Spec) == 0 || len(last) > 0 && &last[0] == &t.Spec[0] { // equal definitions share their bytes
			continue
		}
		last = t.Spec
		if s, err := gozzard.DecodeSpec(t.Spec); err == nil { // cannot fail: it was decoded before it was sent
			budget = max(budget, s.Budget(j.Action))
		}
	}

	end, now := op[0].Started.Add(budget), r.o.Now()
	if end.Before(now) {
		end = now
	}

	return end.Add(r.o.Timeout)
}
