package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/adopt"
	"github.com/gozzard/gozzard/internal/agentd"
	"github.com/gozzard/gozzard/internal/importer"
	"github.com/gozzard/gozzard/internal/specjson"
)

// heldService is a service of systemd that is given up: an imported one, or that of the other supervisor.
type heldService struct {
	*adopt.Service
	file    string // of the unit that was imported; "": the other supervisor
	dropIns []string

	givenUp bool // by systemd
}

// systemdPIDs asks systemd for the main processes of the imported services.
func systemdPIDs(ctx context.Context, _ []importer.File, r *importer.Result) (map[string]int, error) {
	pids := map[string]int{}
	for i := range r.Processes {
		p := &r.Processes[i]
		s, err := adopt.FindService(ctx, p.Source)
		if err != nil {
			return nil, err
		}
		if s.Runs() {
			pids[p.Source] = s.PID
			nameAsItRuns(p, s.PID)
		}
	}
	return pids, nil
}

// nameAsItRuns gives a definition the name of its program as it runs: what a unit starts may become another program.
func nameAsItRuns(p *importer.Process, pid int) {
	i := slices.IndexFunc(p.Fields, func(f specjson.Field) bool { return f.Key == "proc_name" })
	want := ""
	if i >= 0 {
		want, _ = p.Fields[i].Value.(string)
	} else if k := slices.IndexFunc(p.Fields, func(f specjson.Field) bool { return f.Key == "command" }); k >= 0 {
		if words, ok := p.Fields[k].Value.([]any); ok && len(words) > 0 {
			want = filepath.Base(fmt.Sprint(words[0]))
		}
	}
	names := adopt.Names(pid)
	if len(names) == 0 || slices.Contains(names, want) {
		return
	}
	if i >= 0 {
		p.Fields = slices.Delete(slices.Clone(p.Fields), i, i+1)
	}
	p.Fields = append(p.Fields, specjson.Field{Key: "proc_name", Value: names[0]})
}

// findServices finds the services of systemd that must give processes up, and why they cannot.
func (m *move) findServices(ctx context.Context) error {
	// The service of the other supervisor, or the imported ones.
	if unit := adopt.Unit(m.daemon); m.daemon != 0 && unit != "" {
		s, err := adopt.FindService(ctx, unit)
		if err != nil {
			return err
		}
		if s.PID != m.daemon {
			return fmt.Errorf("pid %d belongs to the service %s of systemd, but is not its main process; move it by hand", m.daemon, unit)
		}
		m.services = append(m.services, &heldService{Service: s})
	}
	for _, a := range m.list {
		if !m.format.units {
			break
		}
		s, err := adopt.FindService(ctx, a.Source)
		switch {
		case err != nil:
			return err
		case s.Runs():
			m.services = append(m.services, &heldService{Service: s, file: fileOfUnit(a.File), dropIns: a.DropIns})
		case s.Enabled():
			return fmt.Errorf("systemd would start %s beside pid %d at the next boot: run systemctl disable %s", s.Name, a.pid, s.Name)
		}
	}
	if len(m.services) == 0 {
		return nil
	}

	// What cannot be given up.
	if os.Geteuid() != 0 {
		return errors.New("only root can make systemd give a service up: run this as root")
	}
	for _, s := range m.services {
		if err := s.Refusal(s.file, s.dropIns); err != nil {
			return fmt.Errorf("%w; nothing was changed", err)
		}
	}
	return m.findGroups()
}

// fileOfUnit is the file of a unit: that of its template if it is an instance.
func fileOfUnit(name string) string {
	prefix, _, instance := strings.Cut(filepath.Base(name), "@")
	if _, err := os.Lstat(name); err == nil || !instance {
		return name
	}
	return filepath.Join(filepath.Dir(name), prefix+"@"+filepath.Ext(name))
}

// findGroups finds the processes of the services. Each must belong to a process that is imported.
func (m *move) findGroups() (err error) {
	if m.trees, err = adopt.FindTrees(m.status.PID); err != nil {
		return err
	}
	for _, s := range m.services {
		pids, err := m.trees.In(s.Group())
		if err != nil {
			return err
		}
		for _, pid := range pids {
			if _, _, gone := adopt.Parent(pid); pid != m.daemon && m.owner(s, pid) == nil && gone == nil {
				return fmt.Errorf("pid %d (%s) belongs to the service %s and to no imported process; stop it first", pid,
					printable(gozzard.Clip(adopt.CommandLine(pid), 80)), s.Name)
			}
		}
	}
	return nil
}

