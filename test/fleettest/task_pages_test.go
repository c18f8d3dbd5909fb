//go:build linux

package fleettest_test

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
	ft "github.com/gozzard/gozzard/test/fleettest"
)

const (
	pagedHosts = 40
	pagedNames = 30 // on each host; every second one cannot be started
)

// pagedStart begins a task with a target for each process of each host. Its verdicts arrive over a few seconds.
func pagedStart(s *ft.Server) string {
	hosts := simHosts(pagedHosts)
	var reqs []ft.J
	for i := range pagedNames {
		name := fmt.Sprintf("p%02d", i)
		start := fmt.Sprintf("sleep %dms", 50*i)
		if i%2 == 1 {
			start += ";fail 3 no luck"
		}
		reqs = append(reqs, ft.J{"meta": ft.J{"namespace": "pages", "name": name}, "op_type": 0, "hosts": hosts, "spec": ft.J{
			"identity": ft.J{"proc_name": name, "setup_path": "/srv", "pid_path": "/srv/" + name, "user": "root"},
			"control":  ft.J{"start_cmd": start, "stop_cmd": "ok"}, "resource": ft.J{"cpu": 10, "mem": 10},
			"monitor_policy": ft.J{"auto_type": 1, "start_check_secs": 0}}})
	}
	return s.Operate("operate_proc_multi", ft.J{"proc_operate_req": reqs})
}

// pagedRead reads all pages of a task, and fails when an attempt is listed twice.
func pagedRead(t *testing.T, c *client.Client, task string, p client.TaskPart) map[string]client.Verdict {
	t.Helper()
	seen := map[string]client.Verdict{}
	for deadline := time.Now().Add(5 * time.Minute); ; {
		got, err := c.TaskPart(t.Context(), task, p)
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range got.Attempts {
			key := a.Host.IP + " " + a.Name
			if _, twice := seen[key]; twice {
				t.Errorf("%s is listed twice", key)
			}
			seen[key] = a.Verdict
		}
		if p.Cursor = got.Next; p.Cursor == "" {
			return seen
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d attempts are listed, and there is still a next page", len(seen))
		}
	}
}

// TestTaskPages reads a large task page by page while its verdicts arrive.
func TestTaskPages(t *testing.T) {
	t.Parallel() // it mostly waits
	s := ft.StartServer(t, "", "--log-level", "warn")
	s.StartSim(t, pagedHosts)
	c, err := client.New(s.Cred.URL, client.Credentials{AppCode: s.Cred.AppCode, AppSecret: s.Cred.Secret, Username: s.Cred.Username})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	ft.Until(t, 2*time.Minute, func() string { return "the hosts do not come" }, func() bool {
		page, err := c.Hosts(t.Context(), 0, 1)
		return err == nil && page.Count == pagedHosts
	})

	// All attempts, in pages, as it begins.
	const targets = pagedHosts * pagedNames
	task := pagedStart(s)
	if got := pagedRead(t, c, task, client.TaskPart{Limit: 70}); len(got) != targets {
		t.Errorf("%d attempts of %d are listed", len(got), targets)
	}

	// All failures, although most of them come later than the first page.
	got := pagedRead(t, c, task, client.TaskPart{Limit: 70, Show: client.ShowFailed, Wait: time.Second})
	if len(got) != targets/2 {
		t.Errorf("%d failures of %d are listed", len(got), targets/2)
	}
	for key, v := range got {
		if v != client.Failed {
			t.Errorf("%s is %s among the failures", key, v)
		}
	}

	// The command line has all of them.
	out, err := exec.Command(ft.Binary(t), "task", task, "-o", "json", "--credentials", filepath.Join(s.Data, "credentials.json")).Output()
	var printed client.Task
	if jsonErr := json.Unmarshal(out, &printed); jsonErr != nil {
		t.Fatalf("gozzard task: %v, %v: %.500s", err, jsonErr, out)
	}
	want := client.Counts{Targets: targets, Done: targets / 2, Failed: targets / 2}
	if len(printed.Attempts) != targets || printed.Counts != want || !printed.Final || printed.Next != "" {
		t.Errorf("gozzard task prints %d attempts, %+v", len(printed.Attempts), printed.Counts)
	}

	// A cursor of another task, and one that was cut off.
	first, err := c.TaskPart(t.Context(), task, client.TaskPart{Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	for id, cursor := range map[string]string{pagedStart(s): first.Next, task: first.Next[:10]} {
		_, err := c.TaskPart(t.Context(), id, client.TaskPart{Cursor: cursor})
		want := map[bool]string{true: "is damaged", false: "belongs to another task"}[id == task]
		if gozzard.KindOf(err) != gozzard.ErrInvalid || !strings.Contains(err.Error(), want) {
			t.Errorf("cursor %s of %s: %v; want %q", cursor, id, err, want)
		}
	}
}
