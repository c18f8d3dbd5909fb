package doctor

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/host"
)

func words(all []Finding, what string) (text string) {
	for _, f := range all {
		if f.Check == what {
			text += string(f.Level) + " " + f.Text + "\n"
		}
	}
	return text
}

func TestDoctorLooksAtTheStateFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "agent")
	if got := words(checkState(filepath.Join(dir, "below")), "state"); !strings.HasPrefix(got, "OK") ||
		!strings.Contains(got, "will be made") {
		t.Errorf("not there yet: %s", got)
	}

	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if got := words(checkState(dir), "state"); !strings.HasPrefix(got, "OK") {
		t.Errorf("good: %s", got)
	}

	journal := filepath.Join(dir, "journal")
	newer, err := os.ReadFile(filepath.Join("..", "..", "internal", "journal", "testdata", "newer.journal"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(journal, newer, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := words(checkState(dir), "journal"); !strings.HasPrefix(got, "FAIL") ||
		!strings.Contains(got, "newer agent") {
		t.Errorf("newer journal: %s", got)
	}

	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if got := words(checkState(dir), "state"); !strings.HasPrefix(got, "FAIL") || !strings.Contains(got, "chmod 700") {
		t.Errorf("open to others: %s", got)
	}
	if got := words(checkState(journal), "state"); !strings.HasPrefix(got, "FAIL") {
		t.Errorf("a file: %s", got)
	}

	// Of another account: how to check it is said.
	for uid, want := range map[int]string{1: "runuser -u daemon -- gozzard agent doctor", 123456: "belongs to uid 123456"} {
		if os.Geteuid() != 0 {
			break // only root gives a folder to another account
		}
		if err := errors.Join(os.Chmod(dir, 0o700), os.Chown(dir, uid, uid)); err != nil {
			t.Fatal(err)
		}
		if got := words(checkState(dir), "state"); !strings.HasPrefix(got, "FAIL") || !strings.Contains(got, want) {
			t.Errorf("of uid %d: %s", uid, got)
		}
	}
}

func TestDoctorKnowsPowersAndTime(t *testing.T) {
	for mode, want := range map[gozzard.AgentMode]string{
		gozzard.ModeRoot: "OK root: commands run as any account",
		gozzard.ModeCap:  "OK cap, as svc: commands run as any account that the policy allows",
		gozzard.ModeUser: "WARN user, as svc: commands run as this account only",
	} {
		got := checkMode(host.Privileges{Mode: mode, Account: "svc", UID: 990})
		if text := string(got.Level) + " " + got.Text; got.Check != "mode" || !strings.HasPrefix(text, want) {
			t.Errorf("%s: %s", mode, text)
		}
	}

	if got := checkClock(time.Unix(0, 0)); got.Level != Fail {
		t.Errorf("1970: %+v", got)
	}
}

func TestDoctor(t *testing.T) {
	all := examine(filepath.Join(t.TempDir(), "agent"), host.Privileges{Mode: gozzard.ModeRoot})
	for _, what := range []string{"pidfd", "mode", "cgroup", "shell", "proc", "open files", "clock", "state", "space"} {
		if words(all, what) == "" {
			t.Errorf("%s was not looked at", what)
		}
	}
}
