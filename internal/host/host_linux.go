package host

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/procfs"
	"github.com/gozzard/gozzard/internal/supervise"
)

// tidyEvery is how often output is trimmed and empty groups are removed.
const tidyEvery = 2 * time.Second

// orphansAfter is how long an orphan that ended may wait to be collected. Many orphans can end together, and one
// pass collects all of them.
const orphansAfter = 500 * time.Millisecond

// tidyAll is how often all groups are checked although no process is known to have ended, because helpers of a
// process may have.
const tidyAll = 30 * time.Second

// sweepAll is how often all logs are checked, also those that nothing has written to: a log may have become too old.
const sweepAll = 2 * time.Minute

// floodEvery is how often logs are checked while one of them grows fast.
const floodEvery = 100 * time.Millisecond

// Host is the machine of this agent. It is safe for concurrent use.
type Host struct {
	log       *slog.Logger
	proc      procfs.FS
	bootID    string
	cpus      int
	mem       int64
	pageSize  int64
	self      account
	mode      gozzard.AgentMode
	hasPidfd  bool
	openLimit uint64        // descriptors that this program may have
	shortages atomic.Uint64 // how often a process or its pid file could not be read because there was no descriptor
	setuid    bool          // commands of accounts other than root may gain privileges
	permit    func(user, dir string) error
	programs  Programs      // nil: every command runs in a shell
	unnamed   func() string // the account of definitions that name none
	oomScore  int           // of this program
	instance  string
	own       []string // files and folders that operations on files may not reach
	degraded  []string

	groups  *cgroups // nil without cgroup v2
	marks   marks    // used without cgroup v2
	outputs *outputs
	logs    *logs
	limits  *limits
	watch   *watcher
	ledger  *ledger
	guard   *guard
	null    *os.File      // what commands read
	turns   chan struct{} // one element for each start in progress
	shells  shells
	fronts  fronts
	sampler sampler

	accounts *accounts

	ended      atomic.Bool // a process ended since the groups were last tidied
	shellEnded atomic.Bool // a shell of a command ended since commands were last collected
	unclaimed  atomic.Bool // the last look for orphans has seen an ended child
	noExitInfo atomic.Bool // the kernel does not report the exit status of other parents' children

	closeOnce sync.Once
	closing   chan struct{}
	tidied    chan struct{}

	zombieMu sync.Mutex
	zombies  map[supervise.Proc]time.Time // ended children, and since when they are known

	mu        sync.Mutex
	abandoned []*command // commands without a waiting caller
	subreaper bool
}

var _ supervise.Host = (*Host)(nil)

// New examines the machine. It marks every inherited descriptor to be closed in commands.
func New(o Options) (*Host, error) {
	if err := o.check(); err != nil {
		return nil, fmt.Errorf("cannot use this host: %w", err)
	}

	// Find out what this machine is, and what it allows the agent.
	h := &Host{
		log: o.Log, proc: procfs.New(o.ProcRoot), bootID: o.BootID, pageSize: int64(os.Getpagesize()),
		self: ownAccount(), instance: o.Instance, own: append([]string{o.StateDir}, o.Own...),
		setuid: o.AllowSetuid, permit: o.Permit, programs: o.Programs,
		oomScore: oomScore("/proc/self/oom_score_adj"),
		shells:   shells{pids: map[int]*command{}, starting: map[chan struct{}]bool{}}, fronts: fronts{byProc: map[supervise.Proc]*front{}},
		accounts: newAccounts(), closing: make(chan struct{}), tidied: make(chan struct{}),
	}
	if h.unnamed = o.Unnamed; h.unnamed == nil {
		h.unnamed = func() string { return h.self.name }
	}
	if err := h.learn(); err != nil {
		return nil, fmt.Errorf("cannot use this host: %w", err)
	}
	own, err := OwnPrivileges()
	if err != nil {
		return nil, fmt.Errorf("cannot use this host: %w", err)
	}
	h.mode = own.Mode
	h.findFeatures(o.CgroupRoot)

	h.ledger = newLedger(o.StateDir, h.bootID, o.Log)
	h.guard = newGuard(o.StateDir, h.proc, o.Log)

	// Keep inherited descriptors from commands.
	if err := h.closeInherited(); err != nil {
		return nil, fmt.Errorf("cannot use this host: %w", err)
	}

	// Open what commands, samples and watches need.
	h.sampler = newSampler(h.proc)
	h.limits = h.findLimits()
	if h.logs, err = openLogs(o.StateDir, o.LogBytes, o.LogAge); err != nil {
		return nil, fmt.Errorf("cannot use this host: %w", err)
	}
	h.logs.freed = func(folder string, bytes int64) {
		h.log.Warn("a process allocated disk space in its log without printing: it was freed", "folder", folder, "bytes", bytes)
	}
	if h.outputs, err = openOutputs(o.StateDir, h.mode == gozzard.ModeRoot); err != nil {
		return nil, fmt.Errorf("cannot use this host: %w", err)
	}
	if h.watch, err = newWatcher(); err != nil {
		return nil, fmt.Errorf("cannot use this host: %w", err)
	}

	h.turns = make(chan struct{}, max(4, 2*runtime.NumCPU()))
	if h.null, err = os.Open(os.DevNull); err != nil {
		return nil, fmt.Errorf("cannot use this host: %w", err)
	}

	// Start the maintenance in the background.
	go h.tidyLoop()
	return h, nil
}

