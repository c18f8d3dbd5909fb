//go:build linux

package faults_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
	ft "github.com/gozzard/gozzard/test/fleettest"
)

// V21: the server is killed again and again while a host reports events. Each event is there once in the end, and a
// client that follows them goes on after each kill, without a gap and without seeing one twice.
func TestV21EventsSurviveKills(t *testing.T) {
	s := ft.StartServer(t, "")
	const names = 40
	s.StartAgent(t, 1, "")
	c, err := client.New(s.Cred.URL, client.Credentials{AppCode: s.Cred.AppCode, AppSecret: s.Cred.Secret,
		Username: s.Cred.Username})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	registerFailing(t, c, names)
	seen := followFailures(t, c)

	// Every start fails, and that is an event. Of one process and kind the agent reports ten a minute one by one.
	kills := 0
	want := map[failure]bool{}
	for round := range 8 {
		key := fmt.Sprint("round-", round)
		var task client.Task
		killed := make(chan struct{})
		go func() {
			defer close(killed)
			time.Sleep(time.Duration(rand.IntN(400)) * time.Millisecond)
			s.Kill(syscall.SIGKILL)
			s.Again()
			s.AwaitReady()
		}()
		ft.Until(t, 2*time.Minute, func() string { return "a task does not end: " + s.Output() }, func() bool {
			acc, err := c.Operate(t.Context(), client.Operation{Action: "start", IdempotencyKey: key,
				Selection: client.Selection{Namespace: "faults", Names: []string{"failing*"}, All: true},
				Offline:   client.Offline{Wait: time.Minute}})
			if err != nil {
				return false
			}
			task, err = c.Task(t.Context(), acc.TaskID, time.Second, client.ShowAll)
			return err == nil && task.Final
		})
		<-killed
		kills++
		for _, a := range task.Attempts {
			if a.Verdict == "failed" && a.Code == gozzard.CodeCommandFailed {
				want[failure{task.ID, a.Name}] = true
			}
		}
	}
	if len(want) < 4*names {
		t.Fatalf("only %d starts failed", len(want))
	}

	// All are there, for the client that followed and in the list of a server that was just started.
	ft.Until(t, time.Minute, func() string { return fmt.Sprintf("%d of %d events came", seen.count(), len(want)) },
		func() bool { return seen.count() >= len(want) })
	s.Kill(syscall.SIGKILL)
	s.Again()
	s.AwaitReady()
	page, err := c.Events(t.Context(), client.EventQuery{Kinds: []string{string(gozzard.EventStartFailed)}}, 1000)
	if err != nil {
		t.Fatal(err)
	}
	listed := &failures{t: t, times: map[failure]int{}}
	for _, e := range page.Events {
		listed.add(e)
	}
	for what, f := range map[string]*failures{"the client that followed": seen, "the list": listed} {
		f.judge(what, want)
	}
	fmt.Printf("fault V21: server killed %d times, %d events, none lost, none twice\n", kills, len(want))
}

// registerFailing registers processes that cannot be started.
func registerFailing(t *testing.T, c *client.Client, n int) {
	t.Helper()
	spec := ft.NewDaemon(t, t.TempDir(), "gzfailing").Spec(ft.J{"auto_type": 0, "start_retries": 0, "start_check_secs": 0})
	spec["control"] = ft.J{"start_cmd": "exit 7"}
	for i := range n {
		doc, err := json.Marshal(ft.J{"namespace": "faults", "name": fmt.Sprint("failing", i), "spec": spec,
			"hosts": []ft.J{{"ip": "127.0.0.1"}}})
		if err != nil {
			t.Fatal(err)
		}
		acc, err := c.RegisterDocument(t.Context(), doc)
		if err == nil {
			_, err = c.Wait(t.Context(), acc.TaskID, func(client.Task) {})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// failure is a start that failed.
type failure struct{ task, name string }

// failures are the events that a client has seen.
type failures struct {
	t     *testing.T
	mu    sync.Mutex
	times map[failure]int
	last  uint64
}

func (f *failures) add(e client.Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.times[failure{e.Task, e.Name}]++
	if e.ID <= f.last {
		f.t.Errorf("event %d came after %d", e.ID, f.last)
	}
	f.last = e.ID
}

func (f *failures) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.times)
}

// judge compares the events with what happened.
func (f *failures) judge(what string, want map[failure]bool) {
	f.t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	for w := range want {
		if f.times[w] != 1 {
			f.t.Errorf("%s has the event of %v %d times", what, w, f.times[w])
		}
	}
	for x, n := range f.times {
		if n > 1 {
			f.t.Errorf("%s has the event of %v %d times", what, x, n)
		}
	}
}

// followFailures follows the events of starts that fail, over all kills of the server.
func followFailures(t *testing.T, c *client.Client) *failures {
	t.Helper()
	page, err := c.Events(t.Context(), client.EventQuery{}, 1)
	if err != nil {
		t.Fatal(err)
	}
	f := &failures{t: t, times: map[failure]int{}}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		for e, err := range c.FollowEvents(ctx, client.EventQuery{Kinds: []string{string(gozzard.EventStartFailed)}}, page.Next) {
			switch {
			case errors.Is(err, client.ErrEventsLost):
				t.Error("the client learns that events are missing")
			case err == nil:
				f.add(e)
			case gozzard.KindOf(err) != gozzard.ErrUnavailable:
				t.Errorf("the client does not go on: %v", err)
			}
		}
	})
	t.Cleanup(func() { cancel(); wg.Wait() })
	return f
}
