package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/supervise"
)

// bootID is constant, because start times are absolute on Windows.
func bootID() (string, error) { return "windows", nil }

// startTime converts the start of a process to a time.
func startTime(start uint64) time.Time { return time.Unix(0, int64(start)) }

// open opens a handle of exactly this process. It also works for a process that has ended, while another handle of it
// is open. As long as a handle is open, the pid is not reused.
func open(p supervise.Proc, access uint32) (windows.Handle, error) {
	if p.IsZero() {
		return 0, os.ErrProcessDone
	}

	h, err := openPID(p.PID, access)
	if err != nil {
		return 0, err
	}

	start, err := startOf(h)
	if err == nil && start != p.Start {
		err = os.ErrProcessDone
	}
	if err != nil {
		return 0, errors.Join(err, windows.CloseHandle(h))
	}

	return h, nil
}

// openPID opens the process that has a pid now. Windows accepts the next three numbers for the same process, so the
// pid is read back and compared.
func openPID(pid int, access uint32) (windows.Handle, error) {
	h, err := windows.OpenProcess(access|windows.PROCESS_QUERY_LIMITED_INFORMATION|windows.SYNCHRONIZE, false,
		uint32(pid))
	if errors.Is(err, windows.ERROR_INVALID_PARAMETER) { // no process has it
		return 0, os.ErrProcessDone
	}
	if err != nil {
		return 0, os.NewSyscallError("OpenProcess", err)
	}

	if id, err := windows.GetProcessId(h); err != nil || id != uint32(pid) {
		return 0, errors.Join(os.ErrProcessDone, windows.CloseHandle(h))
	}
	return h, nil
}

// startOf is when a process began, in nanoseconds of Unix time.
func startOf(h windows.Handle) (uint64, error) {
	var created, exited, kernel, used windows.Filetime
	if err := windows.GetProcessTimes(h, &created, &exited, &kernel, &used); err != nil {
		return 0, os.NewSyscallError("GetProcessTimes", err)
	}
	if created == (windows.Filetime{}) { // seen under Wine: a moment later the process has another start time
		return 0, errors.New("it is just being made")
	}
	return uint64(created.Nanoseconds()), nil
}

// hasEnded waits on the handle, because a process can end with the exit code that means running.
func hasEnded(h windows.Handle) bool {
	event, err := windows.WaitForSingleObject(h, 0)
	return err != nil || event != uint32(windows.WAIT_TIMEOUT)
}

// imageOf returns the path of the program of a process.
func imageOf(h windows.Handle) (string, error) {
	buf := make([]uint16, windows.MAX_LONG_PATH)
	n := uint32(len(buf))
	if err := windows.QueryFullProcessImageName(h, 0, &buf[0], &n); err != nil {
		return "", os.NewSyscallError("QueryFullProcessImageName", err)
	}
	return windows.UTF16ToString(buf[:n]), nil
}

// argsOf reads the command line of a process. The text is in the buffer, behind the header that points to it.
func argsOf(h windows.Handle) ([]string, error) {
	const longest = 64<<10 + unsafe.Sizeof(windows.NTUnicodeString{}) // of a command line, with its header
	buf := make([]uintptr, longest/unsafe.Sizeof(uintptr(0))+1)
	size := uint32(len(buf)) * uint32(unsafe.Sizeof(uintptr(0)))
	var n uint32
	err := windows.NtQueryInformationProcess(h, windows.ProcessCommandLineInformation,
		unsafe.Pointer(&buf[0]), size, &n)
	if err != nil {
		return nil, os.NewSyscallError("NtQueryInformationProcess", err)
	}

	args, err := windows.DecomposeCommandLine((*windows.NTUnicodeString)(unsafe.Pointer(&buf[0])).String())
	if err != nil {
		return nil, fmt.Errorf("cannot split command line: %w", err)
	}

	return args, nil
}

// Alive reports whether the process is still running.
func (h *Host) Alive(p supervise.Proc) bool {
	if p.BootID != h.bootID {
		return false
	}
	process, err := open(p, 0)
	if err != nil {
		return false
	}
	defer windows.CloseHandle(process)
	return !hasEnded(process)
}

// Collect has nothing to wait for: a process that ended is no longer listed, even while a handle of it is open.
func (h *Host) Collect(context.Context, supervise.Proc) {}

