package agent

import (
	"context"
	"sync"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/supervise"
)

// StopAll stops every process of this host, because its owner asks for it on the host, and returns why some still run. A
// process whose stop fails is killed. Run must be running.
func (a *Agent) StopAll(ctx context.Context) (left map[gozzard.Key]string) {
	left = map[gozzard.Key]string{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for _, s := range a.sup.Statuses() {
		wg.Go(func() {
			out := a.applyLocal(ctx, s.Key, gozzard.ActionStop)
			if out.Code != gozzard.CodeOK && out.Code != gozzard.CodeNotRunning {
				out = a.applyLocal(ctx, s.Key, gozzard.ActionKill)
			}
			if now, ok := a.sup.Status(s.Key); ok && now.State == gozzard.StateRunning {
				mu.Lock()
				defer mu.Unlock()
				left[s.Key] = out.Message
			}
		})
	}

	wg.Wait()
	return left
}

// applyLocal carries out an operation that no server has asked for, and waits for its outcome.
func (a *Agent) applyLocal(ctx context.Context, key gozzard.Key, action gozzard.Action) (out gozzard.Outcome) {
	if err := a.o.Policy.Action(action); err != nil {
		return gozzard.Outcome{Code: gozzard.CodeRefused, Message: err.Error()}
	}
	done := make(chan gozzard.Outcome, 1)
	a.sup.Apply(supervise.Op{ID: gozzard.NewOpID(), Action: action, Key: key,
		Begin: func() error { return nil },
		Done:  func(out gozzard.Outcome, _ *supervise.Record, _ bool) { done <- out }})
	select {
	case out = <-done:
	case <-ctx.Done():
		out = gozzard.Outcome{Code: gozzard.CodeInterrupted, Message: "the time is over"}
	}
	return out
}

// CountRunning looks for the managed processes and counts those that run. It must be called before Run.
func (a *Agent) CountRunning() (int, error) { return a.sup.CountRunning() }
