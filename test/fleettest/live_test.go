//go:build linux

package fleettest_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gozzard/gozzard/client"
	ft "github.com/gozzard/gozzard/test/fleettest"
)

// liveFollower follows the live data of a server as a program does.
type liveFollower struct {
	shown atomic.Value // what it has, as text

	// Used by its goroutine only.
	table  *client.LiveTable
	events []client.Event
	tasks  map[string]client.TaskSummary
}

func (f *liveFollower) text() string { return f.shown.Load().(string) }

// followLive reads a snapshot and follows it until the test ends.
func followLive(t *testing.T, c *tenant) *liveFollower {
	t.Helper()
	api, err := client.New(c.Cred.URL, client.Credentials{AppCode: c.Cred.AppCode, AppSecret: c.Cred.Secret,
		Username: c.Cred.Username})
	if err != nil {
		t.Fatal(err)
	}
	table, err := api.LiveSnapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	f := &liveFollower{table: table, tasks: map[string]client.TaskSummary{}}
	f.show(nil)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		for e, err := range api.FollowLive(ctx, table) {
			f.events = append(f.events, e.Events...)
			for _, task := range e.Tasks {
				f.tasks[task.ID] = task
			}
			f.show(err)
		}
	})
	t.Cleanup(func() { cancel(); wg.Wait() })
	return f
}

// show makes the text: all names, the rows, and what happened to them.
func (f *liveFollower) show(err error) {
	var b strings.Builder
	for _, name := range f.table.Names.Name {
		fmt.Fprintf(&b, "name %s\n", name)
	}
	for _, r := range f.table.Rows {
		fmt.Fprintf(&b, "%s/%s %s pid=%d place=%v\n", f.table.Names.Space[r.Name], f.table.Names.Name[r.Name],
			f.table.States[r.State], r.PID, f.table.Places[r.Place])
	}
	for _, e := range f.events {
		fmt.Fprintf(&b, "event %s/%s %s\n", e.Namespace, e.Name, e.Kind)
	}
	for _, task := range f.tasks {
		fmt.Fprintf(&b, "task %s/%s %v final=%t\n", task.Processes[0].Namespace, task.Processes[0].Name, task.Actions, task.Final)
	}
	if err != nil {
		fmt.Fprintf(&b, "error %v\n", err)
	}
	f.shown.Store(b.String())
}

// TestLiveData: a process that dies shows on the stream by itself, with its event and the task that starts it again; a
// viewer of another namespace gets nothing of it.
func TestLiveData(t *testing.T) {
	t.Parallel()
	s := ft.StartServer(t, "")
	s.StartAgent(t, 1, "")
	admin := &tenant{API: s.API, t: t}
	narrow := newTenant(t, s, "narrow", ft.J{"role": "viewer", "namespaces": []string{"other"}, "hosts": "any"})

	// Start a process that is not supervised, and follow it.
	fx := ft.NewDaemon(t, t.TempDir(), "gzlive")
	spec := fx.Spec(nil)
	task := s.Operate("operate_proc_v2", ft.J{"meta": ft.J{"namespace": "mine", "name": "seen"}, "op_type": 0,
		"spec": spec, "hosts": []ft.J{{"ip": "127.0.0.1", "bk_cloud_id": 0}}})
	s.Await(task)
	all, none := followLive(t, admin), followLive(t, narrow)
	wait := func(word string) {
		t.Helper()
		ft.Until(t, 2*time.Minute, func() string { return "no " + word + " in:\n" + all.text() },
			func() bool { return strings.Contains(all.text(), word) })
	}
	old := 0
	ft.Until(t, 2*time.Minute, all.text, func() bool {
		_, rest, _ := strings.Cut(all.text(), "mine/seen running pid=")
		_, err := fmt.Sscan(rest, &old)
		return err == nil && old > 1
	})

	// Its end shows by itself.
	ft.KillPID(t, old)
	wait("event mine/seen exited")
	ft.Until(t, 2*time.Minute, all.text, func() bool {
		text := all.text()
		return strings.Contains(text, "mine/seen ") && !strings.Contains(text, fmt.Sprintf("pid=%d", old))
	})

	// A task shows, too.
	if text := admin.operate(http.MethodPost, "/api/v1/operations", ft.J{"action": "stop", "namespace": "mine",
		"names": []string{"seen"}, "all": true}); !strings.Contains(text, `"final":true`) {
		t.Fatal(text)
	}
	wait("task mine/seen [stop] final=true")
	wait("mine/seen stopped pid=-1")

	if text := none.text(); text != "" {
		t.Errorf("a viewer of another namespace got:\n%s", text)
	}
}
