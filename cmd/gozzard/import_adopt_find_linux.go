package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/adopt"
	"github.com/gozzard/gozzard/internal/agentsock"
	"github.com/gozzard/gozzard/internal/importer"
)

// findProcesses finds the pid of each process: from the other supervisor, or from the agent if it has the process already.
func (m *move) findProcesses(ctx context.Context, files []importer.File, r *importer.Result) error {
	running, err := m.format.pids(ctx, files, r)
	known, agentErr := m.agent.Processes(ctx)
	if agentErr != nil {
		return agentErr
	}
	for i := range r.Processes {
		p := &r.Processes[i]
		pid := running[p.Source]
		if pid == 0 {
			j := slices.IndexFunc(known.Processes, func(k agentsock.Process) bool {
				return k.Namespace == p.Namespace && k.Name == p.Name && k.PID > 0
			})
			if j < 0 {
				m.env.remark("%s/%s does not run: register and start it yourself", p.Namespace, p.Name)
				continue
			}
			pid = int(known.Processes[j].PID)
		}
		_, start, startErr := adopt.Parent(pid)
		if startErr != nil {
			return startErr
		}
		m.list = append(m.list, &adopted{Process: p, pid: pid, start: start, pidFile: m.pidFile(p)})
	}
	if len(m.list) == 0 {
		return errors.Join(err, errors.New("no process runs that could be adopted"))
	}
	return nil
}

// findDaemon finds the other supervisor and takes the ends of pipes that it holds.
func (m *move) findDaemon() error {
	if m.format.daemon == nil {
		return nil
	}
	for _, a := range m.list {
		parent, _, err := adopt.Parent(a.pid)
		if err != nil {
			return err
		}
		if !m.format.daemon.MatchString(adopt.CommandLine(parent)) {
			continue // it was given up before
		}
		if m.daemon != 0 && m.daemon != parent {
			return fmt.Errorf("pid %d and pid %d both supervise the processes; move them one after the other", m.daemon, parent)
		}
		m.daemon = parent
	}
	if m.daemon == 0 {
		return nil
	}

	// It must have no other process.
	_, start, err := adopt.Parent(m.daemon)
	if err != nil {
		return err
	}
	m.daemonStart = start
	children, err := adopt.Children(m.daemon)
	if err != nil {
		return err
	}
	for _, pid := range children {
		if !slices.ContainsFunc(m.list, func(a *adopted) bool { return a.pid == pid }) {
			return fmt.Errorf("pid %d (%s) is not imported, and would be left without a supervisor; stop it there first", pid,
				printable(gozzard.Clip(adopt.CommandLine(pid), 80)))
		}
	}

	// Whatever the system does not allow must show before anything is changed.
	for _, a := range m.list {
		if a.ends, err = adopt.Take(m.daemon, a.pid); err != nil {
			return err
		}
	}
	return nil
}

var (
	isRunningProgram = regexp.MustCompile(`(?m)^(\S+)\s+RUNNING\s+pid ([0-9]{1,9}),`)
	isSupervisord    = regexp.MustCompile(`(^|/| )supervisord( |$)`)
	isPM2            = regexp.MustCompile(`^PM2\s|/pm2/lib/Daemon\.js`)
)

// supervisordPIDs asks supervisord for the pids of its programs.
func supervisordPIDs(ctx context.Context, files []importer.File, _ *importer.Result) (map[string]int, error) {
	out, err := exec.CommandContext(ctx, "supervisorctl", "-c", files[0].Name, "status").Output()
	pids := map[string]int{}
	for _, m := range isRunningProgram.FindAllStringSubmatch(string(out), -1) {
		source := m[1]
		if !strings.Contains(source, ":") {
			source += ":" + source
		}
		pids[source], _ = strconv.Atoi(m[2])
	}
	if len(pids) > 0 {
		return pids, nil // its exit code says that some do not run
	}
	return pids, fmt.Errorf("supervisorctl names no running program: %w: %s", errors.Join(err), printable(gozzard.Clip(string(out), 200)))
}

// pm2PIDs are the pids in the output of pm2 jlist.
func pm2PIDs(_ context.Context, _ []importer.File, r *importer.Result) (map[string]int, error) {
	pids := map[string]int{}
	for i := range r.Processes {
		if p := &r.Processes[i]; p.PID > 0 {
			pids[p.Source] = p.PID
		}
	}
	if len(pids) == 0 {
		return nil, errors.New("the file has no pids: give the output of pm2 jlist")
	}
	return pids, nil
}

// procinfoPIDs are the pids in the pid files of the definitions.
func procinfoPIDs(_ context.Context, _ []importer.File, r *importer.Result) (map[string]int, error) {
	pids := map[string]int{}
	for i := range r.Processes {
		p := &r.Processes[i]
		for _, f := range p.Fields {
			path, _ := f.Value.(string)
			if f.Key != "pid_file" {
				continue
			}
			text, err := readLimited(path)
			if err != nil {
				continue // it does not run
			}
			first, _, _ := strings.Cut(strings.TrimSpace(string(text)), "\n")
			pid, err := strconv.Atoi(strings.TrimSpace(first))
			if _, _, gone := adopt.Parent(pid); err == nil && pid > 0 && gone == nil {
				pids[p.Source] = pid
			}
		}
	}
	return pids, nil
}

// isAdoptDropIn reports whether a file is the drop-in by which a unit was given up: it is no part of its configuration.
func isAdoptDropIn(name string) bool { return filepath.Base(name) == adopt.DropIn }

// adoptable says how running processes of a format are found.
func adoptable(f *importFormat) {
	switch f.cmd.Name() {
	case "supervisord":
		f.pids, f.daemon = supervisordPIDs, isSupervisord
	case "pm2":
		f.pids, f.daemon = pm2PIDs, isPM2
	case "procinfo":
		f.pids = procinfoPIDs
	case "systemd":
		f.pids = systemdPIDs
	}
}
