package host

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

const zombie = 5 // SZOMB of sys/proc.h

func bootID() (string, error) {
	id, err := unix.Sysctl("kern.bootsessionuuid")
	if err != nil {
		return "", fmt.Errorf("cannot read boot id: %w", err)
	}
	return id, nil
}

func lookup(pid int) (info, error) {
	k, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil {
		return info{}, fmt.Errorf("cannot read process: %w", err)
	}
	if int(k.Proc.P_pid) != pid || k.Proc.P_stat == zombie {
		return info{}, os.ErrProcessDone
	}
	return info{start: uint64(k.Proc.P_starttime.Nano()), name: unix.ByteSliceToString(k.Proc.P_comm[:])}, nil
}

func startTime(start uint64) time.Time { return time.Unix(0, int64(start)) }
