package host

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/gozzard/gozzard"
)

// Options is what a Host needs.
type Options struct {
	// Instance keeps several agents on one machine apart; it is the agent's id.
	Instance string
	// StateDir is a folder of the agent's own, where the output of commands is kept while they and what they leave
	// behind run.
	StateDir string
	Log      *slog.Logger
	// ProcRoot is where /proc is mounted; empty is /proc.
	ProcRoot string
	// CgroupRoot is where cgroup v2 is mounted; empty finds it. A folder that is none makes the host work without
	// cgroups.
	CgroupRoot string
	// LogBytes is how large a process's log grows before it is rotated, and LogAge how long what was printed is
	// kept; 0 is 10 MiB and 7 days.
	LogBytes int64
	LogAge   time.Duration
	// AllowSetuid lets commands of accounts other than root gain privileges through set-uid programs such as sudo.
	// Otherwise the kernel ignores those marks for all that such a command starts.
	AllowSetuid bool
	// Permit judges the folder in which a command of an account is about to run, by its real path; nil allows every
	// one. Only Linux asks it: elsewhere commands run as the agent's own account.
	Permit func(user, dir string) error
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
	if o.LogBytes <= 0 {
		o.LogBytes = 10 << 20
	}
	if o.LogAge <= 0 {
		o.LogAge = 7 * 24 * time.Hour
	}

	return nil
}

// errClosed is what remains to be said after Close.
var errClosed = errors.New("the host is closed")
