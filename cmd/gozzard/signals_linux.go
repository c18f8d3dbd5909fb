package main

import (
	"os"
	"os/signal"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// heedSignals sees to it that commands begin with no signal ignored. Whoever starts an agent decides what it
// ignores (nohup: the hang-up), and what is ignored is inherited: a daemon could then not be told to reload by the
// signal that everybody uses for that.
func heedSignals() {
	if signal.Ignored(syscall.SIGHUP) {
		// still nothing happens here, but a signal that is handled is an ordinary one to children
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
