//go:build linux

package fleettest

import (
	"encoding/json"
	"fmt"
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
)

// Failure is a start that failed. Its verdict and its event name the same task.
type Failure struct{ Task, Name string }

// RegisterFailing registers processes on a host that cannot be started: every start is an event.
func RegisterFailing(t testing.TB, c *client.Client, ip string, n int) {
	t.Helper()
	spec := NewDaemon(t, t.TempDir(), "gzfailing").Spec(J{"auto_type": 0, "start_retries": 0, "start_check_secs": 0})
	spec["control"] = J{"start_cmd": "exit 7"}
	for i := range n {
		doc, err := json.Marshal(J{"namespace": "faults", "name": fmt.Sprint("failing", i), "spec": spec, "hosts": []J{{"ip": ip}}})
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

// StartFailing starts the processes of RegisterFailing, and returns the starts that failed. It asks each client in turn until
// the task has ended; the key makes it one task. Of one process and kind an agent reports ten events a minute one by one.
func StartFailing(t testing.TB, key string, clients ...*client.Client) map[Failure]bool {
	t.Helper()
	var task client.Task
	tries := 0
	Until(t, 2*time.Minute, func() string { return "task " + key + " does not end" }, func() bool {
		c := clients[tries%len(clients)]
		tries++
		acc, err := c.Operate(t.Context(), client.Operation{Action: "start", IdempotencyKey: key,
			Selection: client.Selection{Namespace: "faults", Names: []string{"failing*"}, All: true},
			Offline:   client.Offline{Wait: time.Minute}})
		if err != nil {
			return false
		}
		task, err = c.Task(t.Context(), acc.TaskID, time.Second, client.ShowAll)
		return err == nil && task.Final
	})

	failed := map[Failure]bool{}
	for _, a := range task.Attempts {
		if a.Verdict == "failed" && a.Code == gozzard.CodeCommandFailed {
			failed[Failure{task.ID, a.Name}] = true
		}
	}
	return failed
}

// FailureEvents selects the events of starts that failed.
func FailureEvents() client.EventQuery {
	return client.EventQuery{Kinds: []string{string(gozzard.EventStartFailed)}}
}

// Failures are the events of starts that failed, as one reader has seen them.
type Failures struct {
	t     testing.TB
	mu    sync.Mutex
	times map[Failure]int
	ids   map[uint64]Failure
	last  uint64
}

// ListFailures has the newest events that a server lists.
func ListFailures(t testing.TB, c *client.Client) *Failures {
	t.Helper()
	page, err := c.Events(t.Context(), FailureEvents(), client.MaxPage)
	if err != nil {
		t.Fatal(err)
	}
	f := NewFailures(t)
	for i := range page.Events {
		f.Add(page.Events[i])
	}
	return f
}

// NewFailures is a reader that has seen nothing.
func NewFailures(t testing.TB) *Failures {
	return &Failures{t: t, times: map[Failure]int{}, ids: map[uint64]Failure{}}
}

// Add is called for each event. Their numbers must grow.
func (f *Failures) Add(e client.Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.times[Failure{e.Task, e.Name}]++
	f.ids[e.ID] = Failure{e.Task, e.Name}
	if e.ID <= f.last {
		f.t.Errorf("event %d came after %d", e.ID, f.last)
	}
	f.last = e.ID
}

// Last is the number of the last event.
func (f *Failures) Last() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.last
}

// Has counts those of the given starts that were seen.
func (f *Failures) Has(want map[Failure]bool) (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for w := range want {
		if f.times[w] > 0 {
			n++
		}
	}
	return n
}

// All are the events by their numbers.
func (f *Failures) All() map[uint64]Failure {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.ids)
}

// Judge compares the events with the starts that failed for certain: each must be there once, and no other one twice.
func (f *Failures) Judge(what string, want map[Failure]bool) {
	f.t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	for w := range want {
		if f.times[w] != 1 {
			f.t.Errorf("%s has the event of %v %d times", what, w, f.times[w])
		}
	}
	for x, n := range f.times {
		if n > 1 && !want[x] {
			f.t.Errorf("%s has the event of %v %d times", what, x, n)
		}
	}
}

// Kept compares what was seen with a later list: an event that was shown has its number for ever.
func (f *Failures) Kept(what string, list *Failures) {
	f.t.Helper()
	listed := list.All()
	for id, seen := range f.All() {
		if listed[id] != seen {
			f.t.Errorf("%s: event %d was of %v, and is of %v in the list", what, id, seen, listed[id])
		}
	}
}
