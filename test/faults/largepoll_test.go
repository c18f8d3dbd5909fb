//go:build linux

package faults_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	ft "github.com/gozzard/gozzard/test/fleettest"
)

// Polls of a large task are answered from what is kept of it. A caller that has an answer gets 304, and one that may not read
// the task learns nothing by its tag, or by any tag.
func TestPollsOfALargeTask(t *testing.T) {
	s := ft.StartServer(t, filepath.Join(t.TempDir(), "data"))
	hosts := make([]ft.J, 1500) // none is known, so the task is final at once
	for i := range hosts {
		hosts[i] = ft.J{"ip": fmt.Sprintf("127.1.%d.%d", i/250, 1+i%250), "bk_cloud_id": 0, "bk_supplier_id": 0}
	}
	task := s.Operate("operate_proc_v2", ft.J{"meta": ft.J{"namespace": "ns", "name": "p"}, "op_type": 0, "hosts": hosts,
		"spec": ft.J{"identity": ft.J{"proc_name": "p", "setup_path": "/data", "pid_path": "/data/p.pid", "user": "root"},
			"control": ft.J{"start_cmd": "./start.sh"}, "monitor_policy": ft.J{"auto_type": 1}}})

	// Both doors answer the same again and again.
	if first, second := s.Await(task), s.Results(task); len(first) != len(hosts) || len(second) != len(first) {
		t.Errorf("get_proc_operate_result has %d and %d entries", len(first), len(second))
	}
	whole := pollAs(t, s.API, task, "")
	tag := whole.Header.Get("ETag")
	var state struct {
		Final    bool
		Attempts []json.RawMessage
	}
	text, err := io.ReadAll(whole.Body)
	if err != nil || json.Unmarshal(text, &state) != nil || !state.Final || len(state.Attempts) != len(hosts) || tag == "" {
		t.Fatalf("a poll: tag %q, %d attempts, %v, %.200s", tag, len(state.Attempts), err, text)
	}
	for range 2 {
		if res := pollAs(t, s.API, task, tag); res.StatusCode != http.StatusNotModified {
			t.Errorf("with the tag: HTTP %d", res.StatusCode)
		}
	}

	// Other callers get what they get without a tag.
	secret, err := exec.Command(ft.Binary(t), "app", "create", "other", "--role", "operator", "--account", "root", "--asserts-users", "--unknown-users",
		"--credentials", filepath.Join(s.Data, "credentials.json")).Output()
	if err != nil {
		t.Fatal(err)
	}
	other := *s.API
	other.Cred.AppCode, other.Cred.Secret = "other", strings.TrimSpace(string(secret))
	stranger := *s.API
	stranger.Cred.Secret = "wrong"
	for _, have := range []string{"", tag, "*"} {
		if res := pollAs(t, &other, task, have); res.StatusCode != http.StatusNotFound {
			t.Errorf("another app with tag %q: HTTP %d", have, res.StatusCode)
		}
		if res := pollAs(t, &stranger, task, have); res.StatusCode != http.StatusUnauthorized {
			t.Errorf("a stranger with tag %q: HTTP %d", have, res.StatusCode)
		}
	}
}

// pollAs polls a task on the native API. tag is that of the answer that the caller has.
func pollAs(t *testing.T, a *ft.API, task, tag string) *http.Response {
	t.Helper()
	cred, err := json.Marshal(ft.J{"bk_app_code": a.Cred.AppCode, "bk_app_secret": a.Cred.Secret, "bk_username": a.Cred.Username})
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, strings.TrimSuffix(a.Cred.URL, "/")+"/api/v1/tasks/"+task, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Bkapi-Authorization", string(cred))
	if tag != "" {
		req.Header.Set("If-None-Match", tag)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = res.Body.Close() }) // the answer was read or has no body
	return res
}
