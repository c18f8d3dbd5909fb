//go:build linux

package faults_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gozzard/gozzard/client"
	ft "github.com/gozzard/gozzard/test/fleettest"
)

// auditRows lists rows with `gozzard audit list`.
func auditRows(t *testing.T, s *ft.Server, args ...string) (rows []client.AuditRow) {
	t.Helper()
	auditJSON(t, s, &rows, append([]string{"list", "--last", "1000"}, args...)...)
	return rows
}

// auditJSON runs a verb of `gozzard audit`, once by the server and once by the data folder. Both must say the same.
func auditJSON(t *testing.T, s *ft.Server, to any, args ...string) {
	t.Helper()
	var said [2]string
	for i, from := range [][]string{{"--credentials", filepath.Join(s.Data, "credentials.json")}, inFolder(t, s.Data)} {
		out, err := exec.Command(ft.Binary(t), append(append([]string{"audit"}, args...), append(from, "-o", "json")...)...).
			CombinedOutput()
		if err != nil {
			t.Fatalf("audit %v %v: %v: %s", args, from, err, out)
		}
		said[i] = string(out)
	}
	if said[0] != said[1] {
		t.Errorf("audit %v: the server says\n%s\nand its folder\n%s", args, said[0], said[1])
	}
	if err := json.Unmarshal([]byte(said[0]), to); err != nil {
		t.Fatal(err)
	}
}

// TestTR1RowsAnswer: the audit says which command ran on which host as which account, from where, and what became of
// it. Wrong credentials, the lock after them, and requests without a right have rows, and a flood of them has few.
func TestTR1RowsAnswer(t *testing.T) {
	t.Parallel() // it mostly waits
	s := ft.StartServer(t, "", "--max-failed-logins", "20")
	s.StartAgent(t, 1, "")
	d := ft.NewDaemon(t, t.TempDir(), "gzaudit")
	task := s.Operate("operate_proc", ft.J{"meta": ft.J{"namespace": "shop", "name": "web"}, "op_type": 0,
		"hosts": []ft.J{ft.Host(1)}, "spec": d.Spec(ft.J{})})
	s.Await(task)

	// The operation, by host and by account. The definition names no account, so the agent's own counts as root.
	rows := auditRows(t, s, "--host", "127.0.0.1", "--account", "root", "--action", "start")
	if len(rows) != 1 || rows[0].TaskID != task || rows[0].Source != "127.0.0.1" || rows[0].RequestID == "" ||
		rows[0].Door == "" || !strings.Contains(rows[0].Result, "=1") {
		t.Fatalf("rows of the operation: %+v", rows)
	}
	for _, other := range [][]string{{"--host", "127.0.0.2"}, {"--account", "shop"}, {"--user", "nobody"},
		{"--app", "other"}, {"--until", "1h"}} {
		if found := auditRows(t, s, append(other, "--action", "start")...); len(found) != 0 {
			t.Errorf("%v finds %+v", other, found)
		}
	}
	var detail client.AuditDetail
	auditJSON(t, s, &detail, "show", strconv.FormatInt(rows[0].Seq, 10))
	if len(detail.Hosts) != 1 || detail.Hosts[0].IP != "127.0.0.1" || len(detail.Items) != 1 ||
		!strings.Contains(string(detail.Definitions[detail.Items[0].Definition]), d.Dir) {
		t.Errorf("the row shows %+v", detail)
	}

	// A viewer that asks for what it may not have.
	post := func(authorization, path, body string) (int, string) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.Cred.URL+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if token, ok := strings.CutPrefix(authorization, "Bearer "); ok {
			req.Header.Set("Authorization", "Bearer "+token)
		} else if authorization != "" {
			req.Header.Set("X-Bkapi-Authorization", `{"bk_app_code":"admin","bk_app_secret":"`+authorization+
				`","bk_username":"u"}`)
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(res.Body)
		if err := errors.Join(err, res.Body.Close()); err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, string(b)
	}
	if code, got := post(s.Cred.Secret, "/api/v1/users",
		`{"name":"vera","password":"0123456789abcdef","grants":[{"role":"viewer"}]}`); code != http.StatusCreated {
		t.Fatalf("user: %d %s", code, got)
	}
	var session struct{ Token string }
	if code, got := post("", "/api/v1/login", `{"user":"vera","password":"0123456789abcdef"}`); code != http.StatusOK ||
		json.Unmarshal([]byte(got), &session) != nil {
		t.Fatalf("login: %d %s", code, got)
	}
	if code, got := post("Bearer "+session.Token, "/api/v1/apps", "{}"); code != http.StatusForbidden {
		t.Fatalf("a viewer makes an app: %d %s", code, got)
	}
	ft.Until(t, time.Minute, s.Output, func() bool {
		out, err := exec.Command(ft.Binary(t), append([]string{"audit", "list", "--action", "refused:right", "--user", "vera"}, inFolder(t, s.Data)...)...).
			Output()
		return err == nil && strings.Contains(string(out), "this needs the role admin on everything")
	})

	// Guesses: of a known app, and of a user.
	locked := false
	for range 60 {
		code, _ := post("wrong", "/api/v1/apps", "{}")
		locked = code == http.StatusTooManyRequests || locked
		post("", "/api/v1/login", `{"user":"hunter2-in-the-wrong-field","password":"wrong-wrong-wrong"}`)
	}
	if !locked {
		t.Fatal("the address was not locked out, which proves nothing")
	}
	var failed, lock []client.AuditRow
	ft.Until(t, time.Minute, s.Output, func() bool {
		f, err := exec.Command(ft.Binary(t), append([]string{"audit", "list", "--action", "login:failed", "-o", "json"}, inFolder(t, s.Data)...)...).Output()
		l, err2 := exec.Command(ft.Binary(t), append([]string{"audit", "list", "--action", "login:locked", "-o", "json"}, inFolder(t, s.Data)...)...).Output()
		return err == nil && err2 == nil && json.Unmarshal(f, &failed) == nil && json.Unmarshal(l, &lock) == nil &&
			len(failed) >= 2 && len(lock) >= 1
	})
	if len(failed)+len(lock) > 12 {
		t.Errorf("%d rows of guesses", len(failed)+len(lock))
	}
	named := false
	for _, r := range append(failed, lock...) {
		named = named || r.Outcome == "app admin"
		if r.Source != "127.0.0.1" || strings.Contains(r.Outcome, "hunter2") {
			t.Errorf("a row of guesses: %+v", r)
		}
	}
	if !named {
		t.Errorf("no row names the app: %+v", failed)
	}

	if out, err := exec.Command(ft.Binary(t), append([]string{"audit", "verify"}, inFolder(t, s.Data)...)...).CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}
