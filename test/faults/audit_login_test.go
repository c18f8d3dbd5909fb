//go:build linux

package faults_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gozzard/gozzard/client"
	ft "github.com/gozzard/gozzard/test/fleettest"
)

// TestTR1FailedLoginsAreFound: rows about wrong credentials are found by the user or app that they name, and by no other
// name.
func TestTR1FailedLoginsAreFound(t *testing.T) {
	t.Parallel() // it mostly waits
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

// TestTR1VisitsAreNoFailedLogins: a browser that opens the console has no credentials yet. However often it does, it gets the
// answer 401 and leaves no row. Wrong credentials for the same path do.
func TestTR1VisitsAreNoFailedLogins(t *testing.T) {
	t.Parallel() // it mostly waits
	f := startPlain(t, "127.0.0.1")
	send := func(method, path string, set func(http.Header)) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, f.cred.URL+path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		set(req.Header)
		res, err := f.http.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if res.Body.Close() != nil || res.StatusCode != http.StatusUnauthorized {
			t.Errorf("%s %s: HTTP %d", method, path, res.StatusCode)
		}
	}

	// More visits in a minute than wrong credentials are allowed, then a wrong secret.
	for range 10 {
		for _, path := range []string{"/api/v1/session", "/api/v1/processes"} {
			send(http.MethodGet, path, func(http.Header) {})
			send(http.MethodHead, path, func(http.Header) {})
		}
	}
	send(http.MethodGet, "/api/v1/session", func(h http.Header) {
		h.Set("X-Bkapi-Authorization", `{"bk_app_code":"admin","bk_app_secret":"wrong"}`)
	})

	// Rows of visits would be written before the row of the wrong secret.
	var rows []client.AuditRow
	hasRows := func(n int) func() bool {
		return func() bool {
			out := f.gozzard(t, "audit", "list", "--action", "login:failed", "-o", "json")
			if err := json.Unmarshal([]byte(out), &rows); err != nil {
				t.Fatal(err)
			}
			return len(rows) >= n
		}
	}
	ft.Until(t, time.Minute, f.server.Output, hasRows(1))
	if len(rows) != 1 || rows[0].Outcome != "app admin" {
		t.Errorf("rows of visits: %+v", rows)
	}

	// A header with something else than a token is no visit.
	send(http.MethodGet, "/api/v1/session", func(h http.Header) { h.Set("Authorization", "Basic bm86bm8=") })
	ft.Until(t, time.Minute, f.server.Output, hasRows(2))
}

// TestTR13RefusedUserOfAnApp: an app with its right secret names a user that is not known, or sends the session of a
// person as a token, on both APIs. The rows name the app, and the user that it claimed.
func TestTR13RefusedUserOfAnApp(t *testing.T) {
	t.Parallel() // it mostly waits
	// Make the app, and a person with a session.
	f := startPlain(t, "127.0.0.1")
	password := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(password, []byte("a long password of a test\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f.gozzard(t, "user", "create", "alice", "--password-file", password, "--role", "viewer")
	secret := strings.TrimSpace(f.gozzard(t, "app", "create", "portal", "--role", "viewer", "--asserts-users",
		"--unknown-users=false"))
	send := func(method, path, authorization, body string) (int, []byte) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, f.cred.URL+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-Bkapi-Authorization", authorization)
		res, err := f.http.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		b, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, b
	}
	var session struct {
		Token string `json:"token"`
	}
	code, b := send(http.MethodPost, "/api/v1/login", "", `{"user":"alice","password":"a long password of a test"}`)
	if err := json.Unmarshal(b, &session); err != nil || session.Token == "" {
		t.Fatalf("HTTP %d %s", code, b)
	}

	// Send what is refused.
	for _, c := range []struct{ field, value, action, about string }{
		{"bk_username", "bob", "refused:right", "claimed user bob"},
		{"bk_token", session.Token, "login:failed", "claimed user alice by a token or session"},
		{"bk_token", "a text that is no token", "login:failed", "claimed a user by an unknown token"},
	} {
		head, err := json.Marshal(ft.J{"bk_app_code": "portal", "bk_app_secret": secret, c.field: c.value})
		if err != nil {
			t.Fatal(err)
		}
		if code, b := send(http.MethodGet, "/api/v1/whoami", string(head), ""); code != 401 && code != 403 {
			t.Errorf("%s: HTTP %d %s", c.field, code, b)
		}
		send(http.MethodPost, "/api/c/compapi/v2/gse/get_proc_status/", string(head), `{}`)

		// Find the rows, one of each API.
		list := func() (rows []client.AuditRow) {
			t.Helper()
			out := f.gozzard(t, "audit", "list", "--action", c.action, "--app", "portal", "-o", "json")
			if err := json.Unmarshal([]byte(out), &rows); err != nil {
				t.Fatal(err)
			}
			return slices.DeleteFunc(rows, func(r client.AuditRow) bool { return !strings.Contains(r.Outcome, c.about) })
		}
		ft.Until(t, time.Minute, func() string { return fmt.Sprintf("%s: %+v", c.about, list()) }, func() bool {
			rows := list()
			return len(rows) == 2 && rows[0].App == "portal" && rows[1].App == "portal"
		})
	}
}
