package nats_test

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gozzard/gozzard/internal/nats"
)

func addrOf(i int) net.Addr { return &net.TCPAddr{IP: net.IPv4(10, 1, byte(i>>8), byte(i)), Port: 1} }

// TestEntranceTurns: as many handshakes are under way as there are turns. One that ends makes room, and so does one whose
// client does not answer.
func TestEntranceTurns(t *testing.T) {
	e := nats.NewEntrance(false, time.Minute, time.Second)
	ctxs := make([]context.CancelFunc, e.Turns())
	for i := range ctxs {
		var ctx context.Context
		ctx, ctxs[i] = context.WithCancel(t.Context())
		if err := e.Enter(ctx, addrOf(i)); err != nil {
			t.Fatal(err)
		}
	}
	if n := e.UnderWay(); n != e.Turns() {
		t.Errorf("%d of %d handshakes are under way", n, e.Turns())
	}

	// Ends make room.
	for _, end := range ctxs[1:] {
		end()
	}
	for i := range 3 * e.Turns() {
		ctx, end := context.WithCancel(t.Context())
		if err := e.Enter(ctx, addrOf(1000+i)); err != nil {
			t.Fatal(err)
		}
		end()
	}

	// Clients that never answer keep others out for a moment only.
	for i := range 3 * e.Turns() {
		if err := e.Enter(t.Context(), addrOf(2000+i)); err != nil {
			t.Fatal(err)
		}
	}
	ctxs[0]()
}

// TestEntranceOfOneAddress: one address cannot take all turns, however often it comes and however long it keeps its handshakes open.
func TestEntranceOfOneAddress(t *testing.T) {
	e := nats.NewEntrance(true, time.Minute, 500*time.Millisecond)
	ended, end := context.WithCancel(t.Context())
	defer end()
	for range 4 * e.Turns() {
		go func() { _ = e.Enter(ended, addrOf(7)) }() // it is rejected, or waits
	}
	entered := make(chan error, 20)
	for i := range 20 {
		go func() { entered <- e.Enter(t.Context(), addrOf(100+i)) }()
	}
	for range 20 {
		if err := <-entered; err != nil {
			t.Error(err)
		}
	}
}

// TestEntranceRejects: a connection whose turn does not come in time is rejected, and an agent that knows no other server
// waits for that, so that it does not come back at once.
func TestEntranceRejects(t *testing.T) {
	const patience = 300 * time.Millisecond
	e := nats.NewEntrance(false, patience, time.Hour)
	for i := range e.Turns() {
		if err := e.Enter(t.Context(), addrOf(i)); err != nil {
			t.Fatal(err)
		}
	}
	began := time.Now()
	err := e.Enter(t.Context(), addrOf(3000))
	if took := time.Since(began); err == nil || took < patience {
		t.Errorf("after %s: %v", took, err)
	}
}

// TestEntranceWaitsForSessions: while the server has not opened the sessions of agents that are connected, no handshake
// begins. Connections that wait get in when it has.
func TestEntranceWaitsForSessions(t *testing.T) {
	var busy atomic.Bool
	busy.Store(true)
	e := nats.NewEntrance(false, time.Minute, time.Second)
	e.SetBusy(busy.Load)

	waiting := 2 * e.Turns()
	entered := make(chan error, waiting)
	for i := range waiting {
		go func() { entered <- e.Enter(t.Context(), addrOf(i)) }()
	}
	select {
	case err := <-entered:
		t.Fatalf("a handshake began although the server is busy: %v", err)
	case <-time.After(500 * time.Millisecond):
	}
	busy.Store(false)
	for range waiting {
		if err := <-entered; err != nil {
			t.Error(err)
		}
	}

	// It is busy for longer than agents wait.
	e = nats.NewEntrance(false, 200*time.Millisecond, time.Second)
	e.SetBusy(func() bool { return true })
	if err := e.Enter(t.Context(), addrOf(1)); err == nil {
		t.Error("a handshake began although the server is busy")
	}
	if n := e.UnderWay(); n != 0 {
		t.Errorf("%d handshakes are under way", n)
	}
}
