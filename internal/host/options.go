package host

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/gozzard/gozzard"
)

// Options are the settings of a Host.
type Options struct {
	// Instance separates several agents on one machine. It is the id of the agent.
	Instance string
	// StateDir is a folder of this agent alone. It holds the output of commands while they, or processes that they
	// started, are running.
	StateDir string
	Log      *slog.Logger
	// ProcRoot is where /proc is mounted; "" means /proc.
	ProcRoot string
	// CgroupRoot is where cgroup v2 is mounted; "" means that New finds it. If the folder is not a cgroup mount,
	// the host works without cgroups.
	CgroupRoot string
	// LogBytes is the size at which the log of a process is rotated. LogAge is how long output is kept. 0 means 10
	// MiB and 7 days.
	LogBytes int64
	LogAge   time.Duration
	// AllowSetuid allows commands of accounts other than root to gain privileges through set-uid programs such as
	// sudo. Otherwise the kernel ignores the set-uid bit for everything that such a command starts.
	AllowSetuid bool
	// Permit decides whether a command of an account may run in a folder, given by its real path. nil allows every
	// folder. Only Linux asks: on other systems commands run as the account of the agent.
	Permit func(user, dir string) error
	// Programs decides about the files that commands execute. With nil every command runs in a shell. Only Linux asks.
	Programs Programs
	// Unnamed is the account of commands whose definition names none. "" means that such a command does not run. nil
	// means the account of the agent. Only Linux asks.
	Unnamed func() string
	// Own are further files and folders that operations on files may not reach, such as the folder of the policy and the
	// program of the agent. The state folder is among them always.
	Own []string
	// BootID replaces the id of this boot in tests.
	BootID string
}

// Programs is what the policy of the host says about the files that commands execute.
type Programs interface {
	// Plain splits a command into its program and arguments, if commands must run without a shell. held is false if
	// they run in a shell.
	Plain(command string) (words []string, held bool, err error)
	// Program checks a file that a command of an account is about to execute, by its real path. command is the setting
	// of the definition. interpreter says that a script names the file in its first line.
	Program(user, command, file string, interpreter bool) error
	// Variable checks the name of a variable that a definition, or a file that it names, adds to the environment.
	Variable(name string) error
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

// errClosed is the error of every call after Close.
var errClosed = errors.New("the host is closed")
