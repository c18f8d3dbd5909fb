package supervise_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/supervise"
	"github.com/gozzard/gozzard/test/sim"
)

// crowded counts the start commands that run at the same time.
type crowded struct {
	supervise.Host
	mu        sync.Mutex
	now, peak int
}

func (c *crowded) Run(ctx context.Context, r supervise.Run) (supervise.Result, error) {
	if r.Action == gozzard.ActionStart {
		c.count(1)
		defer c.count(-1)
	}
	return c.Host.Run(ctx, r)
}

func (c *crowded) count(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now += n
	c.peak = max(c.peak, c.now)
}

func TestPullUpStormIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host := &crowded{}
		r := newRig(t, func(h *sim.Host) supervise.Host { host.Host = h; return host })
		const n = 500
		slow := start("sleep 40ms")
		for i := range n {
			key := gozzard.Key{Namespace: "storm", Name: fmt.Sprint(i)}
			r.journal[key] = supervise.Record{Key: key, Spec: slow, Hosted: true, Wanted: gozzard.StateRunning}
		}

		r.up() // after a reboot
		defer r.down()
		r.after(2 * time.Second)

		if len(r.machine.Keys()) != n {
			t.Errorf("%d of %d run", len(r.machine.Keys()), n)
		}
		// A command releases its slot as soon as its process is seen, before the command has ended.
		if host.peak < supervise.MaxPullUps || host.peak > 2*supervise.MaxPullUps {
			t.Errorf("%d start commands at a time, want %d or few more", host.peak, supervise.MaxPullUps)
		}
	})
}

func TestHangingStartsDoNotStopThePullUpsOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		for i := range 2 * supervise.MaxPullUps {
			key := gozzard.Key{Namespace: "storm", Name: fmt.Sprint(i)}
			r.journal[key] = supervise.Record{Key: key, Spec: start("hang"), Hosted: true, Wanted: gozzard.StateRunning}
		}
		r.up()
		defer r.down()
		r.want(gozzard.ActionStart, definition(nil), gozzard.CodeOK, true) // what is asked for waits for nothing
		r.after(3 * time.Second)                                           // the others have had their time
		r.end(supervise.Exit{})
		r.alive(1)
	})
}
