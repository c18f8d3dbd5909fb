//go:build linux

package faults_test

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gozzard/gozzard/client"
	ft "github.com/gozzard/gozzard/test/fleettest"
)

// TestTR12QueriesDoNotFillTheAudit: a viewer asks the same thing again and again, and many different things under many
// names of users. The audit gets few rows, their numbers are right, and the chain is whole. Operations in between have
// their own rows.
func TestTR12QueriesDoNotFillTheAudit(t *testing.T) {
	t.Parallel() // it mostly waits
	s := ft.StartServer(t, "")
	s.StartAgent(t, 1, "")
	s.AwaitOnline(t, 1)

	// An app that may only look, and that names users.
	viewer := s.For(t)
	secret, err := exec.Command(ft.Binary(t), "app", "create", "looker", "--role", "viewer", "--asserts-users",
		"--unknown-users", "--credentials", filepath.Join(s.Data, "credentials.json")).Output()
	if err != nil {
		t.Fatalf("%v: %s", err, secret)
	}
	viewer.Cred.AppCode, viewer.Cred.Secret = "looker", strings.TrimSpace(string(secret))

	// It asks.
	ask := func(api *ft.API, op int, name string) {
		t.Helper()
		api.Operate("operate_proc", ft.J{"meta": ft.J{"namespace": "shop", "name": name}, "op_type": op,
			"hosts": []ft.J{ft.Host(1)}})
	}
	const equal, different, changes = 60, 60, 5

	for i := range different {
		viewer.Cred.Username = "vera"
		ask(viewer, 2, "web")
		viewer.Cred.Username = fmt.Sprint("user-", i)
		ask(viewer, 2, fmt.Sprint("other-", i))
	}
	for range changes {
		ask(s.API, 1, "web") // a stop, of the admin
	}

	// The numbers are in the record when the server has ended.
	s.Kill(15)
	list := func(args ...string) (rows []client.AuditRow) {
		t.Helper()
		out, err := exec.Command(ft.Binary(t), slices.Concat([]string{"audit", "list", "--last", "1000", "-o", "json"},
			inFolder(t, s.Data), args)...).Output()
		if err != nil || json.Unmarshal(out, &rows) != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return rows
	}
	rows, asked, vera := list("--app", "looker"), 0, 0
	for _, r := range rows {
		if r.Act == "operate:query" {
			asked += max(1, r.Count)
			if r.User == "vera" {
				vera += max(1, r.Count)
			}
			if r.Count > 1 && (!strings.HasPrefix(r.Outcome, "further ") || r.Door == "") {
				t.Errorf("a row about several queries: %+v", r)
			}
		}
	}
	if asked != equal+different || vera != equal {
		t.Errorf("%d queries of %d are in the audit, %d of %d that are equal", asked, equal+different, vera, equal)
	}
	if len(rows) > 100 { // two for each query before; more than one minute may have passed
		t.Errorf("%d rows", len(rows))
	}
	if n := len(list("--action", "stop")); n != changes {
		t.Errorf("%d of %d changes have rows", n, changes)
	}
	if out, err := exec.Command(ft.Binary(t), append([]string{"audit", "verify"}, inFolder(t, s.Data)...)...).CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}
