package host

import (
	"errors"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/gozzard/gozzard/internal/supervise"
)

// How a process ended is told to its parent. Linux 6.15 and newer also tell whoever holds its pidfd, once the
// parent has collected it.

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

// The exit of a stranger is asked for again a few times, as its parent may need a moment; nobody else's exit is to
// wait long for it.
const (
	strangerTries = 5
	strangerPause = 200 * time.Microsecond
)

// exitOfStranger learns how a process of another parent ended, if the kernel tells.
func (h *Host) exitOfStranger(pidfd int) supervise.Exit {
	if pidfd < 0 || h.noExitInfo.Load() {
		return supervise.Exit{}
	}

	for range strangerTries {
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
		time.Sleep(strangerPause)
	}

	return supervise.Exit{}
}
