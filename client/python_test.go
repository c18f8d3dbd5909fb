package client_test

import (
	"os/exec"
	"testing"
)

// TestPython runs the tests of the Python client: every request of it is one that the API describes.
func TestPython(t *testing.T) {
	python := "/usr/bin/python3"
	if _, err := exec.LookPath(python); err != nil {
		t.Skip("needs Python")
	}
	cmd := exec.Command(python, "-B", "-m", "unittest", "discover", "-s", "tests")
	cmd.Dir = "python"
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
