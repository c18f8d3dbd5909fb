package host

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
	"unicode/utf16"

	"golang.org/x/sys/windows"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/supervise"
)

const (
	tidyEvery  = 2 * time.Second  // how often ended commands and empty jobs are removed
	sweepEvery = 30 * time.Second // the same for output without a writer
)

// Host is the machine of this agent. It is safe for concurrent use. Processes are identified by handle and start time,
// and found through the job object that they were started in.
type Host struct {
	log      *slog.Logger
	dir      string // of output
	outBytes int64
	self     string
	bootID   string
	cpus     int
	mem      int64
	flags    uint32 // creation flags of every command
	degraded []string

	jobs    *jobs
	watch   *watcher
	sampler *sampler

	closeOnce sync.Once
	closing   chan struct{}
	tidied    chan struct{}

	mu        sync.Mutex
	shells    map[int]*command // by pid, until they have ended
	abandoned []*command       // commands without a waiting caller
}

var _ supervise.Host = (*Host)(nil)

// New examines the machine.
func New(o Options) (*Host, error) {
	h, err := newHost(o)
	if err != nil {
		return nil, fmt.Errorf("cannot use this host: %w", err)
	}
	h.watch = newWatcher()
	go h.tidyLoop()
	return h, nil
}

// newHost examines the machine and starts nothing.
func newHost(o Options) (*Host, error) {
	if err := o.check(); err != nil {
		return nil, err
	}

	// Make the folder for output.
	h := &Host{
		log: o.Log, dir: filepath.Join(o.StateDir, "output"), outBytes: o.LogBytes, bootID: o.BootID,
		cpus: runtime.NumCPU(), sampler: newSampler(),
		closing: make(chan struct{}), tidied: make(chan struct{}), shells: map[int]*command{},
	}
	if err := os.MkdirAll(h.dir, 0o700); err != nil {
		return nil, err
	}

	// Find out what this machine is, and the account of the agent.
	u, err := user.Current()
	if err != nil {
		return nil, err
	}
	h.self = u.Username
	if h.bootID == "" {
		if h.bootID, err = bootID(); err != nil {
			return nil, err
		}
	}
	if h.mem, err = memoryTotal(); err != nil {
		return nil, err
	}

	// Prepare the jobs.
	if h.jobs, err = newJobs(o.Instance); err != nil {
		return nil, err
	}

	// Record which features are missing.
	h.degraded = []string{
		"windows: commands run as " + h.self + " only",
		"windows: no signal asks a process to end: stopping needs a command, killing does not",
		"windows: what processes print is not kept, disk and network use are not measured, the system holds no limits",
	}
	return h, h.leaveJob()
}

