package configfile

import (
	"context"
	"sync"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/mako"
	"github.com/gozzard/gozzard/internal/turns"
)

const (
	previewsAtOnce = 2 // of the whole server, of different callers. Jobs have their own turns
	maxWaiting     = 8 // previews of one caller
)

// Preview renders a content for the first instance of a process. Nothing is stored.
func (f *Files) Preview(ctx context.Context, caller gozzard.Caller, biz, process int, content string) (string, error) {
	leave, err := f.previews.enter(ctx, caller.App)
	if err != nil {
		return "", err
	}
	defer leave()

	// Read the business.
	rec, err := f.business(ctx, caller, biz)
	if err != nil && gozzard.KindOf(err) != gozzard.ErrNotFound {
		return "", err
	}
	templates, err := f.templates(ctx, &rec, biz)
	if err != nil {
		return "", err
	}
	active, err := f.o.Store.ActiveConfigVersions(ctx, biz)
	if err != nil {
		return "", err
	}

	// Render.
	r := f.newRenderer(ctx, &rec, templates, active)
	r.preview, r.partial = true, !caller.Rights.SeesBusinessHosts(biz)
	if len(content) <= limits().Text { // the checker comes first, as callers know it
		if err := mako.Check(mako.Blanks(content)); err != nil {
			return "", renderFault(err)
		}
	}
	at, found := r.spots[process]
	if !found {
		return "", noProcess(process)
	}
	return r.render(ctx, content, at, 1, r.instOf(process, 1))
}

// previews are the turns of previews. Everybody that sees a business may ask for them, and each may take seconds: so they have
// turns apart from those of jobs, each caller has one preview at a time, and callers take turns.
type previews struct {
	mu      sync.Mutex
	waiting turns.Queue[*preview]
	queued  map[string]int  // of a caller, in waiting
	running map[string]bool // callers
}

// preview is one that waits for its turn.
type preview struct {
	owner string
	turn  chan struct{} // closed when it has it
	gone  bool          // its caller waits no longer
}

func newPreviews() *previews { return &previews{queued: map[string]int{}, running: map[string]bool{}} }

// enter waits for a turn, which ends with leave.
func (p *previews) enter(ctx context.Context, owner string) (leave func(), err error) {
	mine, err := p.wait(owner)
	if err != nil {
		return nil, err
	}
	select {
	case <-mine.turn:
		return func() { p.leave(owner) }, nil
	case <-ctx.Done():
	}

	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-mine.turn: // it came just now
		delete(p.running, owner)
		p.start()
	default:
		mine.gone = true
	}
	return nil, ctx.Err()
}

// wait puts a preview of a caller behind those that it has already.
func (p *previews) wait(owner string) (*preview, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.queued[owner] >= maxWaiting {
		return nil, &gozzard.Error{Kind: gozzard.ErrRateLimited, Retry: time.Second, Message: "too many previews of this app wait for their turn: " +
			"ask again when some of them have been answered"}
	}
	mine := &preview{owner: owner, turn: make(chan struct{})}
	p.waiting.Add(owner, mine)
	p.queued[owner]++
	p.start()
	return mine, nil
}

func (p *previews) leave(owner string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.running, owner)
	p.start()
}

// start gives free turns to those that wait. p.mu is locked.
func (p *previews) start() {
	idle := func(owner string) bool { return !p.running[owner] }
	for len(p.running) < previewsAtOnce {
		next, ok := p.waiting.Pick(idle)
		if !ok {
			return
		}
		if p.queued[next.owner]--; p.queued[next.owner] == 0 {
			delete(p.queued, next.owner)
		}
		if !next.gone {
			p.running[next.owner] = true
			close(next.turn)
		}
	}
}
