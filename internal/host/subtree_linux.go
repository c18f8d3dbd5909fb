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

// agentGroup is the group inside a delegated group that an agent may be started in (DelegateSubgroup=agent). Then
// the delegated group has no members and can enable controllers.
const agentGroup = "agent"

// subtree is the part of the cgroup v2 tree that an agent may use.
type subtree struct {
	top    string
	shared bool // the agent is a member of top
}

// ownSubtree finds the part that this agent may use: the whole tree if it is writable, as for root; otherwise the
// group that this program was started in, if it was delegated to its account. A group with members cannot enable
// controllers: a service manager such as systemd could not start the agent there again.
func ownSubtree(fs procfs.FS, mount string) (subtree, error) {
	// Check that this is a cgroup v2 mount.
	var sfs unix.Statfs_t
	if err := unix.Statfs(mount, &sfs); err != nil {
		return subtree{}, fmt.Errorf("cannot use %s: %w", mount, err)
	}
	if sfs.Type != cgroup2Magic {
		return subtree{}, fmt.Errorf("%s is no cgroup v2 mount", mount)
	}

	// Use the whole tree if it is writable.
	err := unix.Access(mount, unix.W_OK)
	if err == nil {
		return subtree{top: mount}, nil
	}
	if !errors.Is(err, unix.EACCES) {
		return subtree{}, fmt.Errorf("%s cannot be written: %w", mount, err)
	}

	// Find the group of this program.
	own, err := fs.Cgroup(os.Getpid())
	if err != nil {
		return subtree{}, err
	}
	if !strings.HasPrefix(own, "/") || strings.Contains(own+"/", "/../") { // of a tree that is not mounted here
		return subtree{}, fmt.Errorf("%s cannot be written, and this program's own group %q is not in it", mount, own)
	}

	// Use it, or the group above, if it was delegated.
	dir := filepath.Join(mount, own)
	if above := filepath.Dir(dir); filepath.Base(dir) == agentGroup && isDelegated(above) {
		return subtree{top: above}, nil
	}
	if isDelegated(dir) {
		return subtree{top: dir, shared: true}, nil
	}
	return subtree{}, fmt.Errorf("group %s is not delegated to this account, as Delegate=yes in a unit does", dir)
}

// isDelegated reports whether this account may make groups in a group and move processes into them.
func isDelegated(dir string) bool {
	return unix.Access(dir, unix.W_OK|unix.X_OK) == nil &&
		unix.Access(filepath.Join(dir, "cgroup.procs"), unix.W_OK) == nil
}

// CgroupSubtree returns where an agent would put the cgroups of its processes, and whether controllers can be
// enabled there.
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

// EnterCgroup moves this program into a group of the cgroup v2 tree, given as systemd names it, so that it finds what an
// agent in that group has started. It does nothing where there is no such group: then the agent has left nothing there.
func EnterCgroup(group string) error {
	mount, err := procfs.New("/proc").Cgroup2Mount()
	if err != nil || mount == "" || !strings.HasPrefix(group, "/") || strings.Contains(group+"/", "/../") || group == "/" {
		return err
	}
	dir := filepath.Join(mount, group)
	if _, err := os.Stat(dir); err != nil {
		return nil
	}

	err = writeExisting(filepath.Join(dir, "cgroup.procs"), "0")
	if errors.Is(err, unix.EBUSY) { // it hands controllers down, so the agent was in a group below
		dir = filepath.Join(dir, agentGroup)
		if err = os.Mkdir(dir, 0o755); err == nil || errors.Is(err, os.ErrExist) {
			err = writeExisting(filepath.Join(dir, "cgroup.procs"), "0")
		}
	}
	if err != nil {
		return fmt.Errorf("cannot enter the cgroup of the agent: %w", err)
	}
	return nil
}
