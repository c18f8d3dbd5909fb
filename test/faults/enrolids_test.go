//go:build linux

package faults_test

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestTS15IdsOfNewHosts: a host cannot join under the id of another one in other letters, or under a word. The refusal
// says what to do, the token is not used up by it, and the same host joins with another id. An enrolled host joins again.
func TestTS15IdsOfNewHosts(t *testing.T) {
	t.Parallel() // it mostly waits
	f := startPlain(t, "127.0.0.1", "--enrol")
	token := func(args ...string) string {
		t.Helper()
		file := filepath.Join(t.TempDir(), "token")
		text := f.gozzard(t, append([]string{"token", "create"}, args...)...)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}

	next := 0
	folder := func(id string) string {
		t.Helper()
		dir := t.TempDir()
		if err := os.Chmod(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		line := []byte(id + "\n")
		sum := fmt.Sprintf("%x  agent-id\n", sha256.Sum256(line))
		for name, b := range map[string][]byte{"agent-id": line, "agent-id.sha256": []byte(sum)} {
			if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return dir
	}
	join := func(dir, token string) error {
		next++
		_, err := f.try("agent", "join", "--server", f.cred.URL, "--token-file", token, "--data", dir, "--ip",
			fmt.Sprint("127.0.1.", next))
		return err
	}

	// The first host has an id that its owner chose.
	first := folder("Web-1")
	if err := join(first, token()); err != nil {
		t.Fatal(err)
	}

	// Others want the same one in other letters, or a word.
	for id, why := range map[string]string{"web-1": "only by capital and small letters", "server": "is a reserved word",
		"ALL": "is a reserved word"} {
		dir, once := folder(id), token()
		if err := join(dir, once); err == nil || !strings.Contains(err.Error(), why) ||
			!strings.Contains(err.Error(), "sha256sum agent-id > agent-id.sha256") {
			t.Errorf("%s: %v", id, err)
			continue
		}
		for _, name := range []string{"agent-id", "agent-id.sha256"} {
			if err := os.Remove(filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		}
		if err := join(dir, once); err != nil {
			t.Errorf("after %s: %v", id, err)
		}
	}

	// A removed host keeps its id, and an enrolled one joins again.
	gone := folder("Old-1")
	if err := join(gone, token()); err != nil {
		t.Fatal(err)
	}
	f.gozzard(t, "hosts", "remove", "Old-1")
	if err := join(folder("old-1"), token()); err == nil {
		t.Error("a host has the id of a removed one in other letters")
	}
	if err := os.Remove(filepath.Join(first, "server.key")); err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	if err := join(first, token("--agent", "Web-1")); err != nil {
		t.Errorf("an enrolled host cannot join again: %v", err)
	}
}
