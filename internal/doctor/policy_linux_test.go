package doctor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/host"
	"github.com/gozzard/gozzard/internal/policy"
)

var asRoot = host.Privileges{Mode: gozzard.ModeRoot, Account: "root"}

func TestDoctorReadsThePolicy(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, policy.FileName)
	check := func(file string, level Level, words string) {
		t.Helper()
		if got := checkPolicy(dir, file, asRoot); got.Level != level || !strings.Contains(got.Text, words) {
			t.Errorf("%+v, want %s with %q", got, level, words)
		}
	}

	check("", OK, "will be made: root refused unless")
	check(filepath.Join(dir, "named.yaml"), Fail, "no such file") // one that is named is not made

	for allow, words := range map[bool]string{false: ": root refused; ", true: ": root allowed; "} {
		if _, err := policy.Create(path, policy.Choice{AllowRoot: allow}); err != nil {
			t.Fatal(err)
		}
		check("", OK, path+words)
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}

	if err := os.WriteFile(path, []byte("allow_root: yes\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	check("", Fail, "line 1: allow_root must be true or false")

	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o666); err != nil {
		t.Fatal(err)
	}
	check("", Fail, "is writable by others (mode 0666)")
}
