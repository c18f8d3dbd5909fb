//go:build linux

package faults_test

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	ft "github.com/gozzard/gozzard/test/fleettest"
)

// recordAndBackups: the record uses full sync, doctor says what is missing, and there is no backup without encryption.
func recordAndBackups(t *testing.T, f *plainFleet) {
	ft.FileOnly(t, "gozzard backup copies a file, and doctor checks it")
	line := func(out, word, what string) bool {
		return regexp.MustCompile(`(?m)^` + word + ` +` + what + ` `).MatchString(out)
	}

	out := f.gozzard(t, "doctor", "--data", f.data)
	if !line(out, "OK", "sync") || !line(out, "OK", "data") || !line(out, "WARN", "backup") {
		t.Errorf("doctor: %s", out)
	}

	dir := t.TempDir()
	file, key := filepath.Join(dir, "b.age"), filepath.Join(dir, "key")
	if out, err := f.try("backup", "create", "--data", f.data, "--to", file); err == nil {
		t.Errorf("a backup without a key: %s", out)
	}

	recipient := strings.TrimSpace(f.gozzard(t, "backup", "keygen", "--to", key))
	f.gozzard(t, "backup", "create", "--data", f.data, "--to", file, "--recipient", recipient)

	for _, name := range []string{file, key} {
		if st, err := os.Stat(name); err != nil || st.Mode().Perm() != 0o600 {
			t.Errorf("%v, %v", st, err)
		}
	}

	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}

	for _, text := range []string{"SQLite", "PRIVATE KEY", "CREATE TABLE", "signing.key"} {
		if bytes.Contains(b, []byte(text)) {
			t.Errorf("%q can be read in a backup", text)
		}
	}

	if out := f.gozzard(t, "backup", "verify", file, "--identity", key); !strings.Contains(out, "it can be restored") {
		t.Errorf("the drill: %s", out)
	}

	b[len(b)/2] ^= 1
	if err := os.WriteFile(file+".bad", b, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := f.try("backup", "verify", file+".bad", "--identity", key); err == nil {
		t.Errorf("a damaged backup: %s", out)
	}
	if out := f.gozzard(t, "doctor", "--data", f.data); !line(out, "OK", "backup") {
		t.Errorf("doctor after a backup: %s", out)
	}
}

// hostsWaitAfterARestore: a host that was revoked after the backup is a member in the restored record, so no host gets
// in before the admin has confirmed it.
func hostsWaitAfterARestore(t *testing.T, _ *plainFleet) {
	ft.FileOnly(t, "gozzard backup copies a file; TestV17RestoredDump does the same with pg_dump")
	f := startPlain(t, "127.0.0.1", "--enrol")
	f.join(t)
	dir := t.TempDir()
	file, key, data := filepath.Join(dir, "b.age"), filepath.Join(dir, "key"), filepath.Join(dir, "restored")
	unused := filepath.Join(dir, "token")
	if err := os.WriteFile(unused, []byte(f.gozzard(t, "token", "create")), 0o600); err != nil {
		t.Fatal(err)
	}

	f.gozzard(t, "backup", "create", "--data", f.data, "--to", file, "--recipient",
		strings.TrimSpace(f.gozzard(t, "backup", "keygen", "--to", key)))
	f.server.Kill(syscall.SIGTERM)
	f.gozzard(t, "backup", "restore", file, "--identity", key, "--data", data)

	if err := os.Rename(f.credentials(), filepath.Join(data, "credentials.json")); err != nil {
		t.Fatal(err)
	}

	before := f.agent.Sessions()
	f.data = data
	f.server = ft.Start(t, "restored", nil, "server", "--data", data, "--listen", f.listen, "--agent-listen",
		f.agents, "--enrol")
	ft.Until(t, time.Minute, f.server.Output, func() bool { // the port of agents opens before that of people
		out := f.server.Output()
		return strings.Contains(out, `"rule":"restored"`) && strings.Contains(out, `"server started"`)
	})

	out := f.gozzard(t, "hosts")
	if !regexp.MustCompile(`(?m)^0:127\.0\.0\.1 +no .* restored$`).MatchString(out) || f.agent.Sessions() != before {
		t.Errorf("the host is let in before the admin has looked: %s", out)
	}
	if out, err := f.try("agent", "join", "--server", f.cred.URL, "--token-file", unused, "--data",
		filepath.Join(dir, "new"), "--ip", "127.0.0.9"); err == nil {
		t.Errorf("a token of before the restore: %s", out)
	}

	helper := strings.TrimSpace(f.gozzard(t, "app", "create", "helper", "--asserts-users", "--unknown-users",
		"--role", "enroller"))
	if a := f.ask(t, "POST", "/api/v1/restore/confirm", strings.NewReader(`{"confirm":1}`), authorizationHeader,
		f.authorization("helper", helper)); a.status != 403 {
		t.Errorf("an enroller confirms a restore: HTTP %d %s", a.status, a.body)
	}

	f.gozzard(t, "hosts", "confirm-restore", "--confirm", "1")
	f.agent.Kill(syscall.SIGTERM) // the agent retries by itself too, but its pauses have grown by now
	f.agent.Again()
	ft.Until(t, time.Minute, f.agent.Output, func() bool { return f.agent.Sessions() > before })

	if out := f.gozzard(t, "audit", "list"); !strings.Contains(out, "restore:confirm:") ||
		!strings.Contains(out, " restore:2") {
		t.Errorf("the audit: %s", out)
	}
}
