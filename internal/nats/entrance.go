package nats

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

const (
	// When a fleet reconnects at once, the broker begins this many handshakes a second. Without a limit the handshakes
	// of all agents would time out together.
	handshakeRate  = 500
	handshakeBurst = 1000

	// The limit of one address. A banned agent that retries without end, or a client without a certificate, must not
	// use up the handshakes of all. Many agents can share one address, so its limit is a fifth of the whole.
	handshakesPerAddr = handshakeRate / 5
	addrBurst         = 2 * handshakesPerAddr

	// How many handshakes are under way for each processor. They take turns on it with everything else that the server
	// does: more of them end no sooner, and hosts that are connected already would be taken for silent. A handshake
	// counts for handshakeTurn only. It mostly waits for its client, which may be far away, slow, or never answer, and
	// must not keep others out.
	handshakesPerCPU = 16
	handshakeTurn    = 50 * time.Millisecond

	// How long a connection waits for its handshake. This is shorter than the patience of agents: the handshake of one
	// that has gone elsewhere is lost work. An agent waits less if it knows other servers.
	entrancePatience = 20 * time.Second
	peersPatience    = 6 * time.Second

	busyLook = 50 * time.Millisecond // between two looks whether the server is still busy
)

// entrance decides when the TLS handshake of a connection begins. A connection whose turn does not come in time is
// rejected: its agent comes back later, at a random moment, or goes to another server.
type entrance struct {
	all      *rate.Limiter
	addrs    *handshakeLimits
	turns    chan struct{} // has one for each handshake under way
	patience time.Duration
	turn     time.Duration
	busy     func() bool // the server has not yet opened the sessions of agents that are connected
	early    bool        // agents know other servers: a connection for which there is no time is rejected at once
}

// newEntrance makes the entrance of a broker that is alone, or has peers.
func newEntrance(through Through, peers bool, busy func() bool) *entrance {
	if busy == nil {
		busy = func() bool { return false }
	}
	e := &entrance{all: rate.NewLimiter(handshakeRate, handshakeBurst), addrs: newHandshakeLimits(through),
		turns: make(chan struct{}, handshakesPerCPU*runtime.GOMAXPROCS(0)), patience: entrancePatience, turn: handshakeTurn,
		busy: busy}
	if peers {
		e.patience, e.early = peersPatience, true
	}
	return e
}

// enter waits until a handshake may begin. ctx ends with the handshake.
func (e *entrance) enter(ctx context.Context, remote net.Addr) error {
	limited, cancel := context.WithTimeout(ctx, e.patience)
	defer cancel()
	err := e.addrs.of(remote).Wait(limited)
	if err == nil {
		err = e.all.Wait(limited)
	}
	if err != nil {
		if !e.early {
			<-limited.Done() // an agent that waits here does not come back at once
		}
		return fmt.Errorf("too many agents connect at once: %w", err)
	}
	select {
	case e.turns <- struct{}{}:
	case <-limited.Done():
		return errors.New("too many agents connect at once: the handshakes of others take all of the time")
	}

	// Agents that are in go first.
	leave := sync.OnceFunc(func() { <-e.turns })
	for e.busy() {
		select {
		case <-time.After(busyLook):
		case <-limited.Done():
			leave()
			return errors.New("too many agents connect at once: the server has not yet opened the sessions of those before")
		}
	}

	late := time.AfterFunc(e.turn, leave)
	context.AfterFunc(ctx, func() {
		late.Stop()
		leave()
	})
	return nil
}
