package agentd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gozzard/gozzard"
)

const (
	// systemdRuns is a folder that exists where systemd manages the machine.
	systemdRuns = "/run/systemd/system"
	// unitFolder is where a person or the join script puts units. A package has its own place.
	unitFolder = "/etc/systemd/system"
	// unitState is the state folder of the units as shipped.
	unitState = "/var/lib/gozzard-agent"
	rootUnit  = "gozzard-agent.service"
	capUnit   = "gozzard-agent-cap.service"
	userUnit  = "gozzard-agent-user.service"
)

// unitNames are the units of agents.
func unitNames() []string {
	return []string{rootUnit, capUnit, userUnit}
}

// agentUnits are the units whose agent uses a state folder.
type agentUnits struct {
	names   []string
	running []string // before they were stopped
	enabled []string
	group   string // the cgroup of the one that ran; "": none
}

// findUnits finds the units of a state folder. Where systemd does not run there are none.
func findUnits(ctx context.Context, data string) *agentUnits {
	u := &agentUnits{}
	if !exists(systemdRuns) {
		return u
	}
	for _, name := range unitNames() {
		if data != unitState && !strings.Contains(systemctl(ctx, "show", "--property=ExecStart", "--value", name)+" ",
			"--data "+data+" ") {
			continue
		}
		u.names = append(u.names, name)
		if systemctl(ctx, "is-active", name) == "active" {
			u.running = append(u.running, name)
			u.group = systemctl(ctx, "show", "--property=ControlGroup", "--value", name)
		}
		if systemctl(ctx, "is-enabled", name) == "enabled" {
			u.enabled = append(u.enabled, name)
		}
	}
	return u
}

// StartUnit is the unit that starts the agent of a state folder, "" if there is none or systemd does not run. orCap says
// that nothing on this host decides yet between this unit and the one of mode cap.
func StartUnit(ctx context.Context, data string) (unit string, orCap bool) {
	data, err := filepath.Abs(data)
	if err != nil || data != unitState || !exists(systemdRuns) {
		return "", false
	}

	owner, err := otherOwner(data)
	return startUnit(signs{
		root:      os.Geteuid() == 0,
		capOwner:  owner != nil && err == nil,
		capChosen: systemctl(ctx, "is-enabled", capUnit) == "enabled" || systemctl(ctx, "is-active", capUnit) == "active",
		folders:   []string{unitFolder, "/usr/lib/systemd/system", "/lib/systemd/system"},
	})
}

// signs are what says in which mode the agent of this host will run.
type signs struct {
	root      bool     // root joins: an agent of an ordinary account joins by itself, for mode user
	capOwner  bool     // the state folder belongs to another account than root
	capChosen bool     // the unit of mode cap is enabled, or runs
	folders   []string // of units
}

// startUnit decides which unit fits.
func startUnit(s signs) (unit string, orCap bool) {
	has := func(name string) bool {
		return slices.ContainsFunc(s.folders, func(folder string) bool { return exists(filepath.Join(folder, name)) })
	}
	switch {
	case !s.root && has(userUnit):
		unit = userUnit
	case s.root && (s.capOwner || s.capChosen) && has(capUnit):
		unit = capUnit
	case s.root && has(rootUnit):
		unit, orCap = rootUnit, has(capUnit)
	}
	return trimUnit(unit), orCap
}

// trimUnit is the name of a unit as people write it.
func trimUnit(name string) string { return strings.TrimSuffix(name, ".service") }

// systemctl returns what a question to systemd is answered with, "" if it is not.
func systemctl(ctx context.Context, words ...string) string {
	out, _ := exec.CommandContext(ctx, "systemctl", words...).Output() // an inactive unit is an exit code, too
	return strings.TrimSpace(string(out))
}

// mode is the mode of the agent, as far as its units say it.
func (u *agentUnits) mode() gozzard.AgentMode {
	for _, name := range append(append([]string{}, u.running...), u.enabled...) {
		if name == capUnit {
			return gozzard.ModeCap
		}
	}
	return gozzard.ModeUser
}

// stop stops and disables the units.
func (u *agentUnits) stop(ctx context.Context) error {
	for _, name := range u.names {
		// A unit that does not exist need not be stopped.
		_ = exec.CommandContext(ctx, "systemctl", "--quiet", "disable", "--now", name).Run()
		if systemctl(ctx, "is-active", name) == "active" {
			return errors.Join(fmt.Errorf("cannot stop the agent: systemctl stop %s has no effect; run this command as root",
				name), u.startAgain(context.WithoutCancel(ctx)))
		}
	}
	return nil
}

// startAgain starts the units again that ran before.
func (u *agentUnits) startAgain(ctx context.Context) (err error) {
	for verb, names := range map[string][]string{"enable": u.enabled, "start": u.running} {
		for _, name := range names {
			if out, startErr := exec.CommandContext(ctx, "systemctl", "--quiet", verb, name).CombinedOutput(); startErr != nil {
				err = errors.Join(err, fmt.Errorf("cannot %s the unit %s again: %w: %s", verb, name, startErr, out))
			}
		}
	}
	return err
}

// remove removes the units that no package has installed.
func (u *agentUnits) remove(ctx context.Context) (removed []string, err error) {
	for _, unit := range u.names {
		path := filepath.Join(unitFolder, unit)
		switch err := os.Remove(path); {
		case err == nil:
			removed = append(removed, path)
		case !errors.Is(err, fs.ErrNotExist):
			return removed, fmt.Errorf("cannot remove the unit: %w", err)
		}
	}
	if len(removed) == 0 {
		return nil, nil
	}
	if out, err := exec.CommandContext(ctx, "systemctl", "daemon-reload").CombinedOutput(); err != nil {
		return removed, fmt.Errorf("cannot reload systemd: %w: %s", err, out)
	}
	return removed, nil
}
