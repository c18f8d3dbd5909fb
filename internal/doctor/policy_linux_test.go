package doctor

import (
	"os"
	"path/filepath"
	"slices"
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
		level := OK
		if allow { // commands of root can change a policy in the state folder
			level = Warn
			check("", level, "as root, run: install -D -m 0644 "+path+" /etc/gozzard/policy.yaml")
		}
		check("", level, path+words)
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

// TestDoctorReadsThePolicyOfARelativePath: the doctor reads a policy that is given by a relative path. It once reported
// that such a policy does not exist and that root is not allowed.
func TestDoctorReadsThePolicyOfARelativePath(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "agent", policy.FileName)
	if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("allow_root: true\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)

	for _, named := range []string{"", filepath.Join("agent", policy.FileName)} {
		findings, err := Host(HostOptions{Data: "agent", Policy: named, Version: "test"})
		if err != nil {
			t.Fatal(err)
		}
		at := slices.IndexFunc(findings, func(f Finding) bool { return f.Check == "policy" })
		if f := findings[at]; f.Level != Warn || !strings.Contains(f.Text, path+": root allowed; ") {
			t.Errorf("--policy %q: %+v", named, f)
		}
	}
}
