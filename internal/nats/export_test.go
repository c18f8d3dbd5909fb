package nats

import (
	"context"
	"net"
	"time"
)

// Entrance decides when handshakes begin.
type Entrance struct{ e *entrance }

// NewEntrance makes an entrance with other times.
func NewEntrance(peers bool, patience, turn time.Duration) Entrance {
	e := newEntrance(nil, peers, nil)
	e.patience, e.turn = patience, turn
	return Entrance{e}
}

// Enter waits until a handshake may begin.
func (e Entrance) Enter(ctx context.Context, remote net.Addr) error { return e.e.enter(ctx, remote) }

// SetBusy makes agents wait while busy is true.
func (e Entrance) SetBusy(busy func() bool) { e.e.busy = busy }

// Turns is how many handshakes can be under way.
func (e Entrance) Turns() int { return cap(e.e.turns) }

// UnderWay is how many are.
func (e Entrance) UnderWay() int { return len(e.e.turns) }
