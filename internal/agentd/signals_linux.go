package agentd

import (
	"os"
	"os/signal"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// resetSignals makes commands start with no signal ignored. An agent that is started with nohup ignores SIGHUP, and its
// children inherit that: a daemon could then not be reloaded with the usual signal.
func resetSignals() {
	if signal.Ignored(syscall.SIGHUP) {
		// A signal that is handled has its default action in children. Here nothing happens still.
		signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	}
	for n := firstRealTime; n <= lastRealTime; n++ {
		var act kernelSigaction
		if sigaction(n, nil, &act) == nil && act.handler == sigIgn {
			_ = sigaction(n, &kernelSigaction{}, nil) // the runtime has no use for these
		}
	}
}

const (
	firstRealTime, lastRealTime = 32, 64
	sigIgn                      = 1
)

// kernelSigaction is what rt_sigaction takes. All zero is the default action.
type kernelSigaction struct {
	handler, flags, restorer, mask uint64
}

func sigaction(n int, set, old *kernelSigaction) error {
	_, _, errno := unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(n), uintptr(unsafe.Pointer(set)),
		uintptr(unsafe.Pointer(old)), 8, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}
