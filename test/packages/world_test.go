//go:build linux

package packages_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	ft "github.com/gozzard/gozzard/test/fleettest"
)

// repository is the top of the source code.
const repository = "../.."

// inWorld runs a script of testdata as root of a world of its own: an overlay on the files of this machine, with its own
// mounts, processes and network. Nothing that it writes reaches the machine, and its end ends all its processes. The
// script finds the words of args as $1 and so on, and the files of a folder in /stage.
func inWorld(t *testing.T, script, stage string, args ...string) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("needs root for a world of its own")
	}
	testdata, err := filepath.Abs("testdata")
	if err != nil {
		t.Fatal(err)
	}

	words := append([]string{"--mount", "--pid", "--net", "--ipc", "--fork", "--kill-child", "--propagation", "private",
		"sh", filepath.Join(testdata, "world.sh"), t.TempDir(), testdata, stage, script}, args...)
	cmd := exec.CommandContext(t.Context(), "unshare", words...)
	cmd.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C", "HOME=/root"}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", script, err, out)
	}
	t.Logf("%s", out)
}

// stage installs the program of this checkout into a folder with make install.
func stage(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.Command("make", "install", "BINARY="+ft.Binary(t), "DESTDIR="+dir, "PREFIX=/usr")
	cmd.Dir = repository
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("make install: %v\n%s", err, out)
	}
	return dir
}

// TestUnitsStart: each unit starts as shipped, with the shipped settings and as its account, and root can use the
// commands that read the folder of the server.
func TestUnitsStart(t *testing.T) {
	inWorld(t, "units.sh", stage(t))
}
