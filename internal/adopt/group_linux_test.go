package adopt

import (
	"os"
	"path/filepath"
	"testing"
)

// TestMoveWhereItIs: a tree in which a process is in the group of the agent already is left alone: in a container it may be
// read-only. In another tree the process is moved, and one that has ended is no error.
func TestMoveWhereItIs(t *testing.T) {
	groups, err := groupsOf(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	trees := &Trees{mounts: map[string]string{}, agent: groups}
	for names := range groups {
		trees.mounts[names] = filepath.Join(t.TempDir(), "none") // a write would fail
	}
	if err := trees.Move(os.Getpid(), ""); err != nil {
		t.Errorf("it is there: %v", err)
	}

	for names := range groups {
		other := &Trees{mounts: trees.mounts, agent: map[string]string{names: "/another"}}
		other.mounts = map[string]string{names: trees.mounts[names]}
		if err := other.Move(os.Getpid(), ""); err == nil {
			t.Errorf("tree %q: it was not moved", names)
		}
		if err := other.Move(1<<22+1, ""); err != nil {
			t.Errorf("a process that has ended: %v", err)
		}
	}
}
