package host

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/procfs"
)

// The capabilities of root that an agent uses.
const (
	powersToRunAs = 1<<unix.CAP_SETUID | 1<<unix.CAP_SETGID | 1<<unix.CAP_KILL
	powersOfRoot  = powersToRunAs | 1<<unix.CAP_CHOWN | 1<<unix.CAP_DAC_OVERRIDE | 1<<unix.CAP_SYS_PTRACE
)

// OwnPrivileges returns the account and the mode of this program.
func OwnPrivileges() (Privileges, error) {
	c, err := procfs.New("/proc").Credentials(os.Getpid())
	if err != nil {
		return Privileges{}, fmt.Errorf("cannot read the capabilities of this program: %w", err)
	}
	self := ownAccount()
	return Privileges{Mode: modeOf(self.uid, c.Effective), Account: self.name, UID: self.uid}, nil
}

// modeOf decides by the effective capabilities, as the kernel does: root in a container may not have all of them,
// and an ordinary account may have some.
func modeOf(uid uint32, effective uint64) gozzard.AgentMode {
	switch {
	case effective&powersToRunAs != powersToRunAs:
		return gozzard.ModeUser
	case uid == 0 && effective&powersOfRoot == powersOfRoot:
		return gozzard.ModeRoot
	}
	return gozzard.ModeCap
}

// dropPowers removes the capabilities that children of the calling thread would inherit. The thread keeps its
// effective ones, because it needs them to change the account; they end when the program starts. The capabilities
// that the agent passes to a new version of itself stay too.
func dropPowers() error {
	// Clear the ambient capabilities.
	err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
	if err != nil && !errors.Is(err, unix.EINVAL) { // Linux before 4.3 has none
		return fmt.Errorf("cannot keep capabilities from commands: %w", os.NewSyscallError("prctl", err))
	}

	// Clear the inheritable capabilities.
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
