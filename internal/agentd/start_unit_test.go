package agentd

import (
	"os"
	"path/filepath"
	"testing"
)

// TestStartUnit: the unit of the agent is found in the folder of a person and in that of a package. A state folder that
// no unit uses has none.
func TestStartUnit(t *testing.T) {
	own, packaged := t.TempDir(), t.TempDir()
	if got := firstUnit(own, packaged); got != "" {
		t.Errorf("unit %q of a host that has none", got)
	}

	for _, folder := range []string{packaged, own} {
		if err := os.WriteFile(filepath.Join(folder, rootUnit), []byte("[Unit]\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := firstUnit(own, packaged); got != "gozzard-agent" {
			t.Errorf("unit %q", got)
		}
	}

	if got := StartUnit(t.TempDir()); got != "" {
		t.Errorf("unit %q of a state folder that no unit uses", got)
	}
}
