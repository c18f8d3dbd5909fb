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

// Account is an account of this machine. It need not be in /etc/passwd.
type Account struct {
	UID, GID uint32
	Groups   []uint32
}

// Gozzard runs the program as an account. The program gets an open folder that the account itself need not be able to
// reach, see Handed. Gozzard returns the output and the exit code.
func (a Account) Gozzard(t testing.TB, dir string, args ...string) (out string, code int) {
	t.Helper()
	program, err := os.Open(Binary(t)) // as an open file, because other accounts cannot enter its folder
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

// Handed is the path by which a program that Account.Gozzard runs reaches a file of the folder that it got.
func Handed(name string) string { return filepath.Join("/proc/self/fd/4", name) }
