package relay

import (
	"sync"
	"time"
)

// holdFor is how long after the loss of a server new connections of hosts wait for the next one. A relay usually reaches it
// within a moment, and hosts that are closed come back later and later. A relay without a server for longer closes them at once,
// so that they go to another relay.
const holdFor = 2 * time.Second

// present is the server that is reached, if there is one.
type present struct {
	mu     sync.Mutex
	server *upstream
	come   chan struct{} // closed when the next one is reached; nil: nobody waits
	lost   time.Time     // when the last one was lost; zero at the start
}

// set notes which server is reached; nil: it was lost.
func (p *present) set(u *upstream) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.server = u
	if u == nil {
		p.lost = time.Now()
		return
	}
	if p.come != nil {
		close(p.come)
		p.come = nil
	}
}

// get returns the server that is reached. If it was lost a moment ago, get waits for the next one. done ends the wait.
func (p *present) get(done <-chan struct{}) *upstream {
	p.mu.Lock()
	wait := holdFor - time.Since(p.lost)
	if p.server != nil || wait <= 0 {
		defer p.mu.Unlock()
		return p.server
	}
	if p.come == nil {
		p.come = make(chan struct{})
	}
	come := p.come
	p.mu.Unlock()

	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-come:
	case <-timer.C:
	case <-done:
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.server
}
