package agent

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/gozzard/gozzard"
)

// restartLook is the time between two looks whether operations are in progress.
const restartLook = 50 * time.Millisecond

// Restarter restarts the program of the agent in its process, so that nothing happens to the processes of the host.
type Restarter interface {
	Check(ctx context.Context) error // why Restart could not succeed
	// Restart ends this run of the agent, and the program on disk begins the next one. It does not wait.
	Restart()
}

// restartQueue has the restarts that wait. One runs at a time.
type restartQueue struct {
	turn chan struct{} // capacity 1
	done sync.WaitGroup
}

// queueRestart lets a restart wait until it may begin.
func (a *Agent) queueRestart(op *operation, in *gozzard.Op) {
	w := *in
	a.restarts.done.Go(func() { a.runRestart(op, &w) })
}

// runRestart carries out a restart. The intent is durable before the agent restarts. The next run of the agent finds it in
// the journal and records that the restart is done (recover), so the same order restarts nothing again.
func (a *Agent) runRestart(op *operation, in *gozzard.Op) {
	ctx, cancel := a.untilEnd()
	defer cancel()
	select {
	case a.restarts.turn <- struct{}{}:
		defer func() { <-a.restarts.turn }()
	case <-ctx.Done():
		return
	}

	// Reject what cannot succeed.
	spec, byPolicy, err := a.checkRestart(ctx, in)
	if err == nil {
		err = a.becomeIdle(ctx, spec)
	}
	if ctx.Err() != nil { // what has not begun is found absent by the next session
		return
	}
	if err != nil {
		a.rejectRestart(op, err, byPolicy)
		return
	}

	// Record the intent.
	done := a.reportAct(in, nil)
	if err := a.begin(op); err != nil { // it was cancelled, or its intent cannot be recorded: it has its verdict
		a.setRestarting(false)
		return
	}

	// Restart.
	a.log.Info("the server restarts this agent", "op", op.id, "force", spec.Force, "remark", spec.Remark)
	if done != nil {
		done(gozzard.Outcome{Code: gozzard.CodeOK, Message: "the agent restarts"}, nil, false)
	}
	a.o.Restart.Restart()
	<-a.ended
}

// untilEnd is a context that ends with the run of the agent.
func (a *Agent) untilEnd() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		select {
		case <-a.ended:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// checkRestart checks a restart without an effect.
func (a *Agent) checkRestart(ctx context.Context, in *gozzard.Op) (spec *gozzard.RestartSpec, byPolicy bool, err error) {
	whole, err := gozzard.DecodeSpec(in.Spec)
	if err != nil || whole.Restart == nil {
		return nil, false, errors.New("the operation does not say how to restart, or not so that this agent can read it")
	}
	spec = whole.Restart
	if err := spec.Validate(); err != nil {
		return nil, false, err
	}
	if a.o.Policy != nil {
		if err := a.o.Policy.Action(in.Action); err != nil {
			return nil, true, err
		}
	}

	if spec.Version != "" && spec.Version != a.info.Version {
		return nil, false, fmt.Errorf("the agent has version %s, and the restart is for version %s", a.info.Version, spec.Version)
	}
	if a.o.Restart == nil {
		return nil, false, errors.New("this agent cannot restart itself")
	}
	return spec, false, a.o.Restart.Check(ctx)
}

// errBusy says that operations did not end in the time that they were given.
type errBusy struct{ operations, seconds int }

func (e errBusy) Error() string {
	return fmt.Sprintf("not restarted: %d operations are still in progress on this host after %d seconds; wait longer, or use "+
		"force to interrupt them", e.operations, e.seconds)
}

// becomeIdle waits until no operation is in progress. From then on the agent accepts none: the server sends what
// arrives meanwhile again to the next run. With force it does not wait.
func (a *Agent) becomeIdle(ctx context.Context, spec *gozzard.RestartSpec) error {
	limit := time.NewTimer(time.Duration(spec.Wait) * time.Second)
	defer limit.Stop()
	look := time.NewTicker(restartLook)
	defer look.Stop()

	for {
		n := a.stopAccepting(spec.Force)
		if n == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-limit.C:
			return errBusy{n, spec.Wait}
		case <-look.C:
		}
	}
}

// stopAccepting makes the agent accept no more operations, if none is in progress or they do not matter. It returns how
// many are in progress otherwise.
func (a *Agent) stopAccepting(anyway bool) (inProgress int) {
	a.mu.Lock()
	defer a.mu.Unlock()

	for _, op := range a.state.ops {
		if (op.phase == gozzard.PhaseQueued || op.phase == gozzard.PhaseBegun) && !op.action.ReadOnly() && !op.action.OnAgent() {
			inProgress++
		}
	}
	if anyway {
		inProgress = 0
	}
	a.restarting = inProgress == 0
	return inProgress
}

func (a *Agent) setRestarting(is bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.restarting = is
}

// rejectRestart records that a restart never happens.
func (a *Agent) rejectRestart(op *operation, err error, byPolicy bool) {
	a.log.Warn("a restart of the agent was rejected", "op", op.id, "err", err)
	code := gozzard.CodeRefused
	if errors.As(err, new(errBusy)) {
		code = gozzard.CodeBusy
	}

	a.mu.Lock()
	defer a.mu.Unlock()
	if gozzard.MayBegin(op.phase) {
		a.writeTombstone(op, gozzard.Outcome{Code: code, Message: clip(err.Error()), Policy: byPolicy})
	}
}

// restarted is the message of a restart that the next run of the agent finds in its journal.
func (a *Agent) restarted() string {
	return fmt.Sprintf("the agent restarted and runs version %s", a.info.Version)
}
