//go:build linux

package fleettest

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// Account is somebody of this machine, who need not be in its files.
type Account struct {
	UID, GID uint32
	Groups   []uint32
}

// Gozzard runs the program as an account and hands it a folder that the account need not be able to reach, see
// Handed. It returns what was printed and the exit code.
func (a Account) Gozzard(t testing.TB, dir string, args ...string) (out string, code int) {
	t.Helper()
	program, err := os.Open(Binary(t)) // handed on: the folder that it lies in is closed to others
	if err != nil {
		t.Fatal(err)
	}

	defer program.Close()
	folder, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}

	defer folder.Close()
	cmd := exec.Command("/proc/self/fd/3", args...)
	cmd.ExtraFiles = []*os.File{program, folder}
	cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0")
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: a.UID, Gid: a.GID, Groups: a.Groups}}
	b, err := cmd.CombinedOutput()
	var ended *exec.ExitError
	if err != nil && !errors.As(err, &ended) {
		t.Fatalf("gozzard %q as uid %d: %v", args, a.UID, err)
	}

	return string(b), cmd.ProcessState.ExitCode()
}

// Handed is the path by which a program that Account.Gozzard runs reaches a file of the folder it was handed.
func Handed(name string) string { return filepath.Join("/proc/self/fd/4", name) }
