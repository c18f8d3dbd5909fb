package adopt

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gozzard/gozzard/internal/procfs"
)

// movePatience is how long processes may go on to start others while they are being moved.
const movePatience = 10 * time.Second

// Trees are the cgroups of this machine: one tree of version 2, several of version 1, or both.
type Trees struct {
	mounts map[string]string // by the names of the controllers in /proc/PID/cgroup; "" is version 2
	agent  map[string]string // the groups of the agent
}

// FindTrees finds the cgroups of this machine, and those of the agent.
func FindTrees(agent int) (*Trees, error) {
	p := procfs.New("/proc")
	two, err := p.Cgroup2Mount()
	if err != nil {
		return nil, err
	}
	mounts, err := p.Cgroup1Mounts()
	if err != nil {
		return nil, err
	}
	t := &Trees{mounts: map[string]string{}}
	if t.agent, err = groupsOf(agent); err != nil {
		return nil, err
	}
	for names := range t.agent {
		first, _, _ := strings.Cut(names, ",")
		switch {
		case names == "" && two != "":
			t.mounts[""] = two
		case names != "" && mounts[first] != "":
			t.mounts[names] = mounts[first]
		}
	}
	return t, nil
}

// groupsOf reads the groups of a process by the names of their controllers.
func groupsOf(pid int) (map[string]string, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	if err != nil {
		return nil, fmt.Errorf("cannot read the cgroups of pid %d: %w", pid, err)
	}
	all := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if parts := strings.SplitN(strings.TrimSpace(line), ":", 3); len(parts) == 3 {
			all[parts[1]] = parts[2]
		}
	}
	return all, nil
}

// In lists the processes in a group, as systemd names it, and in the groups below.
func (t *Trees) In(group string) (pids []int, err error) {
	if !isGroup(group) {
		return nil, nil
	}
	for _, mount := range t.mounts {
		err = filepath.WalkDir(filepath.Join(mount, group), func(path string, e fs.DirEntry, err error) error {
			switch {
			case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ENODEV):
				return nil
			case err != nil:
				return err
			case e.IsDir() || e.Name() != "cgroup.procs":
				return nil
			}
			text, err := os.ReadFile(path)
			if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENODEV) {
				return nil
			}
			for word := range strings.FieldsSeq(string(text)) {
				if pid, err := strconv.Atoi(word); err == nil && pid > 0 && !slices.Contains(pids, pid) {
					pids = append(pids, pid)
				}
			}
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("cannot read the cgroup %s: %w", group, err)
		}
	}
	return pids, nil
}

// isGroup reports whether a group is below the top of its tree, without a way out of it.
func isGroup(group string) bool {
	return strings.HasPrefix(group, "/") && group != "/" && filepath.Clean(group) == group
}

// Empty moves the processes of a group to where the agent would have started them. place gives the cgroup v2 of the agent for
// a process, "" if it has none; false leaves the process where it is. Empty returns when none is left that has a place.
func (t *Trees) Empty(group string, place func(pid int) (folder string, move bool)) error {
	for end := time.Now().Add(movePatience); ; time.Sleep(10 * time.Millisecond) {
		pids, err := t.In(group)
		if err != nil {
			return err
		}
		left := 0
		for _, pid := range pids {
			folder, move := place(pid)
			if !move {
				continue
			}
			left++
			if err := t.Move(pid, folder); err != nil {
				return err
			}
		}
		if left == 0 {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("%d processes are in the cgroup %s still, after they were moved for %v", left, group, movePatience)
		}
	}
}

// Move moves a process into a folder of cgroup v2, and in the trees of version 1 into the groups of the agent. "" means
// the group of the agent. A process that has ended is no error.
func (t *Trees) Move(pid int, folder string) error {
	now, err := groupsOf(pid)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH) {
		return nil
	} else if err != nil {
		return err
	}
	for names, mount := range t.mounts {
		to := filepath.Join(mount, t.agent[names])
		switch {
		case names == "" && folder != "":
			to = folder
		case strings.Contains(t.agent[names]+"/", "/../"):
			continue // of a tree that is not mounted here
		case now[names] == t.agent[names]:
			continue // it is there, and a container may not write to this tree
		}
		if err := enter(to, pid, to == folder); err != nil {
			return fmt.Errorf("cannot move pid %d to the cgroup %s: %w", pid, to, err)
		}
	}
	return nil
}

// enter puts a process into a group. The agent removes groups that are empty, so a group is made again until the process
// is in it.
func enter(folder string, pid int, create bool) error {
	var err error
	for range 20 {
		if create {
			if err = os.MkdirAll(folder, 0o755); err != nil {
				continue
			}
		}
		err = os.WriteFile(filepath.Join(folder, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0)
		if !create || !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ENODEV) {
			break
		}
	}
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	return err
}

// Run is a new folder for what was started for a definition, in the folder that the agent has for it.
func Run(folder string) string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails: it ends the program instead
	return filepath.Join(folder, "keep-"+hex.EncodeToString(b[:]))
}
