package upgrade_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/lease"
	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/upgrade"
)

// shared gives a Runner the version of the record, as several servers have it.
func shared(o *upgrade.Options) {
	store := o.Store.(interface {
		Versions(context.Context) (map[record.Kind]int64, error)
	})
	o.Version = func(ctx context.Context) (int64, error) {
		versions, err := store.Versions(ctx)
		return versions[record.KindReleases], err
	}
}

// peer is another server on the same record, which does not run the upgrade.
func (r *rig) peer() *upgrade.Runner {
	r.t.Helper()
	p, err := upgrade.New(r.t.Context(), r.o)
	if err != nil {
		r.t.Fatal(err)
	}
	return p
}

// TestPeers: what people do at one server counts at the one that runs the upgrade, and at all others.
func TestPeers(t *testing.T) {
	r := newRig(t, 6, func(o *upgrade.Options) { shared(o); o.TwoPerson = true })
	r.obey = func(gozzard.AgentID, *gozzard.UpdateReport) bool { return false } // hosts do not answer
	first, other := r.peer(), r.peer()

	// Publish at one, create at another, approve at a third.
	r.publish()
	if _, err := first.Create(t.Context(), admin, upgrade.Request{Version: version}); err != nil {
		t.Fatal(err)
	}
	if _, err := other.Approve(t.Context(), alice, version); err != nil {
		t.Fatal(err)
	}
	r.until("asked", func(u upgrade.Upgrade) bool {
		return u.State == upgrade.StateRunning && u.Hosts[0].State == upgrade.HostAsked
	})

	// A second upgrade is refused everywhere, and the answer of a stop shows what was done meanwhile.
	for _, p := range []*upgrade.Runner{r.Runner, first, other} {
		if _, err := p.Create(t.Context(), admin, upgrade.Request{Version: version}); gozzard.KindOf(err) != gozzard.ErrConflict {
			t.Errorf("a second upgrade: %v", err)
		}
	}
	stopped, err := first.Stop(t.Context(), admin, version)
	if err != nil || stopped.Hosts[0].State != upgrade.HostAsked {
		t.Errorf("%+v, %v", stopped, err)
	}
	r.until("stopped", func(u upgrade.Upgrade) bool { return u.State == upgrade.StateStopped })
	if _, err := r.Approve(t.Context(), alice, version); gozzard.KindOf(err) != gozzard.ErrNotFound {
		t.Errorf("an upgrade that another server stopped: %v", err)
	}

	// Remove at one: the others do not list it any more.
	if err := other.Remove(t.Context(), admin, version); err != nil {
		t.Fatal(err)
	}
	if err := first.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	if list, err := first.Releases(); err != nil || len(list) > 0 {
		t.Errorf("%+v, %v", list, err)
	}
}

// TestLateServer: a server that lost its lease and does not know it decides about the upgrade, and neither records nor
// orders anything.
func TestLateServer(t *testing.T) {
	r := newRig(t, 3, shared)
	r.end()
	r.publish()
	if _, err := r.Create(t.Context(), admin, upgrade.Request{Version: version}); err != nil {
		t.Fatal(err)
	}

	// It holds the lease, and another server takes it.
	held, err := r.store.ClaimLeases(t.Context(), "a", []string{"releases"}, nil, -time.Second)
	if err != nil || len(held) != 1 {
		t.Fatal(held, err)
	}
	if got, err := r.store.ClaimLeases(t.Context(), "b", []string{"releases"}, nil, time.Hour); err != nil || len(got) != 1 {
		t.Fatal(got, err)
	}

	var mu sync.Mutex
	var log bytes.Buffer
	r.o.Log = slog.New(slog.NewTextHandler(writer(func(b []byte) { mu.Lock(); log.Write(b); mu.Unlock() }), nil))
	late := r.peer()
	ctx, cancel := context.WithCancel(lease.WithFence(t.Context(), held[0].Fence))
	var wg sync.WaitGroup
	wg.Go(func() { _ = late.Run(ctx) })
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		mu.Lock()
		tried := strings.Count(log.String(), "another server does this work by now")
		mu.Unlock()
		if tried >= 3 {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the late server tried nothing")
		}
	}
	cancel()
	wg.Wait()

	list, err := r.Upgrades(t.Context(), 1)
	if err != nil || list[0].Hosts[0].State != upgrade.HostWaiting || len(r.asked()) > 0 {
		t.Errorf("%+v, orders %v, %v", list, r.asked(), err)
	}
}

type writer func([]byte)

func (w writer) Write(b []byte) (int, error) {
	w(b)
	return len(b), nil
}
