//go:build linux

package faults_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
	ft "github.com/gozzard/gozzard/test/fleettest"
)

// eventClient is a client of the admin.
func eventClient(t *testing.T, s *ft.Server) *client.Client {
	t.Helper()
	c, err := client.New(s.Cred.URL, client.Credentials{AppCode: s.Cred.AppCode, AppSecret: s.Cred.Secret,
		Username: s.Cred.Username})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// V21: the server is killed again and again while a host reports events. Each event is there once in the end, and a
// client that follows them goes on after each kill, without a gap and without seeing one twice. What it has seen is there
// after the last kill.
func TestV21EventsSurviveKills(t *testing.T) {
	const names, kills = 40, 8
	s := ft.StartServer(t, "")
	s.StartAgent(t, 1, "")
	c := eventClient(t, s)
	ft.RegisterFailing(t, c, "127.0.0.1", names)
	seen := followFailures(t, c)

	// Kill it while starts fail.
	want := map[ft.Failure]bool{}
	for round := range kills {
		killed := make(chan struct{})
		go func() {
			defer close(killed)
			time.Sleep(time.Duration(rand.IntN(400)) * time.Millisecond)
			s.Kill(syscall.SIGKILL)
			s.Again()
			s.AwaitReady()
		}()
		maps.Copy(want, ft.StartFailing(t, fmt.Sprint("round-", round), c))
		<-killed
	}
	if len(want) < 4*names {
		t.Fatalf("only %d starts failed", len(want))
	}

	// All are there, for the client that followed and in the list of a server that was just started.
	ft.Until(t, time.Minute, func() string { return fmt.Sprintf("%d of %d events came", seen.Has(want), len(want)) },
		func() bool { return seen.Has(want) == len(want) })
	s.Kill(syscall.SIGKILL)
	s.Again()
	s.AwaitReady()
	listed := ft.ListFailures(t, c)
	seen.Judge("the client that followed", want)
	listed.Judge("the list", want)
	seen.Kept("after the last kill", listed)
	fmt.Printf("fault V21: server killed %d times, %d events, none lost, none twice\n", kills+1, len(want))
}

// followFailures follows the events of starts that fail, over all kills of the server.
func followFailures(t *testing.T, c *client.Client) *ft.Failures {
	t.Helper()
	page, err := c.Events(t.Context(), client.EventQuery{}, 1)
	if err != nil {
		t.Fatal(err)
	}
	f := ft.NewFailures(t)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		for e, err := range c.FollowEvents(ctx, ft.FailureEvents(), page.Next) {
			switch {
			case errors.Is(err, client.ErrEventsLost):
				t.Error("the client learns that events are missing")
			case err == nil:
				f.Add(e)
			case gozzard.KindOf(err) != gozzard.ErrUnavailable:
				t.Errorf("the client does not go on: %v", err)
			}
		}
	})
	t.Cleanup(func() { cancel(); wg.Wait() })
	return f
}
