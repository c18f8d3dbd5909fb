//go:build linux

package soak_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/internal/procfs"
	ft "github.com/gozzard/gozzard/test/fleettest"
)

// footprint is what a program occupies.
type footprint struct {
	program     *ft.Program
	name        string
	descriptors int
}

var footprints []footprint

// measure records the descriptors of server and agents before there is any work.
func (s *soak) measure() {
	footprints = []footprint{{s.server.Program, "server", s.server.Descriptors()}}
	for _, a := range s.agents {
		footprints = append(footprints, footprint{a.Program, fmt.Sprintf("agent %d", a.host), a.Descriptors()})
	}
}

// settle waits until all programs are back and nothing changes any more.
func (s *soak) settle() {
	s.server.AwaitReady()
	for _, a := range s.agents {
		s.server.AwaitOnline(s.t, a.host)
	}
	s.await(90*time.Second, func() bool { return len(s.unsettled()) == 0 })
	time.Sleep(2 * time.Second)
}

// unsettled lists what differs between the status of the fleet and the processes.
func (s *soak) unsettled() (list []problem) {
	rows := s.statuses()
	for _, d := range s.all {
		if p := s.compare(d, rows[d]); p.column != "" {
			list = append(list, p)
		}
	}
	return list
}

// problem is a difference between the status of a daemon and its processes.
type problem struct {
	d            *daemon
	column, text string
}

// The columns of the final state.
const (
	colNotAlive = "supervised but not alive"
	colAlive    = "stopped but alive"
	colPID      = "wrong pid in status"
	colFlag     = "supervision differs from verdicts"
)

// compare compares the status of a daemon with its processes. No status means that it is not registered.
func (s *soak) compare(d *daemon, row *client.Process) problem {
	live := s.watch.live(d.id, "main")
	var pids []int
	for _, in := range live {
		pids = append(pids, in.PID)
	}
	if row == nil || d.mortal {
		return problem{}
	}
	text := fmt.Sprintf("status: %s, wanted %s, supervised %v, pid %d, message %q; live main processes: %v", row.State, row.Wanted,
		row.Hosted, row.PID, row.Message, pids)
	switch {
	case row.Hosted && len(live) == 0:
		return problem{d, colNotAlive, text}
	case row.State == "running" && !slices.Contains(pids, int(row.PID)):
		return problem{d, colPID, text}
	case row.State != "running" && len(live) > 0:
		return problem{d, colPID, text}
	case row.Hosted && row.State != "running":
		return problem{d, colNotAlive, text}
	}
	return problem{}
}

// statuses asks our own API for all processes.
func (s *soak) statuses() map[*daemon]*client.Process {
	rows := map[*daemon]*client.Process{}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for p, err := range s.native.AllProcesses(ctx, client.ProcessQuery{}) {
		if err != nil {
			s.t.Errorf("cannot list processes: %v", err)
			return rows
		}
		if p.State == "unregistered" {
			continue
		}
		for _, d := range s.all {
			if d.space == p.Namespace && d.process == p.Name && address(d.host) == p.IP {
				rows[d] = &p
			}
		}
	}
	return rows
}

// judgeFinalState compares the final state with the wishes: status, processes, and the fold of all verdicts.
func (s *soak) judgeFinalState() {
	s.attempts, s.tasks = s.readRecord() // also finds the names of Job's processes
	for _, p := range s.unsettled() {
		s.violate(p.column, p.d, time.Now(), p.text)
	}

	rows := s.statuses()
	wishes := s.fold()
	for _, d := range s.all {
		w, row := wishes[d], rows[d]
		if row == nil || w == nil {
			continue
		}
		if w.known && w.hosted != row.Hosted {
			s.violate(colFlag, d, time.Now(), fmt.Sprintf("by the verdicts supervised is %v, the status says %v", w.hosted, row.Hosted))
		}
		if live := s.watch.live(d.id, "main"); w.stopped && len(live) > 0 {
			s.violate(colAlive, d, time.Now(), fmt.Sprintf("it was stopped and %d main processes live, pid %d", len(live), live[0].PID))
		}
	}
}

// wish is the wanted state of a daemon after all verdicts.
type wish struct {
	known   bool // hosted follows from the verdicts
	hosted  bool
	stopped bool // it was stopped, and nothing later may have started it
}

// fold goes through the verdicts of each daemon in the order of generations.
func (s *soak) fold() map[*daemon]*wish {
	wishes := map[*daemon]*wish{}
	for _, a := range s.attempts {
		w := wishes[a.daemon]
		if w == nil {
			w = &wish{known: true}
			wishes[a.daemon] = w
		}
		w.add(a)
	}
	return wishes
}

// add takes one verdict. An operation whose effect is not known leaves the wish open.
func (w *wish) add(a *attempt) {
	ups, downs := slices.Contains([]string{"start", "restart", "host"}, a.action), slices.Contains([]string{"stop", "kill"}, a.action)
	switch verdictOf(a) {
	case "ok":
		switch {
		case ups:
			*w = wish{known: true, hosted: true}
		case downs:
			*w = wish{known: true, stopped: true}
		case a.action == "unhost":
			w.known, w.hosted = true, false
		case a.action == "unregister":
			*w = wish{known: true}
		}
	case "already_running": // on our own doors it is supervised from then on
		w.known, w.stopped = false, false
	case "not_running":
		// nothing was done, and supervision is as before
	case "interrupted":
		w.known, w.stopped = false, false
	default:
		if ups && !strings.HasPrefix(verdictOf(a), "not executed") {
			w.stopped = false
		}
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
		s.violate("processes left in the end", nil, time.Now(), fmt.Sprintf("pid %d: %q", pid, args))
	}
	for _, in := range s.strays() {
		s.violate("processes left in the end", s.daemonByID(in.Name), time.Now(), fmt.Sprintf("%s %d of %s lives on", in.Role, in.PID, in.Name))
	}

	// Groups, zombies and descriptors.
	var left []string
	s.await(15*time.Second, func() bool { left = membersOf(groups); return len(left) == 0 })
	for _, g := range left {
		s.violate("cgroups left", nil, time.Now(), g)
	}
	var zombies []string
	s.await(15*time.Second, func() bool { zombies = s.zombies(); return len(zombies) == 0 })
	for _, z := range zombies {
		s.violate("zombies", nil, time.Now(), z)
	}
	s.native.Close()
	s.server.Client.CloseIdleConnections()
	for _, f := range footprints {
		n := 0
		if !s.await(20*time.Second, func() bool { n = f.program.Descriptors(); return n <= f.descriptors+10 }) {
			s.violate("descriptors leaked", nil, time.Now(), fmt.Sprintf("%s has %d descriptors, %d before", f.name, n, f.descriptors))
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
		for _, f := range footprints {
			if st.PPID == f.program.PID() {
				list = append(list, fmt.Sprintf("pid %d of %s", pid, f.name))
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
