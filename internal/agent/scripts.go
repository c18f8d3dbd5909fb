package agent

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/supervise"
)

// scriptWorkers is how many scripts run at the same time. The others wait in their order.
const scriptWorkers = 4

// scriptWork is a script that waits or runs.
type scriptWork struct {
	op   *operation
	in   gozzard.Op
	spec *gozzard.Spec // nil: the definition cannot be read
}

// scriptQueue has the scripts in their order. A goroutine exists only while there is something to do.
type scriptQueue struct {
	mu      sync.Mutex
	waiting []scriptWork
	workers int
	done    sync.WaitGroup
}

// add adds a script and makes sure that somebody works.
func (q *scriptQueue) add(w scriptWork, run func(scriptWork)) {
	q.mu.Lock()
	defer q.mu.Unlock()

	q.waiting = append(q.waiting, w)
	if q.workers < scriptWorkers {
		q.workers++
		q.done.Go(func() {
			for w, ok := q.next(); ok; w, ok = q.next() {
				run(w)
			}
		})
	}
}

// next takes the first script. Without one the worker ends.
func (q *scriptQueue) next() (scriptWork, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()

	if len(q.waiting) == 0 {
		q.workers--
		return scriptWork{}, false
	}
	w := q.waiting[0]
	q.waiting = q.waiting[1:]
	return w, true
}

// queueScript lets a script wait for its turn.
func (a *Agent) queueScript(op *operation, in *gozzard.Op) {
	w := scriptWork{op: op, in: *in}
	if spec, err := gozzard.DecodeSpec(in.Spec); err == nil {
		w.spec = spec
	}
	a.scripts.add(w, a.runScript)
}

// runScript carries out a script. If the agent ends in the middle, nothing is recorded: the next run of the agent ends what
// still runs, and the verdict is that the script was interrupted.
func (a *Agent) runScript(w scriptWork) {
	ctx, cancel := a.untilEnd()
	defer cancel()
	select {
	case <-a.ended: // what has not begun is found absent by the next session
		return
	default:
	}

	if byPolicy, err := a.checkScript(&w); err != nil {
		a.rejectScript(w.op, err, byPolicy)
		return
	}
	done := a.reportAct(&w.in, nil)
	if err := a.begin(w.op); err != nil { // it was cancelled, or its intent cannot be recorded: it has its verdict
		return
	}
	out, ended := a.runSteps(ctx, &w)
	if !ended {
		return
	}
	a.finish(w.op, out, nil, false)
	if done != nil {
		done(out, nil, false)
	}
}

// checkScript checks a script, its account and the policy, without an effect.
func (a *Agent) checkScript(w *scriptWork) (byPolicy bool, err error) {
	if w.spec == nil || w.spec.Script == nil {
		return false, errors.New("the operation has no script that this agent can read")
	}
	spec, account := w.spec.Script, w.spec.Identity.User
	if err := spec.Validate(); err != nil {
		return false, err
	}
	if account == "" {
		return false, errors.New("the operation names no account that the script runs as")
	}
	if !scriptsRun {
		return false, errors.New("this agent cannot run scripts on this host: it can on Linux only")
	}
	if err := a.compareAccount(w.op.key, w.spec, w.in.Account); err != nil {
		return false, err
	}
	if a.o.Policy != nil {
		return true, a.o.Policy.Script(w.op.key.Namespace, account, spec)
	}
	return false, nil
}

// rejectScript records that a script never runs.
func (a *Agent) rejectScript(op *operation, err error, byPolicy bool) {
	a.log.Warn("a script was rejected", "op", op.id, "ns", op.key.Namespace, "script", op.key.Name, "err", err)

	a.mu.Lock()
	defer a.mu.Unlock()
	if gozzard.MayBegin(op.phase) {
		a.writeTombstone(op, gozzard.Outcome{Code: gozzard.CodeRefused, Message: clip(err.Error()), Policy: byPolicy})
	}
}

// runSteps runs the steps of a script. It returns false if the agent ends first: then the outcome is not known.
func (a *Agent) runSteps(ctx context.Context, w *scriptWork) (out gozzard.Outcome, ended bool) {
	script := w.spec.Script
	results := &gozzard.ScriptResult{}
	failed := map[int]bool{}
	left, first := script.Output, ""

	for i := range script.Steps {
		step := &script.Steps[i]
		res := gozzard.StepResult{ID: step.ID, State: gozzard.StepSkipped, Exit: -1}
		for _, id := range step.After {
			if failed[id] {
				res.Message = fmt.Sprintf("not run: step %d did not succeed", id)
			}
		}
		if res.Message == "" {
			if res, ended = a.runStep(ctx, w, step, left/(len(script.Steps)-i)); !ended {
				return out, false
			}
			left -= len(res.Output)
		}

		if res.State != gozzard.StepOK {
			failed[step.ID] = true
			if first == "" {
				first = fmt.Sprintf("step %d: %s", step.ID, res.Message)
			}
		}
		results.Steps = append(results.Steps, res)
	}

	out = gozzard.Outcome{Code: gozzard.CodeOK, Script: results}
	if first != "" {
		out.Code, out.Message = gozzard.CodeCommandFailed, clip(first)
	}
	return out, true
}

// runStep runs one step; most is how much of its output is returned.
func (a *Agent) runStep(ctx context.Context, w *scriptWork, step *gozzard.ScriptStep,
	most int) (res gozzard.StepResult, ended bool) {
	res = gozzard.StepResult{ID: step.ID, Exit: -1, Began: time.Now().UnixMilli()}
	got, err := a.o.Host.Run(ctx, supervise.Run{Key: w.op.key, Spec: w.spec, Op: w.op.id, Action: gozzard.ActionScript,
		Command: step.Command, Timeout: time.Duration(step.Seconds) * time.Second, Texts: w.spec.Script.Texts, Whole: most})
	if err != nil && ctx.Err() != nil { // it may have run, or may still run
		return res, false
	}
	res.Ended = time.Now().UnixMilli()
	if err != nil {
		res.State, res.Message = gozzard.StepFailed, clip(fmt.Sprintf("it could not be run: %v", err))
		return res, true
	}

	res.Exit, res.Output, res.LeftOut = got.ExitCode, gozzard.Clip(got.Output, most), got.LeftOut
	res.LeftOut += int64(len(got.Output) - len(res.Output)) // what is not UTF-8 becomes longer
	switch {
	case got.TimedOut:
		res.State = gozzard.StepTimeout
		res.Message = fmt.Sprintf("its time of %d seconds was over: it was killed with everything that it started", step.Seconds)
	case got.Signal != "":
		res.State, res.Message = gozzard.StepFailed, "it was ended by "+got.Signal
	case got.ExitCode != 0:
		res.State, res.Message = gozzard.StepFailed, fmt.Sprintf("it ended with exit code %d", got.ExitCode)
	default:
		res.State = gozzard.StepOK
	}
	return res, true
}
