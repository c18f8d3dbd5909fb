package host

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"

	"github.com/gozzard/gozzard"
)

// Options is what a Host needs.
type Options struct {
	// Instance keeps several agents on one machine apart; it is the agent's id.
	Instance string
	// StateDir is a folder of the agent's own, where the output of commands is kept while they and what they leave behind run.
	StateDir string
	Log      *slog.Logger
	// ProcRoot is where /proc is mounted; empty is /proc.
	ProcRoot string
	// CgroupRoot is where cgroup v2 is mounted; empty finds it. A folder that is none makes the host work without cgroups.
	CgroupRoot string
	// BootID stands in for the id of this boot in tests.
	BootID string
}

func (o *Options) check() error {
	if err := gozzard.AgentID(o.Instance).Validate(); err != nil {
		return fmt.Errorf("instance: %w", err)
	}
	if !filepath.IsAbs(o.StateDir) {
		return fmt.Errorf("state folder %q is not an absolute path", o.StateDir)
	}
	if o.Log == nil {
		return errors.New("no logger")
	}
	if o.ProcRoot == "" {
		o.ProcRoot = "/proc"
	}
	return nil
}

// errClosed is what remains to be said after Close.
var errClosed = errors.New("the host is closed")
