//go:build linux

package compat_test

import (
	"encoding/json"
	"net/http"
	"path/filepath"
	"testing"
)

// TestBackup restores a backup of the old program and compares what the restored server says.
func TestBackup(t *testing.T) {
	eachVersion(t, func(t *testing.T, version string) {
		old := filepath.Join(unpack(t, version, "loopback"), "server")
		file, key := filepath.Join(old, "backup.age"), filepath.Join(old, "backup.key")
		must(t, nil, "backup", "verify", file, "--identity", key, "--temp", t.TempDir())
		data := filepath.Join(t.TempDir(), "restored")
		must(t, nil, "backup", "restore", file, "--identity", key, "--data", data)
		s := newServer(t, data, "--reset-admin")
		s.resolve(t, 2)
		s.begin(t)

		g := newGolden(t, version, "backup")
		for _, path := range []string{"topology/2", "users", "apps", "processes?limit=1000"} {
			status, answer := s.call(s.admin, http.MethodGet, "/api/v1/"+path, "")
			g.document("GET /api/v1/"+path, status, answer)
		}

		for _, task := range lines(t, filepath.Join(old, "tasks.list")) {
			body := `{"task_id":"` + task + `"}`
			status, answer := s.call(s.admin, http.MethodPost, gse+"get_proc_operate_result/", body)
			g.bytes("POST get_proc_operate_result "+body, status, answer)
		}

		g.compare()

		var waiting struct {
			Waiting int `json:"waiting"`
		}
		_, answer := s.call(s.admin, http.MethodGet, "/api/v1/restore", "")
		if err := json.Unmarshal(answer, &waiting); err != nil || waiting.Waiting != 3 {
			t.Errorf("3 hosts wait for a confirmation, not this: %v in %s", err, answer)
		}

		must(t, nil, "audit", "verify", "--data", data)
		must(t, s.asAdmin(), "hosts", "confirm-restore", "--confirm", "3")

		out := filepath.Join(t.TempDir(), "alice.json")
		must(t, s.asAdmin(), "user", "login", "alice", "--password-file", filepath.Join(old, "password"), "--out", out)
	})
}