// Signal kills exactly this process. Windows has no signal that asks a process to end. For a process that ended it
// returns os.ErrProcessDone.
func (h *Host) Signal(p supervise.Proc, sig supervise.Signal) error {
	switch sig {
	case supervise.SignalKill:
	case supervise.SignalTerm, supervise.SignalInt, supervise.SignalQuit, supervise.SignalHup, supervise.SignalUsr1,
		supervise.SignalUsr2, supervise.SignalWinch:
		return fmt.Errorf("cannot ask pid %d to end: windows has no signal for it, define a command to stop", p.PID)
	default:
		return fmt.Errorf("unknown signal %d", sig)
	}
	if err := h.kill(p); err != nil {
		return fmt.Errorf("cannot kill pid %d: %w", p.PID, err)
	}
	return nil
}

// kill kills exactly this process, but never the agent.
func (h *Host) kill(p supervise.Proc) error {
	// Reject the agent itself, and processes of another boot.
	if p.PID == os.Getpid() {
		return errors.New("refused")
	}
	if p.BootID != h.bootID {
		return os.ErrProcessDone
	}

	// Hold the process.
	process, err := open(p, windows.PROCESS_TERMINATE)
	if err != nil {
		return err
	}
	defer windows.CloseHandle(process)
	if hasEnded(process) {
		return os.ErrProcessDone
	}

	// Kill it. It may end by itself in between.
	if err := windows.TerminateProcess(process, 1); err != nil {
		if hasEnded(process) {
			return os.ErrProcessDone
		}
		return os.NewSyscallError("TerminateProcess", err)
	}
	return nil
}

// Watch calls exited once, from the watching goroutine, when the process has ended, also when it has ended before.
// exited must be quick and must not end its own watch; stop waits for a call that is in progress. The exit status
// is known.
func (h *Host) Watch(p supervise.Proc, exited func(supervise.Exit)) (stop func(), err error) {
	var process windows.Handle
	if p.BootID == h.bootID {
		if process, err = open(p, 0); err != nil && !errors.Is(err, os.ErrProcessDone) {
			return nil, fmt.Errorf("cannot watch pid %d: %w", p.PID, err)
		}
	}

	stop, err = h.watch.add(process, func() {
		var code uint32
		if process == 0 || windows.GetExitCodeProcess(process, &code) != nil {
			exited(supervise.Exit{})
			return
		}
		exited(supervise.Exit{Known: true, Code: int(code)})
	})
	if err != nil {
		return nil, fmt.Errorf("cannot watch pid %d: %w", p.PID, err)
	}
	return stop, nil
}

// Inspect reads what a query reports about one process in addition to the usage of its tree, which Sample measures.
// For a process that ended it returns os.ErrProcessDone.
func (h *Host) Inspect(p supervise.Proc) (gozzard.Detail, error) {
	// Hold the process.
	d := gozzard.Detail{PID: -1}
	if p.BootID != h.bootID {
		return d, fmt.Errorf("cannot inspect pid %d: %w", p.PID, os.ErrProcessDone)
	}
	process, err := open(p, 0)
	if err != nil {
		return d, fmt.Errorf("cannot inspect pid %d: %w", p.PID, err)
	}
	defer windows.CloseHandle(process)

	// Read its numbers.
	st, err := h.sampler.one(p)
	if err != nil || hasEnded(process) {
		return d, fmt.Errorf("cannot inspect pid %d: %w", p.PID, errors.Join(os.ErrProcessDone, err))
	}

	// Compute its age.
	now, started := time.Now(), startTime(p.Start)
	_, zone := now.Zone()
	age := max(0, now.Sub(started))

	// Convert to the units of the answer.
	d = gozzard.Detail{
		PID: p.PID, Cmdline: cleanCmdline(h.cmdline(process)), Threads: st.threads,
		UTime: int64(st.user.Seconds()), STime: int64(st.kernel.Seconds()),
		CPUAvg: float64(percent(st.user+st.kernel, age, h.cpus)), MemKB: st.memory >> 10,
		Mem:       100 * float64(st.memory) / float64(h.mem),
		StartedAt: started.Unix(), Elapsed: int64(age.Seconds()), ZoneOffset: zone,
	}
	return d, nil
}

// cmdline returns the arguments of a process. For a process of another account only its program may be readable.
func (h *Host) cmdline(process windows.Handle) []string {
	if args, err := argsOf(process); err == nil && len(args) > 0 {
		return args
	}
	if image, err := imageOf(process); err == nil {
		return []string{image}
	}
	return nil
}
