package host

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/procfs"
)

// Powers of root that an agent makes use of.
const (
	powersToActFor = 1<<unix.CAP_SETUID | 1<<unix.CAP_SETGID | 1<<unix.CAP_KILL
	powersOfRoot   = powersToActFor | 1<<unix.CAP_CHOWN | 1<<unix.CAP_DAC_OVERRIDE | 1<<unix.CAP_SYS_PTRACE
)

// OwnStanding finds out whom this program runs as and what it may.
func OwnStanding() (Privileges, error) {
	c, err := procfs.New("/proc").Credentials(os.Getpid())
	if err != nil {
		return Privileges{}, fmt.Errorf("cannot find out what this program may do: %w", err)
	}
	self := ownAccount()
	return Privileges{Mode: modeOf(self.uid, c.Effective), Account: self.name, UID: self.uid}, nil
}

// modeOf judges by what the kernel goes by, the effective powers: root of a container may be short of them, and an
// ordinary account may have been given some.
func modeOf(uid uint32, effective uint64) gozzard.AgentMode {
	switch {
	case effective&powersToActFor != powersToActFor:
		return gozzard.ModeUser
	case uid == 0 && effective&powersOfRoot == powersOfRoot:
		return gozzard.ModeRoot
	}
	return gozzard.ModeCap
}

// dropPowers takes from the calling thread what its children would be given of the agent's powers. Its own stay,
// since it needs them to become another account, and end with that program's start; so does what the rest of the
// agent hands to a new version of itself.
func dropPowers() error {
	err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
	if err != nil && !errors.Is(err, unix.EINVAL) { // Linux before 4.3 has none
		return fmt.Errorf("cannot keep capabilities from commands: %w", os.NewSyscallError("prctl", err))
	}

	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&head, &data[0]); err != nil {
		return fmt.Errorf("cannot keep capabilities from commands: %w", os.NewSyscallError("capget", err))
	}
	if data[0].Inheritable|data[1].Inheritable == 0 {
		return nil
	}

	data[0].Inheritable, data[1].Inheritable = 0, 0
	if err := unix.Capset(&head, &data[0]); err != nil {
		return fmt.Errorf("cannot keep capabilities from commands: %w", os.NewSyscallError("capset", err))
	}

	return nil
}
