package supervise

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gozzard/gozzard"
)

const (
	afterPoll      = 50 * time.Millisecond
	afterSlow      = time.Second
	afterPatience  = gozzard.AfterPatience * time.Second
	afterHopeless  = 5 * time.Second        // patience with a process that nothing will start
	laterPatience  = 30 * time.Second       // how long a stop waits for those that must end before
	laterMayFollow = 500 * time.Millisecond // how long their stops may take to arrive
)

// order says which processes of this host must run before which others. It has what the definitions say. Its lock comes
// after all others.
type order struct {
	mu    sync.Mutex
	after map[gozzard.Key][]string
}

// set records what a process comes after. It rejects a circle, and then changes nothing. Two definitions that would make a
// circle together cannot both pass.
func (o *order) set(key gozzard.Key, names []string) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if circle := o.path(names, key, map[string]bool{}); circle != nil {
		return fmt.Errorf("after: %s would be a circle", strings.Join(append([]string{key.Name}, circle...), " after "))
	}
	o.put(key, names)
	return nil
}

// restore records what the journal has. A circle there is not rejected: whatever waits gives up in the end.
func (o *order) restore(key gozzard.Key, names []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.put(key, names)
}

func (o *order) put(key gozzard.Key, names []string) {
	if o.after == nil {
		o.after = map[gozzard.Key][]string{}
	}
	if delete(o.after, key); len(names) > 0 {
		o.after[key] = slices.Clone(names)
	}
}

// path finds a way from one of the names to a process. The caller holds mu.
func (o *order) path(names []string, to gozzard.Key, seen map[string]bool) []string {
	for _, name := range names {
		if name == to.Name {
			return []string{name}
		}
		if seen[name] {
			continue
		}
		seen[name] = true
		if rest := o.path(o.after[gozzard.Key{Namespace: to.Namespace, Name: name}], to, seen); rest != nil {
			return append([]string{name}, rest...)
		}
	}
	return nil
}

// later lists the processes that come after one.
func (o *order) later(key gozzard.Key) (keys []gozzard.Key) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for k, names := range o.after {
		if k.Namespace == key.Namespace && slices.Contains(names, key.Name) {
			keys = append(keys, k)
		}
	}
	return keys
}

// ready reports whether what comes after the process may start: it runs and its start check has passed. A process that may
// end is ready when it has ended as it should.
func (a *actor) ready() bool {
	switch {
	case a.running():
		return a.held.Settled && !a.starting
	case a.spec == nil || a.starting || !mayEnd(a.spec.Policy):
		return false
	case a.spec.Policy.Restart == gozzard.RestartOnFailure:
		return a.completed
	}
	return a.rec.LastStart != 0
}

// missing names the first process that the actor must wait for, and says why. hope is false if nothing will start it. The
// name is "" if there is none.
func (a *actor) missing() (name, why string, hope bool) {
	for _, name := range a.spec.After {
		other := a.s.actor(gozzard.Key{Namespace: a.key.Namespace, Name: name})
		if other == nil {
			return name, "which is not registered on this host", false
		}
		v, busy := other.idleView()
		switch {
		case !v.managed && !busy:
			return name, "which is not registered on this host", false
		case v.ready:
		case !v.proc.IsZero():
			return name, "whose start check is not over", true
		default:
			return name, "which does not run", busy || v.status.Hosted
		}
	}
	return "", "", true
}

// awaitOrder waits for the processes that must run before a start. It returns false with the verdict if they do not.
func (a *actor) awaitOrder(ctx context.Context) (gozzard.Outcome, bool) {
	began := time.Now()
	for poll := afterPoll; ; poll = min(2*poll, afterSlow) {
		name, why, hope := a.missing()
		if name == "" {
			return gozzard.Outcome{}, true
		}
		patience := afterHopeless
		if hope {
			patience = afterPatience
		}
		left := patience - time.Since(began)
		switch {
		case ctx.Err() != nil:
			return gozzard.Outcome{}, false
		case left <= 0:
			return failed(gozzard.CodeCheckFailed, "not started: it comes after %s, %s", name, why), false
		}
		a.pause(ctx, min(poll, left))
	}
}

// orderDelays reports whether a pull-up must wait for other processes. It looks again after a while.
func (a *actor) orderDelays() bool {
	name, why, _ := a.missing()
	if a.waiting = name != ""; !a.waiting {
		return false
	}
	a.pullAt = time.Now().Add(afterSlow)
	a.message = clipText(fmt.Sprintf("waits for %s, %s", name, why))
	a.publish(false)
	return true
}

// awaitLater waits until the processes that come after this one have ended, if they are being stopped too. Their stops may
// arrive a moment later. A stop of this process alone does not wait for them.
func (a *actor) awaitLater(ctx context.Context) {
	began := time.Now()
	for poll := gonePoll; time.Since(began) < laterPatience && ctx.Err() == nil; poll = min(2*poll, gonePollSlow) {
		stopping, running := false, false
		for _, key := range a.s.order.later(a.key) {
			if other := a.s.actor(key); other != nil {
				stopping = stopping || other.stopPending()
				running = running || !other.currentProc().IsZero()
			}
		}
		if !stopping && (!running || time.Since(began) >= laterMayFollow) {
			return
		}
		a.pause(ctx, poll)
	}
}

// stopPending reports whether a stop of the process is in progress or waits.
func (a *actor) stopPending() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.doing == gozzard.ActionStop ||
		slices.ContainsFunc(a.ops, func(op Op) bool { return op.Action == gozzard.ActionStop })
}
