package host

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"os/user"
	"slices"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/gozzard/gozzard"
)

// rlimitNumbers are the numbers of gozzard.RlimitNames.
var rlimitNumbers = map[string]int{
	"as": unix.RLIMIT_AS, "core": unix.RLIMIT_CORE, "cpu": unix.RLIMIT_CPU, "data": unix.RLIMIT_DATA,
	"fsize": unix.RLIMIT_FSIZE, "memlock": unix.RLIMIT_MEMLOCK, "msgqueue": unix.RLIMIT_MSGQUEUE,
	"nofile": unix.RLIMIT_NOFILE, "nproc": unix.RLIMIT_NPROC, "rtprio": unix.RLIMIT_RTPRIO,
	"sigpending": unix.RLIMIT_SIGPENDING, "stack": unix.RLIMIT_STACK,
}

// inGroup returns the credential of an account with another group. The policy has decided whether the account may have it.
// The account keeps its other groups.
func (h *Host) inGroup(name string, a account, cred *syscall.Credential) (*syscall.Credential, error) {
	if name == "" {
		return cred, nil
	}
	g, err := user.LookupGroup(name)
	if err != nil {
		var unknown user.UnknownGroupError
		if errors.As(err, &unknown) {
			return nil, fmt.Errorf("cannot run in group %s: no such group on this host", name)
		}
		return nil, fmt.Errorf("cannot look up group %s: %w", name, err)
	}
	gid, err := strconv.ParseUint(g.Gid, 10, 32)
	if err != nil {
		return nil, fmt.Errorf("group %s has no numeric id: %w", name, err)
	}

	switch {
	case cred == nil && int(gid) == os.Getegid():
		return nil, nil
	case cred != nil:
		return &syscall.Credential{Uid: cred.Uid, Gid: uint32(gid), Groups: cred.Groups}, nil
	case h.mode == gozzard.ModeUser:
		return nil, fmt.Errorf("cannot run in group %s: the agent runs in mode user and may not change groups", name)
	}
	return &syscall.Credential{Uid: a.uid, Gid: uint32(gid), Groups: a.groups}, nil
}

// setUmask sets the umask of the calling thread. A strict container forbids that; then the umask of the program applies,
// which is the default.
func setUmask(text string) error {
	mask := int64(commandUmask)
	if text != "" {
		var err error
		if mask, err = strconv.ParseInt(text, 8, 32); err != nil || mask < 0 || mask > 0o777 {
			return fmt.Errorf("umask %q is not octal digits", text)
		}
	}
	err := unix.Unshare(unix.CLONE_FS)
	if err == nil {
		unix.Umask(int(mask))
		return nil
	}
	if mask != commandUmask {
		return fmt.Errorf("cannot set umask %s: %v", text, err)
	}
	return nil
}

// setNice sets the priority of the calling thread.
func setNice(n int) error {
	if n == 0 {
		return nil
	}
	if err := unix.Setpriority(unix.PRIO_PROCESS, 0, n); err != nil {
		return fmt.Errorf("cannot set nice %d: %v", n, err) // without %w: it is not about a file
	}
	return nil
}

// startLimited starts a command and sets its resource limits before its first instruction. The limits belong to a whole
// process, so the agent cannot set them on itself. The kernel stops a traced program right after exec. The calling thread
// must stay the same until startLimited has returned.
func (h *Host) startLimited(cmd *exec.Cmd, limits map[string]gozzard.Rlimit) error {
	if len(limits) == 0 {
		return cmd.Start()
	}

	attr := *cmd.SysProcAttr
	attr.Ptrace = true
	cmd.SysProcAttr = &attr
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("%w (it has rlimits, and is started under ptrace)", err)
	}

	// Wait until it stops, and set the limits.
	pid := cmd.Process.Pid
	err := awaitStop(pid)
	if err == nil { // if the agent dies now, the command must not run without its limits
		err = os.NewSyscallError("ptrace", unix.PtraceSetOptions(pid, unix.PTRACE_O_EXITKILL))
	}
	if err == nil {
		err = h.setLimits(pid, attr.Credential, limits)
	}
	if err == nil {
		err = os.NewSyscallError("ptrace", unix.PtraceDetach(pid))
	}
	if err == nil {
		return nil
	}

	// Without its limits it must not run.
	_ = cmd.Process.Kill() // a traced process can be killed too
	_ = cmd.Wait()
	return fmt.Errorf("cannot set rlimits: %v", err)
}

// awaitStop waits until a traced child has stopped after its exec.
func awaitStop(pid int) error {
	var status unix.WaitStatus
	for {
		_, err := unix.Wait4(pid, &status, unix.WALL, nil)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return os.NewSyscallError("wait4", err)
		case !status.Stopped():
			return errors.New("the command ended before it began")
		}
		return nil
	}
}

// setLimits sets the limits of another process. To do this for another account, and to raise a limit, an agent needs a
// capability that root in a container and an agent in mode cap do not have. Then the calling thread becomes the account, which
// may lower its own limits. The thread ends soon.
func (h *Host) setLimits(pid int, cred *syscall.Credential, limits map[string]gozzard.Rlimit) error {
	err := prlimit(pid, limits)
	if cred == nil || !errors.Is(err, unix.EPERM) {
		return err
	}
	gid, uid := uintptr(cred.Gid), uintptr(cred.Uid)
	if _, _, errno := unix.RawSyscall(unix.SYS_SETRESGID, gid, gid, gid); errno != 0 {
		return os.NewSyscallError("setresgid", errno)
	}
	if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, uid, uid, uid); errno != 0 {
		return os.NewSyscallError("setresuid", errno)
	}
	return prlimit(pid, limits)
}

// prlimit sets limits in the order of their names.
func prlimit(pid int, limits map[string]gozzard.Rlimit) error {
	for _, name := range slices.Sorted(maps.Keys(limits)) {
		number, known := rlimitNumbers[name]
		if !known {
			return fmt.Errorf("%s is not known to this agent", name)
		}
		l := limits[name]
		if err := unix.Prlimit(pid, number, &unix.Rlimit{Cur: rlimitValue(l.Soft), Max: rlimitValue(l.Hard)}, nil); err != nil {
			if above := limitAbove(0, name, l); above != nil && errors.Is(err, unix.EPERM) {
				return fmt.Errorf("%w: %w", above, err)
			}
			return fmt.Errorf("%s %d: %w", name, l.Soft, err)
		}
	}
	return nil
}

func rlimitValue(n int64) uint64 {
	if n == gozzard.Unlimited {
		return unix.RLIM_INFINITY
	}
	return uint64(n)
}
