//go:build linux

package fleettest_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	ft "github.com/gozzard/gozzard/test/fleettest"
)

// TestPythonClient: a script with the Python client registers, starts, watches, stops and removes processes on two hosts.
func TestPythonClient(t *testing.T) {
	t.Parallel() // it mostly waits
	s := ft.StartServer(t, "")
	for n := 1; n <= 2; n++ {
		s.StartAgentIn(t, n, t.TempDir(), "")
	}
	library, err := filepath.Abs("../../client/python")
	if err != nil {
		t.Fatal(err)
	}

	cmd := exec.Command("/usr/bin/python3", "-B", "testdata/client.py", filepath.Join(s.Data, "credentials.json"), "/tmp")
	cmd.Env = append(os.Environ(), "PYTHONPATH="+library)
	if out, err := cmd.CombinedOutput(); err != nil || string(out) != "all done\n" {
		t.Errorf("%v\n%s", err, out)
	}
}
