package host

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/gozzard/gozzard/internal/procfs"
)

// agentGroup is the group inside of a delegated one that an agent may be started in (DelegateSubgroup=agent), so
// that the delegated one has no member of its own and can hand controllers down.
const agentGroup = "agent"

// subtree is what an agent may arrange of the cgroup v2 tree.
type subtree struct {
	top    string
	shared bool // the agent is in top itself
}

// ownSubtree finds it: the whole tree where that may be written, as by root; else the group that this program was
// started in, when it was delegated to its account. Controllers are not handed down from a group with members:
// whoever starts the agent anew, as systemd does, could not put it there any more.
func ownSubtree(fs procfs.FS, mount string) (subtree, error) {
	var sfs unix.Statfs_t
	if err := unix.Statfs(mount, &sfs); err != nil {
		return subtree{}, fmt.Errorf("cannot use %s: %w", mount, err)
	}
	if sfs.Type != cgroup2Magic {
		return subtree{}, fmt.Errorf("%s is no cgroup v2 mount", mount)
	}

	err := unix.Access(mount, unix.W_OK)
	if err == nil {
		return subtree{top: mount}, nil
	}
	if !errors.Is(err, unix.EACCES) {
		return subtree{}, fmt.Errorf("%s cannot be written: %w", mount, err)
	}

	own, err := fs.Cgroup(os.Getpid())
	if err != nil {
		return subtree{}, err
	}
	if !strings.HasPrefix(own, "/") || strings.Contains(own+"/", "/../") { // of a tree that is not mounted here
		return subtree{}, fmt.Errorf("%s cannot be written, and this program's own group %q is not in it", mount, own)
	}

	dir := filepath.Join(mount, own)
	if above := filepath.Dir(dir); filepath.Base(dir) == agentGroup && isDelegated(above) {
		return subtree{top: above}, nil
	}
	if isDelegated(dir) {
		return subtree{top: dir, shared: true}, nil
	}

	return subtree{}, fmt.Errorf("group %s is not delegated to this account, as Delegate=yes in a unit does", dir)
}

// isDelegated: whoever may make groups in one and put processes into it may arrange what is below.
func isDelegated(dir string) bool {
	return unix.Access(dir, unix.W_OK|unix.X_OK) == nil &&
		unix.Access(filepath.Join(dir, "cgroup.procs"), unix.W_OK) == nil
}

// CgroupSubtree says where an agent would put the cgroups of its processes, and whether controllers can be handed
// down to them there.
func CgroupSubtree() (top string, controllers bool, err error) {
	fs := procfs.New("/proc")
	mount, err := fs.Cgroup2Mount()
	if err != nil {
		return "", false, err
	}
	if mount == "" {
		return "", false, errors.New("no cgroup v2 is mounted")
	}
	p, err := ownSubtree(fs, mount)
	return p.top, !p.shared, err
}
