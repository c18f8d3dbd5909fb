//go:build linux

package fleettest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

var build = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "gozzard-bin-")
	if err != nil {
		return "", err
	}
	out := filepath.Join(dir, "gozzard")
	root, err := moduleRoot()
	if err != nil {
		return "", err
	}
	args := []string{"build", "-tags=failpoint", "-o", out}
	env := append(os.Environ(), "CGO_ENABLED=0")
	if raceBuild {
		args = append(args, "-race")
		env = append(os.Environ(), "CGO_ENABLED=1")
	}
	cmd := exec.Command("go", append(args, "./cmd/gozzard")...)
	cmd.Dir, cmd.Env = root, env
	if b, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, b)
	}
	return out, nil
})

// Binary builds the program once per test process. GOZZARD_BINARY names one that is built already.
func Binary(t testing.TB) string {
	t.Helper()
	if p := os.Getenv("GOZZARD_BINARY"); p != "" {
		return p
	}
	p, err := build()
	if err != nil {
		t.Fatalf("cannot build the program: %v", err)
	}
	return p
}

// Main runs tests and removes the built program afterwards; for TestMain.
func Main(m *testing.M) {
	code := m.Run()
	if os.Getenv("GOZZARD_BINARY") == "" {
		if p, err := build(); err == nil {
			_ = os.RemoveAll(filepath.Dir(p))
		}
	}
	os.Exit(code)
}

func moduleRoot() (string, error) {
	b, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("go env GOMOD: %w", err)
	}
	return filepath.Dir(strings.TrimSpace(string(b))), nil
}
