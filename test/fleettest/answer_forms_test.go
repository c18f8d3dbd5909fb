//go:build linux

package fleettest_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/gozzard/gozzard/internal/api"
	ft "github.com/gozzard/gozzard/test/fleettest"
)

// TestFaultsOfForm: the check of forms finds what it is for.
func TestFaultsOfForm(t *testing.T) {
	for doc, want := range map[string]int{
		`{"at":"2026-01-02T15:04:05.000Z","host":{"agent":"","cloud":0,"ip":""},"managed":true,"started_at":null}`: 0,
		`{"hosts":[{"agent":"a","addrs":[{"cloud":0,"ip":"10.0.0.1"}]}]}`:                                          0,
		`{"definitions":[{"document":{"hosts":["x"],"at":3}}],"labels":{"at":"x"}}`:                                0,
		`{"at":"2026-01-02T15:04:05Z"}`:                      2,
		`{"note":"2026-01-02T15:04:05.123456Z"}`:             1,
		`{"started_at":1700000000}`:                          1,
		`{"started_at":0}`:                                   1,
		`{"created":""}`:                                     1,
		`{"list":[{"agent":"a","cloud":0,"ip":"10.0.0.1"}]}`: 1,
		`{"host":"0:10.0.0.1"}`:                              1,
		`{"host":{"cloud":0,"ip":"10.0.0.1"}}`:               1,
		`{"hosted":true}`:                                    1,
		`nonsense`:                                           1,
	} {
		if got := ft.FaultsOfForm([]byte(doc)); len(got) != want {
			t.Errorf("%s has %d faults, want %d: %q", doc, len(got), want, got)
		}
	}
}

// TestFormsOfProgram asks every route of the built program that can be read without a name for its answer, after
// operations on real processes, and judges the forms.
func TestFormsOfProgram(t *testing.T) {
	t.Parallel() // it mostly waits
	s := ft.StartServer(t, "")
	s.StartAgent(t, 1, "")
	f := startFleet(t, s, 1)
	ft.KillPID(t, f.pids()[0])
	task := s.Operate("operate_proc_multi", ft.J{"proc_operate_req": []ft.J{{"meta": ft.J{"namespace": "gse", "name": "p00"},
		"op_type": 7, "hosts": []ft.J{ft.Host(1)}, "spec": f.daemons[0].Spec(nil)}}})
	s.Await(task)

	paths := []string{"/api/v1/tasks/" + task}
	for _, r := range api.Routes() {
		if r.Method == http.MethodGet && strings.HasPrefix(r.Path, "/api/v1/") && !strings.Contains(r.Path, "{") &&
			!strings.HasSuffix(r.Path, ".json") && !strings.HasSuffix(r.Path, "/stream") &&
			r.Path != "/api/v1/live/snapshot" { // columns in bytes
			paths = append(paths, r.Path)
		}
	}

	answered := 0
	for _, path := range paths {
		status, body := s.Get(t, path)
		if status != http.StatusOK {
			continue // a route that needs a parameter, or a part that this server does not have
		}
		answered++
		for _, fault := range ft.FaultsOfForm([]byte(body)) {
			t.Errorf("%s: %s", path, fault)
		}
	}
	if answered < 10 {
		t.Errorf("only %d routes answered", answered)
	}
}