// owner is the imported process that a process of a service belongs to. Of an imported service, that is all of them.
func (m *move) owner(s *heldService, pid int) *adopted {
	group, _ := unix.Getpgid(pid)
	session, _ := unix.Getsid(pid)
	for _, a := range m.list {
		if s.file != "" && a.Source == s.Name || s.file == "" && (a.pid == group || a.pid == session) {
			return a
		}
	}
	if s.file != "" {
		return nil
	}
	for range 64 { // a cycle is possible while pids are used again
		for _, a := range m.list {
			if a.pid == pid {
				return a
			}
		}
		parent, _, err := adopt.Parent(pid)
		if err != nil || parent <= 1 {
			return nil
		}
		pid = parent
	}
	return nil
}

// printServices prints what happens to the services, and what the processes lose.
func (m *move) printServices(r *importer.Result) error {
	for _, s := range m.services {
		if err := m.env.say("give up %s: systemd keeps it until it ends, and does not stop, restart or start it any more\n", s.Name); err != nil {
			return err
		}
		for _, folder := range s.Folders() {
			if err := m.env.say("keep %s: systemd makes it at every boot\n", folder); err != nil {
				return err
			}
		}
		if s.file == "" {
			continue
		}
		if err := m.env.say("until its next restart %s prints to the journal: journalctl -u %s\n", s.Name, s.Name); err != nil {
			return err
		}
	}
	return m.printLost(r)
}

// printLost prints what the processes lose that systemd gave them. Their protection must be given up explicitly.
func (m *move) printLost(r *importer.Result) error {
	lost := map[string][]string{}
	for i := range r.Notes {
		n := &r.Notes[i]
		if n.Level == importer.Security && len(m.services) > 0 && !slices.Contains(lost[n.Process], n.Key) { // some keys are repeated
			lost[n.Process] = append(lost[n.Process], n.Key)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(lost)) {
		if err := m.env.say("from its next restart %s runs without %s\n", printable(name), printable(strings.Join(lost[name], ", "))); err != nil {
			return err
		}
	}
	if len(lost) == 0 || m.o.lessProtection || m.o.dryRun {
		return nil
	}
	return failed(errors.New("the processes lose protection that systemd gives: if that is acceptable, add --accept-less-protection; " +
		"nothing was changed"))
}

// giveUp makes systemd give the services up, and moves their processes to where the agent would have started them.
func (m *move) giveUp(ctx context.Context) error {
	for _, s := range m.services {
		// The service is what the plan was about.
		now, err := adopt.FindService(ctx, s.Name)
		if err != nil {
			return err
		}
		if !s.Same(now) {
			return fmt.Errorf("%s changed since the plan was made; it was not given up: look at the plan again", s.Name)
		}
		if err := s.Detach(ctx); err != nil {
			return err
		}
		s.givenUp = true
		if err := m.env.say("%s: given up by systemd\n", s.Name); err != nil {
			return err
		}

		// Nothing that systemd does to its cgroup reaches them.
		runs, moved := map[*adopted]string{}, map[int]bool{}
		err = m.trees.Empty(s.Group(), func(pid int) (string, bool) {
			a := m.owner(s, pid)
			if a == nil || pid == m.daemon {
				return "", false
			}
			if runs[a] == "" && m.status.Groups != "" {
				folder := filepath.Base(filepath.Dir(agentd.LogFile("/", a.key())))
				runs[a] = adopt.Run(filepath.Join(m.status.Groups, folder))
			}
			moved[pid] = true
			return runs[a], true
		})
		if err != nil {
			return err
		}
		if err := m.env.say("%s: %d processes moved to the cgroup of the agent\n", s.Name, len(moved)); err != nil {
			return err
		}
	}
	return nil
}

// keeperPlace moves a keeper out of the session that this command was started in, which may end before it.
func (m *move) keeperPlace(pid int) error {
	if os.Geteuid() != 0 || m.status.Groups == "" {
		return nil
	}
	trees, err := adopt.FindTrees(m.status.PID)
	if err != nil {
		return err
	}
	return trees.Move(pid, filepath.Join(filepath.Dir(m.status.Groups), "keeper"))
}

// printBack prints how to go back.
func (m *move) printBack() error {
	var lines []string
	for _, a := range m.list {
		lines = append(lines, "gozzard stop "+target(a), "gozzard unregister "+target(a))
	}
	for _, s := range m.services {
		lines = append(lines, s.Back()...)
	}
	return m.env.say("to go back, with one restart:\n  %s\n", strings.Join(lines, "\n  "))
}
