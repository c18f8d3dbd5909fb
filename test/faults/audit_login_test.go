//go:build linux

package faults_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gozzard/gozzard/client"
	ft "github.com/gozzard/gozzard/test/fleettest"
)

// TestTR1FailedLoginsAreFound: rows about wrong credentials are found by the user or app that they name, and by no other
// name.
func TestTR1FailedLoginsAreFound(t *testing.T) {
	f := startPlain(t, "127.0.0.1")
	password := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(password, []byte("a long password of a test\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"vera", "paul"} {
		f.gozzard(t, "user", "create", name, "--password-file", password, "--role", "viewer")
	}

	// Wrong passwords of a person and of an unknown name, and a wrong secret of an app.
	post := func(path, authorization, body string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, f.cred.URL+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-Bkapi-Authorization", authorization)
		res, err := f.http.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if res.Body.Close() != nil || res.StatusCode != http.StatusUnauthorized {
			t.Errorf("%s %s: HTTP %d", path, body, res.StatusCode)
		}
	}
	post("/api/v1/login", "", `{"user":"vera","password":"not the password"}`)
	post("/api/v1/login", "", `{"user":"unknown","password":"not the password"}`)
	post("/api/v1/apps", `{"bk_app_code":"admin","bk_app_secret":"wrong","bk_username":"paul"}`, `{}`)

	list := func(args ...string) (rows []client.AuditRow) {
		t.Helper()
		out := f.gozzard(t, append([]string{"audit", "list", "--action", "login:failed", "-o", "json"}, args...)...)
		if err := json.Unmarshal([]byte(out), &rows); err != nil {
			t.Fatal(err)
		}
		return rows
	}
	ft.Until(t, time.Minute, f.server.Output, func() bool { return len(list()) == 3 })
	for _, c := range []struct {
		flag, name, about string
		rows              int
	}{
		{"--user", "vera", "user vera", 1}, {"--app", "admin", "app admin", 1},
		{"--user", "paul", "", 0}, {"--user", "unknown", "", 0}, {"--app", "vera", "", 0}, {"--user", "admin", "", 0},
	} {
		rows := list(c.flag, c.name)
		if len(rows) != c.rows || len(rows) == 1 && rows[0].Outcome != c.about {
			t.Errorf("%s %s: %+v", c.flag, c.name, rows)
		}
	}
}
