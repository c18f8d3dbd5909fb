package supervise

import (
	"context"
	"sync"
)

// Bounds of the health commands of a host. Every one of them ends within maxHealthTimeout.
const (
	maxHealths  = 16 // health commands that run at the same time
	keptHealths = 4  // of them: places that only a namespace without a running health command may take
	keptAccount = 2  // of the kept ones: places for which the account too must have none
)

// owner is whose health command it is.
type owner struct{ namespace, account string }

// turns shares the places for health commands among namespaces and among accounts, so that one tenant with many slow
// commands does not delay the commands of another for longer than the places are held.
//
// A free place goes to the namespace with the fewest running commands; among equal ones to the one that has waited
// longest since its last place. Every second place goes to accounts by the same rule, so that a tenant gains nothing
// by having many namespaces. Commands of one owner wait in the order in which they came.
type turns struct {
	mu         sync.Mutex
	free       int
	clock      uint64 // counts arrivals and places given
	byAccount  bool   // the next place is given by accounts
	lines      map[owner][]*turn
	namespaces map[string]*share
	accounts   map[string]*share
}

// turn is one command that waits.
type turn struct {
	arrived uint64
	given   chan struct{} // closed when it has a place
}

// share is what one namespace or account has. It is forgotten when it has nothing running and nothing waiting.
type share struct {
	running int
	waiting int
	since   uint64 // its last place, or when it began to wait if it had none
}

func newTurns() *turns {
	return &turns{free: maxHealths, lines: map[owner][]*turn{},
		namespaces: map[string]*share{}, accounts: map[string]*share{}}
}

// take waits for a place. It returns false if ctx ends first; otherwise the caller must call give.
func (t *turns) take(ctx context.Context, o owner) bool {
	w := &turn{given: make(chan struct{})}
	t.mu.Lock()
	t.clock++
	w.arrived = t.clock
	t.lines[o] = append(t.lines[o], w)
	for _, s := range t.shares(o) {
		s.waiting++
	}
	t.hand()
	t.mu.Unlock()

	select {
	case <-w.given:
		return true
	case <-ctx.Done():
	}

	// Leave the line. The place may have been given in between.
	t.mu.Lock()
	defer t.mu.Unlock()
	line := t.lines[o]
	for i, other := range line {
		if other == w {
			t.setLine(o, append(line[:i:i], line[i+1:]...))
			for _, s := range t.shares(o) {
				s.waiting--
			}
			t.forget(o)
			return false
		}
	}
	t.end(o)
	return false
}

// give returns a place.
func (t *turns) give(o owner) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.end(o)
}

// end ends the use of a place. The caller holds mu.
func (t *turns) end(o owner) {
	t.free++
	for _, s := range t.shares(o) {
		s.running--
	}
	t.forget(o)
	t.hand()
}

// hand gives free places to those that wait, as long as one of them may take a place. The caller holds mu.
func (t *turns) hand() {
	for t.free > 0 {
		o, ok := t.next()
		if !ok {
			return
		}

		w := t.lines[o][0]
		t.setLine(o, t.lines[o][1:])
		t.free--
		t.clock++
		for _, s := range t.shares(o) {
			s.waiting--
			s.running++
			s.since = t.clock
		}
		t.byAccount = !t.byAccount
		close(w.given)
	}
}

// next chooses the owner of the next place. It returns false if none of those that wait may take one.
func (t *turns) next() (best owner, ok bool) {
	for o := range t.lines {
		if t.mayTake(o) && (!ok || t.before(o, best)) {
			best, ok = o, true
		}
	}
	return best, ok
}

// mayTake reports whether an owner may take a free place: the last ones are kept for those that have none.
func (t *turns) mayTake(o owner) bool {
	switch {
	case t.free > keptHealths:
		return true
	case t.namespaces[o.namespace].running > 0:
		return false
	}
	return t.free > keptAccount || t.accounts[o.account].running == 0
}

// before reports whether x gets a place before y.
func (t *turns) before(x, y owner) bool {
	if t.byAccount && x.account != y.account {
		return t.accounts[x.account].before(t.accounts[y.account])
	}
	if x.namespace != y.namespace {
		return t.namespaces[x.namespace].before(t.namespaces[y.namespace])
	}
	return t.lines[x][0].arrived < t.lines[y][0].arrived
}

func (s *share) before(other *share) bool {
	if s.running != other.running {
		return s.running < other.running
	}
	return s.since < other.since
}

// shares returns the shares of an owner's namespace and account.
func (t *turns) shares(o owner) [2]*share {
	return [2]*share{t.share(t.namespaces, o.namespace), t.share(t.accounts, o.account)}
}

func (t *turns) share(of map[string]*share, name string) *share {
	s := of[name]
	if s == nil {
		s = &share{since: t.clock}
		of[name] = s
	}
	return s
}

// forget removes the shares of an owner that have nothing.
func (t *turns) forget(o owner) {
	if s := t.namespaces[o.namespace]; s.running+s.waiting == 0 {
		delete(t.namespaces, o.namespace)
	}
	if s := t.accounts[o.account]; s.running+s.waiting == 0 {
		delete(t.accounts, o.account)
	}
}

func (t *turns) setLine(o owner, line []*turn) {
	if len(line) == 0 {
		delete(t.lines, o)
		return
	}
	t.lines[o] = line
}