// learn reads the facts that do not change while the machine is up.
func (h *Host) learn() (err error) {
	if h.bootID == "" {
		if h.bootID, err = h.proc.BootID(); err != nil {
			return err
		}
	}
	if h.cpus, err = h.proc.CPUs(); err != nil {
		return err
	}
	var files unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &files); err != nil {
		return os.NewSyscallError("getrlimit", err)
	}
	h.openLimit = files.Cur
	h.mem, err = h.proc.MemTotal()
	return err
}

// findFeatures finds the features of the machine and records which ones are missing.
func (h *Host) findFeatures(cgroupRoot string) {
	// Check for pidfd.
	if fd, err := openPidfd(os.Getpid()); err != nil {
		h.addDegraded("no pidfd (Linux 5.3 or newer has it): exits are noticed by looking every %v", pollEvery)
	} else {
		closeFD(fd)
		h.hasPidfd = true
	}

	// Record what the mode of the agent does not allow.
	switch h.mode {
	case gozzard.ModeUser:
		h.addDegraded("mode user: commands run as %s only, and other people's processes cannot be inspected or signalled",
			h.self.name)
	case gozzard.ModeCap:
		h.addDegraded("mode cap: open files, disk and network use of other accounts' processes cannot be measured, so limits on them do not act")
	}

	// Find where cgroup v2 is mounted.
	const without = "the processes of a definition are found by their environment and their parents; one that hides from both is found by its pid file only"
	if cgroupRoot == "" {
		root, err := h.proc.Cgroup2Mount()
		if err != nil || root == "" {
			h.addDegraded("no cgroup v2 is mounted: %s", without)
			return
		}
		cgroupRoot = root
	}

	// Make the group of this agent in the part of the tree that it may use.
	own, err := ownSubtree(h.proc, cgroupRoot)
	if err != nil {
		h.addDegraded("no usable cgroup v2 (%v): %s", err, without)
		return
	}
	groups, err := openCgroups(own, h.instance)
	if err != nil {
		h.addDegraded("no usable cgroup v2 (%v): %s", err, without)
		return
	}
	h.groups = groups
}

// addDegraded records that a feature is missing and what follows from it.
func (h *Host) addDegraded(format string, args ...any) {
	h.degraded = append(h.degraded, fmt.Sprintf(format, args...))
}

// closeInherited prevents commands from inheriting the descriptors that the agent inherited. Descriptors that Go
// opens are marked already.
func (h *Host) closeInherited() error {
	err := unix.CloseRange(3, ^uint(0), unix.CLOSE_RANGE_CLOEXEC)
	if !errors.Is(err, unix.ENOSYS) && !errors.Is(err, unix.EINVAL) { // Linux before 5.9 and 5.11
		return os.NewSyscallError("close_range", err)
	}

	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return os.NewSyscallError("getrlimit", err)
	}
	for fd := 3; fd < int(min(limit.Cur, 65536)); fd++ {
		unix.CloseOnExec(fd)
	}
	return nil
}

