//go:build linux

package cluster_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/gozzard/gozzard/client"
	ft "github.com/gozzard/gozzard/test/fleettest"
)

// C9: the server of a reader of events is killed again and again, and the reader goes on at another one. It misses no event
// and gets none twice. Both servers list the same events, and remove them when they are old.
func TestC9EventsGoOnAtAnotherServer(t *testing.T) {
	t.Parallel() // it mostly waits
	const names, kills = 20, 4
	i := newInstallation(t, 2, "--keep-events=1h")
	agent := i.servers[0].join(faultHost(1))
	ft.Until(t, time.Minute, agent.Output, func() bool { return i.knownTo(agent) == 2 })
	clients := i.clients()
	for _, m := range i.servers {
		m.online(faultHost(1), true)
	}
	ft.RegisterFailing(t, clients[0], faultHost(1), names)

	// Kill the server of the reader while starts fail.
	seen, reads := i.follow(clients)
	want := map[ft.Failure]bool{}
	for round := range kills {
		victim := i.servers[reads.Load()]
		killed := make(chan struct{})
		go func() {
			defer close(killed)
			time.Sleep(time.Duration(rand.IntN(600)) * time.Millisecond)
			victim.Kill(syscall.SIGKILL)
		}()
		maps.Copy(want, ft.StartFailing(t, fmt.Sprint("round-", round), clients...))
		<-killed
		victim.Again()
		victim.answers()
	}
	if len(want) < names*kills/2 {
		t.Fatalf("only %d starts failed", len(want))
	}

	// The reader has all, and both servers list them.
	ft.Until(t, time.Minute, func() string { return fmt.Sprintf("%d of %d events came", seen.Has(want), len(want)) },
		func() bool { return seen.Has(want) == len(want) })
	seen.Judge("the reader that went on", want)
	for n, c := range clients {
		var listed *ft.Failures
		ft.Until(t, time.Minute, func() string {
			return fmt.Sprintf("%s lists %d of %d events", i.servers[n].listen, listed.Has(want), len(want))
		},
			func() bool { listed = ft.ListFailures(t, c); return listed.Has(want) == len(want) }) // the other server learns them a moment later
		listed.Judge("the list of "+i.servers[n].listen, want)
		seen.Kept(i.servers[n].listen, listed)
	}
	fmt.Printf("fault C9: the server of a reader killed %d times, %d events, none lost, none twice\n", kills, len(want))

	i.eventsGetOld(clients)
}

// eventsGetOld makes all events older than they are kept: every server removes them, and no newer one. A reader that comes
// back too late learns it.
func (i *installation) eventsGetOld(clients []*client.Client) {
	i.t.Helper()
	for _, m := range i.servers {
		m.Kill(syscall.SIGKILL)
	}
	past := (2 * time.Hour).Microseconds() // numbers follow the clock; the second one is the number before the first event
	i.pg.Exec("fleet", fmt.Sprintf("UPDATE events SET id = id - %d", past))
	i.pg.Exec("fleet", fmt.Sprintf("UPDATE counters SET value = value - %d WHERE name = 'events_removed'", past))
	for _, m := range i.servers {
		m.Again()
	}
	for _, m := range i.servers {
		m.answers()
	}

	newer := ft.StartFailing(i.t, "newer", clients...)
	for n, c := range clients {
		ft.Until(i.t, 2*time.Minute, func() string { return i.servers[n].listen + " has old events, or does not have the newer ones" },
			func() bool {
				list := ft.ListFailures(i.t, c)
				return len(list.All()) == len(newer) && list.Has(newer) == len(newer)
			})
		for _, err := range c.FollowEvents(i.t.Context(), ft.FailureEvents(), 1) {
			if !errors.Is(err, client.ErrEventsLost) {
				i.t.Errorf("a reader that was away for too long gets: %v", err)
			}
			break
		}
	}
	if len(newer) == 0 {
		i.t.Error("no start failed")
	}
}

// clients calls each server as its admin.
func (i *installation) clients() (list []*client.Client) {
	i.t.Helper()
	for _, m := range i.servers {
		var file struct {
			CA string `json:"ca"`
		}
		b, err := os.ReadFile(m.credentials)
		if err == nil {
			err = json.Unmarshal(b, &file)
		}
		if err != nil {
			i.t.Fatal(err)
		}
		c, err := client.New(m.Cred.URL, client.Credentials{AppCode: m.Cred.AppCode, AppSecret: m.Cred.Secret,
			Username: m.Cred.Username, CA: file.CA})
		if err != nil {
			i.t.Fatal(err)
		}
		i.t.Cleanup(c.Close)
		list = append(list, c)
	}
	return list
}

// follow reads the events of starts that fail. When the connection breaks it goes on at the next server, behind the last
// event that it has. at is the server that it reads from.
func (i *installation) follow(clients []*client.Client) (seen *ft.Failures, at *atomic.Int32) {
	i.t.Helper()
	page, err := clients[0].Events(i.t.Context(), client.EventQuery{}, 1)
	if err != nil {
		i.t.Fatal(err)
	}
	seen, at = ft.NewFailures(i.t), new(atomic.Int32)
	ctx, cancel := context.WithCancel(i.t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		for n := 0; ctx.Err() == nil; n++ {
			at.Store(int32(n % len(clients)))
			for e, err := range clients[n%len(clients)].FollowEvents(ctx, ft.FailureEvents(), max(page.Next, seen.Last())) {
				if errors.Is(err, client.ErrEventsLost) {
					i.t.Error("the reader learns that events are missing")
				}
				if err != nil {
					break
				}
				seen.Add(e)
			}
			time.Sleep(10 * time.Millisecond)
		}
	})
	i.t.Cleanup(func() { cancel(); wg.Wait() })
	return seen, at
}
