//go:build linux

package fleettest_test

import (
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"

	ft "github.com/gozzard/gozzard/test/fleettest"
)

// terminate terminates a transfer as bk-bscp does, and returns the task of the answer and the whole of it.
func (c *tenant) terminate(task string, agents ...ft.J) (named, text string) {
	c.t.Helper()
	body := ft.J{"task_id": task, "agents": agents}
	if agents == nil {
		body["agents"] = []ft.J{}
	}
	var got struct {
		Data struct {
			Result struct {
				TaskID string `json:"task_id"`
			} `json:"result"`
		} `json:"data"`
	}
	_, text = c.native(http.MethodPost, "/api/bk-gse/prod"+scriptPath+"async_terminate_transfer_file/", body, &got)
	return got.Data.Result.TaskID, text
}

// waitingTransfer begins a transfer to host 2, which is away, and returns its task while it waits for the host. Without a time to
// wait, operations wait only shortly after a start of the server, when hosts are about to come back.
func (c *tenant) waitingTransfer(s *ft.Server, transfer ft.J) string {
	c.t.Helper()
	for range 5 {
		s.Program.Kill(syscall.SIGKILL)
		s.Program.Again()
		s.AwaitReady()
		s.AwaitOnline(c.t, 1)
		task, refusal := c.beginTransfer(nil, transfer)
		if task == "" {
			c.t.Fatal(refusal)
		}
		if rows, _ := c.transferRows(task, nil); len(rows) == 1 && rows[0].ErrorCode == 115 {
			return task
		}
	}
	c.t.Fatal("the transfer does not wait for its host")
	return ""
}

// TestTransfersTerminated: a transfer to a host that is away is terminated. Its row has 126, and the file is not written when the
// host comes back, also after another kill of the server. A file that is written stays so. A retry writes the file.
func TestTransfersTerminated(t *testing.T) {
	t.Parallel() // it mostly waits
	s, agents, c, from, to := transferHosts(t, "transfers-terminated")
	source(t, from+"/app.conf", []byte("app\n"), 0o644)

	// A transfer that has ended.
	done, _ := c.beginTransfer(nil, transferOf(from+"/app.conf", to+"/done", nil, nil))
	if rows := c.transferred(done); rows[0].ErrorCode != 0 {
		t.Fatalf("%+v", rows)
	}
	if named, text := c.terminate(done); named != done {
		t.Errorf("%s", text)
	}
	if rows, _ := c.transferRows(done, nil); len(rows) != 1 || rows[0].ErrorCode != 0 {
		t.Errorf("%+v", rows)
	}

	// One to a host that is away.
	agents[1].Kill(syscall.SIGKILL)
	task := c.waitingTransfer(s, transferOf(from+"/app.conf", to+"/never", nil, nil))
	if _, text := c.terminate(task, ft.J{"bk_agent_id": "0:127.0.0.9", "bk_container_id": ""}); !strings.Contains(text, "is no target") {
		t.Errorf("%s", text)
	}
	if named, text := c.terminate(task, ft.J{"bk_agent_id": "0:127.0.0.2", "bk_container_id": ""}); named != task {
		t.Errorf("%s", text)
	}
	terminated := func() {
		t.Helper()
		rows, text := c.transferRows(task, nil)
		if len(rows) != 1 || rows[0].ErrorCode != 126 || !strings.Contains(rows[0].ErrorMsg, "cancelled before this was sent") {
			t.Errorf("%s", text)
		}
		if _, err := os.Lstat(to + "/never"); err == nil {
			t.Error("the file is written")
		}
	}
	terminated()
	s.Program.Kill(syscall.SIGKILL)
	s.Program.Again()
	s.AwaitReady()
	s.AwaitOnline(t, 1)
	s.AgainOnline(t, agents[1])

	// What comes after it is written, so it would be too.
	if rows := c.transfer(nil, transferOf(from+"/app.conf", to+"/after", nil, nil)); rows[0].ErrorCode != 0 {
		t.Errorf("%+v", rows)
	}
	terminated()
	if named, text := c.terminate(task); named != task {
		t.Errorf("again: %s", text)
	}

	// The audit has it, and a retry is a new operation.
	if _, text := (&tenant{API: s.API, t: t}).native(http.MethodGet, "/api/v1/audit?limit=50", nil, nil); !strings.Contains(text, `"cancel:transfer"`) {
		t.Errorf("%s", text)
	}
	if text := c.operate(http.MethodPost, "/api/v1/tasks/"+task+"/retry", ft.J{}); !strings.Contains(text, `"verdict":"done"`) {
		t.Errorf("%s", text)
	}
	if _, err := os.Lstat(to + "/never"); err != nil {
		t.Error(err)
	}
}

// TestTT16TerminateOfOthers tries to terminate the transfer of another app, with every right and by every door, without the right,
// and other tasks as if they were transfers.
func TestTT16TerminateOfOthers(t *testing.T) {
	t.Parallel() // it mostly waits
	s, agents, c, from, to := transferHosts(t, "terminate-right")
	source(t, from+"/app.conf", []byte("app\n"), 0o644)
	every := transferGrant(ft.J{"accounts": []string{"*", "root"}})
	strangers := map[string]*tenant{
		"other app, every right": newTenant(t, s, "terminate-other", every),
		"viewer":                 newTenant(t, s, "terminate-viewer", ft.J{"role": "viewer", "hosts": "any"}),
		"operator of processes":  newTenant(t, s, "terminate-operator", ft.J{"role": "operator", "hosts": "any", "accounts": []string{"nobody"}}),
		"admin of everything":    {API: s.API, t: t},
	}
	agents[1].Kill(syscall.SIGKILL)
	task := c.waitingTransfer(s, transferOf(from+"/app.conf", to+"/x", nil, nil))
	for name, x := range strangers {
		for _, id := range []string{task, strings.TrimPrefix(task, "GSETASK:"), strings.ToLower(task)} {
			if named, text := x.terminate(id); named != "" || !strings.Contains(text, "no such task") {
				t.Errorf("%s, %s: %s", name, id, text)
			}
		}
	}
	for _, id := range []string{"", "x", task + "0", "GSETASK:20180315180551:1000", task + "\x00"} {
		if named, text := c.terminate(id); named != "" {
			t.Errorf("%q: %s", id, text)
		}
	}
	if rows, text := c.transferRows(task, nil); len(rows) != 1 || rows[0].ErrorCode != 115 {
		t.Errorf("it does not wait any more: %s", text)
	}

	// Another task of the same app is no transfer.
	admin := &tenant{API: s.API, t: t}
	if status, text := admin.native(http.MethodPost, "/api/v1/grants", ft.J{"app": "terminate-right",
		"grant": transferGrant(ft.J{"actions": []string{"script"}})}, nil); status/100 != 2 {
		t.Fatal(text)
	}
	other, refusal := c.beginScript(script("nobody", "true", nil))
	if named, text := c.terminate(other); other == "" || named != "" || !strings.Contains(text, "no such task") {
		t.Errorf("%q: %s %s", other, text, refusal)
	}

	// Without the right any more, the app does not terminate its own.
	if status, text := admin.native(http.MethodDelete, "/api/v1/grants", ft.J{"app": "terminate-right", "grant": transferGrant(nil)}, nil); status/100 != 2 {
		t.Fatal(text)
	}
	if named, text := c.terminate(task); named != "" || !strings.Contains(text, "not permitted") {
		t.Errorf("%s", text)
	}
}