// leaveJob makes sure that processes do not end together with the program that started the agent, as far as the job
// of that program allows it.
func (h *Host) leaveJob() error {
	// Nothing to do for an agent that is in no job.
	in, err := inJob(windows.CurrentProcess())
	if err != nil || !in {
		return err
	}

	// Try to start a program outside of the job, then inside.
	for _, h.flags = range []uint32{windows.CREATE_BREAKAWAY_FROM_JOB, 0} {
		in, err = startsInJob(h.flags)
		if !errors.Is(err, windows.ERROR_ACCESS_DENIED) {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("cannot start a program from the job that the agent is in: %w", err)
	}

	// Record that processes end with the job.
	if in {
		h.degraded = append(h.degraded,
			"windows: the agent was started in a job that its processes cannot leave: when this job ends, the processes end too")
	}

	return nil
}

// startsInJob reports whether a program that is started with the given flags is in a job from the beginning. It is
// tried, because jobs can be nested and what each of them allows cannot be queried.
func startsInJob(flags uint32) (bool, error) {
	// Start a program that does nothing.
	cmd := shellCommand(gozzard.ShellBat, "exit")
	cmd.SysProcAttr.CreationFlags = windows.CREATE_SUSPENDED | windows.CREATE_NO_WINDOW | flags
	if err := cmd.Start(); err != nil {
		return false, err
	}
	defer func() {
		_ = cmd.Process.Kill() // it has not done anything
		_ = cmd.Wait()
	}()

	// Look whether it is in a job.
	process, err := openPID(cmd.Process.Pid, windows.PROCESS_QUERY_INFORMATION)
	if err != nil {
		return false, err
	}
	defer windows.CloseHandle(process)
	return inJob(process)
}

// Close ends watching. It touches no process and no running command.
func (h *Host) Close() error {
	var err error
	h.closeOnce.Do(func() {
		close(h.closing)
		<-h.tidied
		err = errors.Join(h.watch.close(), h.jobs.close())

		h.mu.Lock()
		defer h.mu.Unlock()
		for _, c := range h.abandoned {
			c.discard()
		}
		h.abandoned = nil
	})

	return err
}

func (h *Host) isClosed() bool {
	select {
	case <-h.closing:
		return true
	default:
		return false
	}
}

// Groups is empty: Windows has no cgroups.
func (h *Host) Groups() string { return "" }

// Degraded describes which features are missing on this host.
func (h *Host) Degraded() []string { return slices.Clone(h.degraded) }

// Facts describes the machine. The agent adds its id, addresses, version and start time.
func (h *Host) Facts() gozzard.HostInfo {
	name, err := os.Hostname()
	if err != nil {
		h.log.Warn("cannot read the host name", "err", err)
	}
	return gozzard.HostInfo{
		Hostname: name, OS: runtime.GOOS, Arch: runtime.GOARCH, BootID: h.bootID, CPUs: h.cpus, MemBytes: h.mem,
		Mode: gozzard.ModeUser, Degraded: h.Degraded(),
	}
}

// Clear kills every process in the job of a key.
func (h *Host) Clear(q supervise.Query, also []supervise.Proc) error {
	if err := h.jobs.clear(q.Key); err != nil {
		return fmt.Errorf("cannot clear %s: %w", q.Key, err)
	}
	for _, p := range also {
		if isTaken(q, p) {
			continue
		}
		if err := h.Signal(p, supervise.SignalKill); err != nil && h.Alive(p) {
			return fmt.Errorf("cannot clear %s: %w", q.Key, err)
		}
	}
	return nil
}

// Limit rejects limits that the kernel shall enforce: on Windows they are not enforced.
func (h *Host) Limit(key gozzard.Key, r gozzard.Resource) (mode string, err error) {
	if !r.Enforce || !r.LimitsCPU() && !r.LimitsMem() {
		return "", nil
	}
	return "", fmt.Errorf("cannot limit %s: limits are not enforced by windows", key)
}

// OOMKills is always 0: Windows does not report it.
func (h *Host) OOMKills(gozzard.Key) int { return 0 }

// Managed does nothing: on Windows output is kept only while its command runs.
func (h *Host) Managed(gozzard.Key, bool) {}

// EndCommands ends nothing: on Windows no command is on record.
func (h *Host) EndCommands(func(gozzard.Key, supervise.Proc) bool) []supervise.Leftover { return nil }

// ReadLog has nothing to read: on Windows output is kept only while its command runs.
func (h *Host) ReadLog(q gozzard.LogQuery) gozzard.LogChunk {
	return gozzard.LogChunk{ID: q.ID, Error: "logs are not kept on windows"}
}

// tidyLoop collects ended commands and removes what is no longer used, until the host is closed.
func (h *Host) tidyLoop() {
	defer close(h.tidied)
	tick := time.NewTicker(tidyEvery)
	defer tick.Stop()

	var swept time.Time
	for {
		h.finishAbandoned()
		err := h.jobs.tidy()
		if time.Since(swept) >= sweepEvery {
			swept = time.Now()
			err = errors.Join(err, h.sweepOutput())
		}
		if err != nil {
			h.log.Warn("cannot tidy", "err", err)
		}
		select {
		case <-h.closing:
			return
		case <-tick.C:
		}
	}
}

// sweepOutput removes output files without a writer, and empties files that are too large. Every writer appends, so
// emptying a file is safe.
func (h *Host) sweepOutput() error {
	files, err := os.ReadDir(h.dir)
	if err != nil {
		return fmt.Errorf("cannot tidy output: %w", err)
	}

	for _, f := range files {
		path := filepath.Join(h.dir, f.Name())
		if os.Remove(path) == nil { // fails while a process has it open
			continue
		}
		if fi, err := os.Stat(path); err == nil && fi.Size() > h.outBytes {
			if err := os.Truncate(path, 0); err != nil {
				return fmt.Errorf("cannot empty output: %w", err)
			}
		}
	}

	return nil
}

// shellCommand passes the text unchanged to its shell: to cmd.exe, to PowerShell in the encoding that needs no
// quotes, or to the sh of Cygwin.
func shellCommand(shell gozzard.Shell, text string) *exec.Cmd {
	switch shell {
	case gozzard.ShellPS1:
		cmd := exec.Command("powershell.exe", "-NoLogo", "-NoProfile", "-NonInteractive", "-ExecutionPolicy",
			"Bypass", "-EncodedCommand", encodedCommand(text))
		cmd.SysProcAttr = &syscall.SysProcAttr{}
		return cmd
	case gozzard.ShellSh:
		cmd := exec.Command("sh.exe", "-c", text)
		cmd.SysProcAttr = &syscall.SysProcAttr{}
		return cmd
	}

	cmd := exec.Command("cmd.exe")
	cmd.SysProcAttr = &syscall.SysProcAttr{CmdLine: `cmd.exe /S /C "` + text + `"`}
	return cmd
}

// encodedCommand is the Base64 of the text in little-endian UTF-16.
func encodedCommand(text string) string {
	var b []byte
	for _, u := range utf16.Encode([]rune(text)) {
		b = binary.LittleEndian.AppendUint16(b, u)
	}
	return base64.StdEncoding.EncodeToString(b)
}

// baseEnv is the environment of the agent without the variables that configure the agent. Many programs do not start
// without the variables that Windows sets.
func baseEnv() []string {
	configures := func(s string) bool { return strings.HasPrefix(strings.ToUpper(s), "GOZZARD_") }
	return slices.DeleteFunc(os.Environ(), configures)
}

// isSelf reports whether a name is the account of the agent, with or without its domain.
func (h *Host) isSelf(name string) bool {
	_, short, _ := strings.Cut(h.self, `\`)
	return strings.EqualFold(name, h.self) || short != "" && strings.EqualFold(name, short)
}