// Close ends watching and measuring. It touches no process and no running command.
func (h *Host) Close() error {
	var err error
	h.closeOnce.Do(func() {
		close(h.closing)
		<-h.tidied
		h.finishAbandoned()
		h.guard.close()
		h.logs.close()
		err = errors.Join(h.watch.close(), h.ledger.close(), h.null.Close())
		if h.groups != nil {
			h.groups.close()
			h.limits.close(h.groups)
		}
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

// Degraded describes which features are missing on this host.
func (h *Host) Degraded() []string { return slices.Clone(h.degraded) }

// Groups is the folder of the cgroups of this agent's processes, "" without cgroup v2.
func (h *Host) Groups() string {
	if h.groups == nil {
		return ""
	}
	return h.groups.base
}

// Facts describes the machine. The agent adds its id, addresses, version and start time.
func (h *Host) Facts() gozzard.HostInfo {
	name, err := os.Hostname()
	if err != nil {
		h.log.Warn("cannot read the host name", "err", err)
	}
	return gozzard.HostInfo{
		Hostname: name, OS: runtime.GOOS, Arch: runtime.GOARCH, BootID: h.bootID, CPUs: h.cpus, MemBytes: h.mem,
		Mode: h.mode, Degraded: h.Degraded(),
	}
}

// tidyLoop collects orphans, rotates logs and removes what is no longer used, until the host is closed.
func (h *Host) tidyLoop() {
	defer close(h.tidied)
	tick := time.NewTicker(tidyEvery)
	defer tick.Stop()

	ended := make(chan os.Signal, 1)
	signal.Notify(ended, unix.SIGCHLD) // no work while no child ends
	defer signal.Stop(ended)

	var orphans, flood <-chan time.Time
	var collected time.Time // when orphans were last collected
	var swept time.Time
	rotate := func() {
		all := time.Since(swept) >= sweepAll
		if all {
			swept = time.Now()
		}
		flood = nil
		if h.rotateLogs(all) {
			flood = time.After(floodEvery)
		}
	}

	last := time.Now()
	for {
		select {
		case <-h.closing:
			return
		case <-ended:
			if orphans == nil {
				orphans = time.After(max(orphansAfter, tidyEvery-time.Since(collected)))
			}
		case <-orphans:
			orphans, collected = nil, time.Now()
			h.unclaimed.Store(h.collectOrphans())
		case <-tick.C:
			all := time.Since(last) >= tidyAll
			if all {
				last = time.Now()
			}
			h.tidy(all)
			rotate()
		case <-flood:
			rotate()
		}
	}
}

// rotateLogs keeps all logs, or those that may have changed, within their limits. It reports whether one of them grows fast. Without cgroups it is
// unknown whether a silent log still has a writer, so none is removed.
func (h *Host) rotateLogs(all bool) (hot bool) {
	inUse := func(string) bool { return true }
	if h.groups != nil {
		inUse = h.groups.hasRuns
	}
	hot, err := h.logs.sweep(all, inUse)
	if err != nil {
		h.log.Warn("cannot tidy logs", "err", err)
	}
	return hot
}

// tidy costs almost nothing while no process ends, however many there are.
func (h *Host) tidy(all bool) {
	if h.shellEnded.Swap(false) || all {
		h.finishAbandoned()
		h.fronts.tidy()
	}
	h.guard.tidy()
	if h.unclaimed.Load() || all {
		h.unclaimed.Store(h.collectOrphans())
	}
	if h.groups == nil || !h.ended.Swap(false) && !all {
		return
	}
	h.groups.tidy(keepIdle)
	h.limits.tidy(h.groups)
	if err := h.outputs.sweep(h.groups.exists); err != nil {
		h.log.Warn("cannot tidy output of commands", "err", err)
	}
}

// bootTime is when the clock of /proc began. It is rounded to a tick, so that a start time is the same each time it
// is shown.
func bootTime() (time.Time, error) {
	var up unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &up); err != nil {
		return time.Time{}, os.NewSyscallError("clock_gettime", err)
	}
	return time.Now().Add(-time.Duration(up.Nano())).Round(time.Second / procfs.TicksPerSecond), nil
}

func ticks(n uint64) time.Duration { return time.Duration(n) * (time.Second / procfs.TicksPerSecond) }
