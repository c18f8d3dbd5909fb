package agentd

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestStartUnit: the unit that fits the mode is found in the folder of a person and in that of a package. A state folder
// that no unit uses has none.
func TestStartUnit(t *testing.T) {
	none, rootOnly, all := t.TempDir(), t.TempDir(), t.TempDir()
	install := func(folder string, units ...string) {
		for _, unit := range units {
			if err := os.WriteFile(filepath.Join(folder, unit), []byte("[Unit]\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	install(rootOnly, rootUnit)
	install(all, unitNames()...)

	for _, tt := range []struct {
		what  string
		given signs
		unit  string
		orCap bool
	}{
		{"no unit", signs{root: true, folders: []string{none}}, "", false},
		{"only the unit of root", signs{root: true, folders: []string{rootOnly}}, "gozzard-agent", false},
		{"in the second folder", signs{root: true, folders: []string{none, rootOnly}}, "gozzard-agent", false},
		{"nothing decides", signs{root: true, folders: []string{all}}, "gozzard-agent", true},
		{"cap is enabled", signs{root: true, capChosen: true, folders: []string{all}}, "gozzard-agent-cap", false},
		{"the folder of another account", signs{root: true, capOwner: true, folders: []string{all}}, "gozzard-agent-cap", false},
		{"cap without its unit", signs{root: true, capOwner: true, folders: []string{rootOnly}}, "gozzard-agent", false},
		{"an ordinary account", signs{folders: []string{all}}, "gozzard-agent-user", false},
		{"an ordinary account without its unit", signs{folders: []string{rootOnly}}, "", false},
	} {
		if unit, orCap := startUnit(tt.given); unit != tt.unit || orCap != tt.orCap {
			t.Errorf("%s: %q %v, want %q %v", tt.what, unit, orCap, tt.unit, tt.orCap)
		}
	}

	// Without --data, commands on the host use the state folder of the units, unless the present folder has one.
	here, missing := t.TempDir(), filepath.Join(none, "missing")
	long := strings.Repeat("x", 300) // a path that cannot be looked at, as a folder of another account
	for _, tt := range [][3]string{{here, all, here}, {missing, all, all}, {missing, missing, missing}, {here, missing, here}, {long, all, all}} {
		if got := localState(tt[0], tt[1]); got != tt[2] {
			t.Errorf("of %s and %s: %s", tt[0], tt[1], got)
		}
	}

	if got, _ := StartUnit(t.Context(), t.TempDir()); got != "" {
		t.Errorf("unit %q of a state folder that no unit uses", got)
	}
}
