//go:build linux

package soak_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gozzard/gozzard/internal/procfs"
	ft "github.com/gozzard/gozzard/test/fleettest"
)

// footprint is what a program occupies.
type footprint struct {
	program     *ft.Program
	name        string
	descriptors int
}

// measure records the descriptors of server and agents before there is any work.
func (s *soak) measure() {
	s.footprints = []footprint{{s.server.Program, "server", s.server.Descriptors()}}
	for _, a := range s.agents {
		s.footprints = append(s.footprints, footprint{a.Program, fmt.Sprintf("agent %d", a.host), a.Descriptors()})
	}
}

// judgeLeaks stops and unregisters everything, and looks for what is left.
func (s *soak) judgeLeaks() {
	groups := s.groupsOfAgents()
	s.overAt = time.Now()
	for _, space := range []string{ownSpace, kitSpace, jobSpace} {
		for _, act := range []string{"stop", "kill"} {
			s.endAll(space, act)
		}
	}
	for _, d := range s.all {
		if d.process != "" {
			s.undefine(d)
		}
	}

	// Processes.
	s.await(15*time.Second, func() bool { return len(s.strays())+len(s.others()) == 0 })
	for _, pid := range s.others() {
		args, _ := procfs.New("/proc").Args(pid, 200)
		s.violate(colLeft, nil, time.Now(), fmt.Sprintf("pid %d: %q", pid, args))
	}
	for _, in := range s.strays() {
		s.violate(colLeft, s.daemonByID(in.Name), time.Now(), fmt.Sprintf("%s %d of %s lives on", in.Role, in.PID, in.Name))
	}

	// Groups, zombies and descriptors.
	var left []string
	s.await(time.Minute, func() bool { left = membersOf(groups); return len(left) == 0 }) // the agent keeps groups for a while
	for _, g := range left {
		s.violate(colGroups, nil, time.Now(), g)
	}
	var zombies []string
	s.await(15*time.Second, func() bool { zombies = s.zombies(); return len(zombies) == 0 })
	for _, z := range zombies {
		s.violate(colZombies, nil, time.Now(), z)
	}
	s.native.Close()
	s.server.Client.CloseIdleConnections()
	for _, f := range s.footprints {
		n := 0
		if !s.await(20*time.Second, func() bool { n = f.program.Descriptors(); return n <= f.descriptors+10 }) {
			s.violate(colOpen, nil, time.Now(), fmt.Sprintf("%s has %d descriptors, %d before", f.name, n, f.descriptors))
		}
	}
}

// endAll sends stop or kill to all daemons of a namespace.
func (s *soak) endAll(space, act string) {
	var list []*daemon
	for _, d := range s.all {
		if d.space == space && (d.space != jobSpace || act == "stop") {
			list = append(list, d)
		}
	}
	door := "GSE multi"
	if space == jobSpace {
		door = "Job"
	}
	for _, d := range list {
		if d.nopid {
			s.send(&request{door: "GSE", action: act, daemons: []*daemon{d}}, nil)
		}
	}
	list = slices.DeleteFunc(list, func(d *daemon) bool { return d.nopid })
	for part := range slices.Chunk(list, 40) {
		s.send(&request{door: door, action: act, daemons: part}, nil)
	}
}

func (s *soak) daemonByID(id string) *daemon {
	i := slices.IndexFunc(s.all, func(d *daemon) bool { return d.id == id })
	if i < 0 {
		return nil
	}
	return s.all[i]
}

// strays are the live processes of all daemons.
func (s *soak) strays() (list []instance) {
	for _, d := range s.all {
		list = append(list, s.watch.live(d.id, "")...)
	}
	return list
}

// groupsOfAgents finds the groups of the agents by those of their daemons.
func (s *soak) groupsOfAgents() (dirs []string) {
	proc := procfs.New("/proc")
	mount, err := proc.Cgroup2Mount()
	if err != nil {
		return nil
	}
	for _, in := range s.strays() {
		path, err := proc.Cgroup(in.PID)
		i := strings.Index(path, "/gozzard/")
		if err != nil || i < 0 {
			continue
		}
		instance, _, _ := strings.Cut(path[i+len("/gozzard/"):], "/")
		dir := filepath.Join(mount, path[:i], "gozzard", instance)
		if !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// membersOf lists what is inside of the groups of agents.
func membersOf(dirs []string) (left []string) {
	for _, dir := range dirs {
		list, _ := os.ReadDir(dir)
		for _, e := range list {
			if e.IsDir() {
				left = append(left, filepath.Join(dir, e.Name()))
			}
		}
	}
	return left
}

// zombies lists children of server and agents that have ended and were not collected.
func (s *soak) zombies() (list []string) {
	proc := procfs.New("/proc")
	pids, _ := proc.PIDs(nil)
	for _, pid := range pids {
		st, err := proc.Stat(pid)
		if err != nil || !st.Dead() {
			continue
		}
		for _, f := range s.footprints {
			if st.PPID == f.program.PID() {
				list = append(list, fmt.Sprintf("pid %d (%s) of %s", pid, st.Comm(), f.name))
			}
		}
	}
	return list
}

// others lists live processes of this run that have not recorded themselves: their program, folder or arguments are
// below the folder of the daemons.
func (s *soak) others() (pids []int) {
	proc := procfs.New("/proc")
	all, _ := proc.PIDs(nil)
	for _, pid := range all {
		st, err := proc.Stat(pid)
		if err != nil || st.Dead() || pid == os.Getpid() {
			continue
		}
		exe, _ := proc.Exe(pid)
		folder, _ := os.Readlink(fmt.Sprintf("/proc/%d/cwd", pid))
		args, _ := proc.Args(pid, 4096)
		text := exe + "\x00" + folder + "/\x00" + strings.Join(args, "\x00")
		if strings.Contains(text, s.root+"/") && !slices.Contains(slices.Collect(maps.Values(s.bystanders)), pid) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// endStrays kills what a failed run has left, by pidfd, and removes its groups.
func (s *soak) endStrays() {
	groups := s.groupsOfAgents()
	for range 40 {
		pids := s.others()
		for _, pid := range pids {
			fd, err := unix.PidfdOpen(pid, 0)
			if err != nil {
				continue
			}
			if slices.Contains(s.others(), pid) { // the pid may have been used again before it was held
				_ = unix.PidfdSendSignal(fd, syscall.SIGKILL, nil, 0)
			}
			_ = unix.Close(fd)
		}
		if len(pids) == 0 {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	for _, g := range groups {
		removeGroup(g)
	}
}

// removeGroup removes an empty group and the groups in it.
func removeGroup(dir string) {
	list, _ := os.ReadDir(dir)
	for _, e := range list {
		if e.IsDir() {
			removeGroup(filepath.Join(dir, e.Name()))
		}
	}
	_ = os.Remove(dir)
}
