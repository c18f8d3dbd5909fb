package agentd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
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
)

// unitNames are the units of agents.
func unitNames() []string {
	return []string{rootUnit, capUnit, "gozzard-agent-user.service"}
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

// StartUnit is the unit that starts the agent of root on a state folder, "" if there is none or systemd does not run.
func StartUnit(data string) string {
	data, err := filepath.Abs(data)
	if err != nil || data != unitState || os.Geteuid() != 0 || !exists(systemdRuns) {
		return ""
	}
	return firstUnit(unitFolder, "/usr/lib/systemd/system", "/lib/systemd/system")
}

// firstUnit is the unit of the agent of root, if one of the folders has it.
func firstUnit(folders ...string) string {
	for _, folder := range folders {
		if exists(filepath.Join(folder, rootUnit)) {
			return strings.TrimSuffix(rootUnit, ".service")
		}
	}
	return ""
}

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
