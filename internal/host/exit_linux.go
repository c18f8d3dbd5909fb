package host

import (
	"errors"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/gozzard/gozzard/internal/supervise"
)

// The kernel reports the exit status of a process to its parent. Linux 6.15 and newer also report it through a
// pidfd, after the parent has collected the process.

const (
	pidfdGetInfo  = 0xC040FF0B // _IOWR(0xFF, 11, 64 bytes)
	pidfdInfoExit = 1 << 3
)

// pidfdInfo is struct pidfd_info of linux/pidfd.h in its first size.
type pidfdInfo struct {
	mask     uint64
	_        uint64
	_        [11]uint32
	exitCode int32
}

// The exit status of another parent's child is read again a few times, because its parent may need a moment. The
// pause is short, because other exits wait for it.
const (
	otherTries = 5
	otherPause = 200 * time.Microsecond
)

// exitOfOther reads the exit status of a process with another parent, if the kernel reports it.
func (h *Host) exitOfOther(pidfd int) supervise.Exit {
	if pidfd < 0 || h.noExitInfo.Load() {
		return supervise.Exit{}
	}

	for range otherTries {
		info := pidfdInfo{mask: pidfdInfoExit}
		_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(pidfd), pidfdGetInfo, uintptr(unsafe.Pointer(&info)))
		switch {
		case errors.Is(errno, unix.ENOTTY), errors.Is(errno, unix.EINVAL), errors.Is(errno, unix.ENOSYS):
			h.noExitInfo.Store(true)
			return supervise.Exit{}
		case errno == 0 && info.mask&pidfdInfoExit != 0:
			return exitOf(unix.WaitStatus(info.exitCode))
		case errno != 0 && errno != unix.ESRCH:
			return supervise.Exit{}
		}
		time.Sleep(otherPause)
	}

	return supervise.Exit{}
}
