//go:build linux

package compat_test

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// runDir is the folder that the definitions in the fixtures name.
const runDir = "/tmp/gozzard-compat/run"

// eachVersion runs a test with the fixtures of every version.
func eachVersion(t *testing.T, test func(t *testing.T, version string)) {
	t.Helper()
	folders, err := filepath.Glob("testdata/v*")
	if err != nil || len(folders) == 0 {
		t.Fatalf("no fixtures: %v", err)
	}
	for _, folder := range folders {
		t.Run(filepath.Base(folder), func(t *testing.T) { test(t, filepath.Base(folder)) })
	}
}

// unpack copies a fixture into a new folder and makes the folder of its processes.
func unpack(t *testing.T, version, name string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	f, err := os.Open(filepath.Join("testdata", version, name+".tar.gz"))
	if err != nil {
		t.Fatal(err)
	}

	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}

	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = unpackOne(filepath.Join(dir, filepath.FromSlash(h.Name)), h, r)
		}
		if err != nil {
			t.Fatal(err)
		}
	}

	allowOwnAccount(t, dir)
	makeRunDir(t)
	return dir
}

func unpackOne(path string, h *tar.Header, r io.Reader) error {
	mode := os.FileMode(h.Mode).Perm()

	switch h.Typeflag {
	case tar.TypeDir:
		if err := os.MkdirAll(path, 0o700); err != nil {
			return err
		}
	case tar.TypeReg:
		b, err := io.ReadAll(r)
		if err != nil {
			return err
		}
		if err := os.WriteFile(path, b, 0o600); err != nil {
			return err
		}
	default:
		return fmt.Errorf("%s: unexpected kind %q", h.Name, h.Typeflag)
	}

	return os.Chmod(path, mode) // whatever the umask is
}

// allowOwnAccount adds the account of the test to the policies of the hosts. The fixtures were made by root. An agent
// of another account needs its name there to run processes whose definitions name no account.
func allowOwnAccount(t *testing.T, dir string) {
	t.Helper()

	if os.Getuid() == 0 {
		return
	}

	own, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}

	policies, err := filepath.Glob(filepath.Join(dir, "*", "policy.yaml"))
	if err != nil {
		t.Fatal(err)
	}

	for _, path := range policies {
		text := strings.Replace(read(t, path), `users: ["*"]`, `users: ["*", "`+own.Username+`"]`, 1)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// makeRunDir makes the folder of the processes, for one test at a time on this machine. Afterwards it kills the
// processes and removes the folder.
func makeRunDir(t *testing.T) {
	t.Helper()
	lock := lockMachine(t)
	parent := filepath.Dir(runDir)
	killProcesses(t) // an agent would find processes that a killed test has left

	if err := os.RemoveAll(parent); err != nil {
		t.Fatalf("cannot remove what an earlier run has left: %v", err)
	}
	if err := os.MkdirAll(runDir, 0o755); err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() {
		killProcesses(t)
		_ = os.RemoveAll(parent)
		_ = lock.Close()
	})
}

// killProcesses kills every process that works in runDir: all processes of the fixtures do, and nothing else does.
func killProcesses(t *testing.T) {
	t.Helper()
	folders, err := filepath.Glob("/proc/[0-9]*/cwd")
	if err != nil {
		t.Fatal(err)
	}

	for _, f := range folders {
		folder, err := os.Readlink(f)
		if err != nil || strings.TrimSuffix(folder, " (deleted)") != runDir {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(f))); err == nil {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

// lockMachine waits until no other run of this test uses the folder. The kernel gives the name back when a test
// process ends, however it ends.
func lockMachine(t *testing.T) io.Closer {
	t.Helper()
	for end := time.Now().Add(5 * time.Minute); ; time.Sleep(200 * time.Millisecond) {
		l, err := net.Listen("unix", "@gozzard-compat")
		if err == nil {
			return l
		}
		if !errors.Is(err, syscall.EADDRINUSE) || time.Now().After(end) {
			t.Fatalf("cannot lock %s: %v", runDir, err)
		}
	}
}

// pids are the processes that have a pid file and are alive, by the name of that file.
func pids(t *testing.T) map[string]int {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(runDir, "*.pid"))
	if err != nil {
		t.Fatal(err)
	}

	out := map[string]int{}
	for _, f := range files {
		name := strings.TrimSuffix(filepath.Base(f), ".pid")
		if pid := pidOf(name); pid > 0 {
			out[name] = pid
		}
	}

	return out
}

// pidOf is the pid of a live process by its pid file, 0 if there is none. Every process of the fixtures is a sleep.
func pidOf(name string) int {
	b, err := os.ReadFile(filepath.Join(runDir, name+".pid"))
	if err != nil {
		return 0
	}

	pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil || pid <= 1 {
		return 0
	}

	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil || !strings.Contains(string(stat), "(sleep) ") || strings.Contains(string(stat), "(sleep) Z") {
		return 0
	}

	return pid
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func lines(t *testing.T, path string) []string {
	t.Helper()
	return slices.Collect(strings.FieldsSeq(read(t, path)))
}
