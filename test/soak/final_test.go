//go:build linux

package soak_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gozzard/gozzard/client"
)

// settle waits until all programs are back and nothing changes any more.
func (s *soak) settle() {
	s.server.AwaitReady()
	for _, a := range s.agents {
		s.server.AwaitOnline(s.t, a.host)
	}
	s.readRecord() // finds the names of Job's processes, so that it waits for those, too
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

// The columns of the final state and of what is left.
const (
	colNotAlive = "supervised but not alive"
	colAlive    = "stopped but alive"
	colPID      = "wrong pid in status"
	colFlag     = "supervision differs from verdicts"
	colPrograms = "programs that ended by themselves"
	colLeft     = "processes left in the end"
	colGroups   = "cgroups left"
	colZombies  = "zombies"
	colOpen     = "descriptors leaked"
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
	text := fmt.Sprintf("status: %s, wanted %s, supervised %v, pid %d, message %q; live main processes: %v", row.State,
		row.Wanted, row.Managed, row.PID, row.Message, pids)
	switch {
	case row.Managed && len(live) == 0:
		return problem{d, colNotAlive, text}
	case row.PID > 0 && !slices.Contains(pids, int(row.PID)):
		return problem{d, colPID, text}
	case row.PID <= 0 && len(live) > 0:
		return problem{d, colPID, text}
	case row.Managed && row.PID <= 0:
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
			if d.space == p.Namespace && d.process == p.Name && address(d.host) == p.Host.IP {
				rows[d] = &p
			}
		}
	}
	return rows
}

// judgeFinalState compares the final state with the wishes: status, processes, and the fold of all verdicts.
func (s *soak) judgeFinalState() {
	s.attempts, s.tasks = s.readRecord()
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
		if w.known && w.hosted != row.Managed {
			s.violate(colFlag, d, time.Now(), fmt.Sprintf("by the verdicts supervised is %v, the status says %v", w.hosted,
				row.Managed))
		}
		if live := s.watch.live(d.id, "main"); w.stopped && len(live) > 0 {
			s.violate(colAlive, d, time.Now(), fmt.Sprintf("it was stopped and %d main processes live, pid %d", len(live),
				live[0].PID))
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
	ups := a.action == "start" || a.action == "restart" || a.action == "manage"
	downs := a.action == "stop" || a.action == "kill"
	switch verdictOf(a) {
	case "ok":
		switch {
		case ups:
			*w = wish{known: true, hosted: true}
		case downs:
			*w = wish{known: true, stopped: true}
		case a.action == "unmanage":
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
