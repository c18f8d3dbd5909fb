package agentd

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/host"
	"github.com/gozzard/gozzard/internal/policy"
)

var asRoot = host.Privileges{Mode: gozzard.ModeRoot, Account: "root"}

// The choice is made once, when a host is set up, and belongs to its owner from then on.
func TestPolicyIsWrittenOnce(t *testing.T) {
	var out strings.Builder
	log := slog.New(slog.NewTextHandler(&out, nil))
	for _, allow := range []bool{false, true} {
		dir := t.TempDir()
		path := filepath.Join(dir, policy.FileName)
		if _, err := (PolicyOptions{AllowRoot: allow}).open(dir, asRoot, log); err != nil {
			t.Fatal(err)
		}
		fi, err := os.Stat(path)
		if err != nil || fi.Mode().Perm() != 0o600 {
			t.Fatalf("%v %v", fi, err)
		}
		out.Reset()
		if _, err := (PolicyOptions{AllowRoot: true}).open(dir, asRoot, log); err != nil {
			t.Fatal(err)
		}
		if p, err := policy.Load(path, policy.TrustOwn); err != nil || p.AllowRoot != allow {
			t.Errorf("a later start has changed it: %+v %v", p, err)
		}
		if said := strings.Contains(out.String(), "changes no policy that exists"); said == allow {
			t.Errorf("allow %v: %s", allow, out.String())
		}
	}
}

func TestPolicyThatIsNotGood(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, policy.FileName)
	log := slog.New(slog.DiscardHandler)
	fails := func(file, words string) {
		t.Helper()
		if _, err := (PolicyOptions{File: file}).open(dir, asRoot, log); err == nil ||
			!strings.Contains(err.Error(), words) {
			t.Errorf("start: %v", err)
		}
	}

	fails(filepath.Join(dir, "named.yaml"), "no such file") // one that is named is not made

	if err := os.WriteFile(path, []byte("allow_root: yes\n"), 0o600); err != nil {
		t.Fatal(err)
	}

	fails("", "line 1: allow_root must be true or false")

	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o666); err != nil {
		t.Fatal(err)
	}

	fails("", "is writable by others (mode 0666)")
}

func TestAgentRefusesAFolderThatOthersCanWrite(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "agent")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := (PolicyOptions{}).checkOwn(dir, gozzard.ModeRoot); err != nil {
		t.Errorf("good: %v", err)
	}
	if err := os.Chmod(dir, 0o770); err != nil {
		t.Fatal(err)
	}
	if err := (PolicyOptions{}).checkOwn(dir, gozzard.ModeRoot); err == nil ||
		!strings.Contains(err.Error(), "agent is writable by others (mode 0770)") {
		t.Errorf("of a group: %v", err)
	}
}
