package host

import (
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gozzard/gozzard/internal/procfs"
)

// The guard is a small process that ends commands at their time limit when the agent cannot do it any more. It is this
// program once more, started when a command takes long. The agent names the running commands to it over a socket.
// While the socket is open the guard does nothing. When it closes, however the agent ended, the guard stays until the
// last limit is over.

const (
	guardTitle = "gozzard guard"        // name and first argument of the process
	guardAfter = 200 * time.Millisecond // quick commands need no guard
	guardIdle  = time.Minute            // a guard without work is ended after this time
	guardFD    = 3
)

// guardMessage is what the agent sends: a command that runs, or the number of one that has ended.
type guardMessage struct {
	Number uint64 `json:"number"`
	Index  int    `json:"index,omitempty"` // of its slot in the ledger
	Entry  *entry `json:"entry,omitempty"` // nil: it has ended
}

// canGuard says that this program can be started as a guard: its main function calls ServeGuard.
var canGuard atomic.Bool

// guard is the agent's side.
type guard struct {
	log   *slog.Logger
	state string

	mu     sync.Mutex
	fd     int            // -1: there is no guard
	pid    int            // 0: there is none to collect
	past   []int          // guards to collect that this agent no longer uses
	slots  map[*slot]bool // commands with a time limit, and whether the guard knows them
	quiet  time.Time      // since when the guard knows none
	warned bool
	closed bool
}

func newGuard(stateDir string, fs procfs.FS, log *slog.Logger) *guard {
	g := &guard{log: log, state: stateDir, fd: -1, slots: map[*slot]bool{}}
	if canGuard.Load() {
		g.past = ownGuards(fs)
	}
	return g
}

// ownGuards lists the guards that the program before an upgrade in place has started: they are children of this one.
func ownGuards(fs procfs.FS) (pids []int) {
	all, err := fs.PIDs(nil)
	if err != nil {
		return nil
	}
	for _, pid := range all {
		if st, err := fs.Stat(pid); err == nil && st.PPID == os.Getpid() && st.Comm() == guardTitle {
			pids = append(pids, pid)
		}
	}
	return pids
}

// expect names a command that was started to the guard: at once if there is one, else when the command takes long.
func (g *guard) expect(s *slot) {
	if s == nil || s.Deadline == 0 || !canGuard.Load() {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.slots[s] = false
	switch {
	case g.closed: // it was started while the agent ended
		g.register(s)
		g.drop()
		return
	case g.fd >= 0:
		g.register(s)
		return
	}

	s.later = time.AfterFunc(guardAfter, func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		if known, ok := g.slots[s]; ok && !known && !g.closed {
			g.register(s)
		}
	})
}

// forget takes back the name of a command that has ended, or that has no time limit any more.
func (g *guard) forget(s *slot) {
	g.mu.Lock()
	defer g.mu.Unlock()
	known := g.slots[s]
	delete(g.slots, s)
	if s.later != nil {
		s.later.Stop()
	}
	if known {
		g.send(guardMessage{Number: s.number})
	}
	g.markQuiet()
}

// markQuiet notes whether the guard has work. The caller holds g.mu.
func (g *guard) markQuiet() {
	if len(g.slots) > 0 {
		g.quiet = time.Time{}
	} else if g.quiet.IsZero() {
		g.quiet = time.Now()
	}
}

// register names a command to the guard, and starts the guard if there is none. The caller holds g.mu.
func (g *guard) register(s *slot) {
	if g.fd < 0 && !g.start() {
		return
	}
	g.introduce(s)
	if g.fd < 0 && g.start() { // the guard was ended by another program
		for other, known := range g.slots {
			if known || other == s {
				g.introduce(other)
			}
		}
	}
	g.markQuiet()
}

var guardNumber atomic.Uint64

func (g *guard) introduce(s *slot) {
	s.number = guardNumber.Add(1)
	e := s.entry
	g.slots[s] = g.send(guardMessage{Number: s.number, Index: s.index, Entry: &e})
}

// send sends a message. A guard that does not read is given up: the agent never waits for it. The caller holds g.mu.
func (g *guard) send(m guardMessage) bool {
	if g.fd < 0 {
		return false
	}
	b, err := json.Marshal(m)
	if err == nil {
		err = unix.Send(g.fd, b, unix.MSG_NOSIGNAL|unix.MSG_DONTWAIT)
	}
	if err != nil {
		g.log.Warn("the guard of commands is lost; another one is started when it is needed", "pid", g.pid, "err", err)
		g.drop()
		return false
	}
	return true
}

// drop ends the use of the guard, which ends when it has no work. The caller holds g.mu.
func (g *guard) drop() {
	closeFD(g.fd)
	g.fd = -1
	if g.pid != 0 {
		g.past = append(g.past, g.pid)
		g.pid = 0
	}
}

// start starts the guard. The caller holds g.mu.
func (g *guard) start() bool {
	err := g.spawn()
	if err != nil && !g.warned {
		g.warned = true
		g.log.Warn("cannot start the guard of commands: without the agent they have no time limit", "err", err)
	}
	return err == nil
}

func (g *guard) spawn() error {
	// Make the socket. Both ends close when another program is executed.
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return os.NewSyscallError("socketpair", err)
	}
	theirs := os.NewFile(uintptr(ends[1]), "guard")
	defer theirs.Close()

	// Start this very program, even if its file was replaced. It has a session of its own, and no output.
	cmd := &exec.Cmd{
		Path: "/proc/self/exe", Args: []string{guardTitle, g.state}, Dir: "/", ExtraFiles: []*os.File{theirs},
		Env:         guardEnv,
		SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}
	start := func() error {
		if err := limitPowers(); err != nil {
			return err
		}
		return cmd.Start()
	}
	if err := onOwnThread(start); err != nil {
		closeFD(ends[0])
		return err
	}

	g.fd, g.pid, g.quiet = ends[0], cmd.Process.Pid, time.Time{}
	return cmd.Process.Release() // collect waits for it
}

// guardEnv makes the guard small: one thread at work, little memory, and no look at the limits of its group.
var guardEnv = []string{"PATH=" + defaultPath, "GOMAXPROCS=1", "GOGC=20", "GOTRACEBACK=none",
	"GODEBUG=containermaxprocs=0,updatemaxprocs=0"}

// limitPowers leaves the programs that this thread starts the rights to signal and to look at processes of other
// accounts, and nothing else. The thread must end after the start.
func limitPowers() error {
	const keep = 1<<unix.CAP_KILL | 1<<unix.CAP_SYS_PTRACE | 1<<unix.CAP_DAC_READ_SEARCH
	for c := range uintptr(unix.CAP_LAST_CAP + 1) {
		if uint64(keep)>>c&1 != 0 {
			continue
		}
		for _, err := range []error{
			unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_LOWER, c, 0, 0),
			unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0),
		} {
			// Only root may limit what root gets, and an older kernel does not know the newest ones.
			if err != nil && !errors.Is(err, unix.EPERM) && !errors.Is(err, unix.EINVAL) {
				return os.NewSyscallError("prctl", err)
			}
		}
	}

	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&head, &data[0]); err != nil {
		return os.NewSyscallError("capget", err)
	}
	data[0].Inheritable &= keep
	data[1].Inheritable = 0
	if err := unix.Capset(&head, &data[0]); err != nil {
		return os.NewSyscallError("capset", err)
	}

	return os.NewSyscallError("prctl", unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
}

// tidy collects guards that have ended, replaces one that was killed at work, and ends one without work.
func (g *guard) tidy() {
	g.mu.Lock()
	defer g.mu.Unlock()

	// Collect the past ones.
	var left []int
	for _, pid := range g.past {
		if !collectChild(pid) {
			left = append(left, pid)
		}
	}
	g.past = left

	// Notice the end of the present one.
	if g.pid != 0 && collectChild(g.pid) {
		g.pid = 0
		g.drop()
		for s, known := range g.slots {
			if known {
				g.register(s)
			}
		}
	}

	// End it when it has been without work for long.
	if g.fd >= 0 && !g.quiet.IsZero() && time.Since(g.quiet) > guardIdle {
		g.drop()
	}
}

// collectChild collects a child if it has ended. A child that is not ours counts as collected.
func collectChild(pid int) bool {
	got, err := unix.Wait4(pid, nil, unix.WNOHANG, nil)
	return got == pid || errors.Is(err, unix.ECHILD)
}

// close leaves the running commands to the guard.
func (g *guard) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for s, known := range g.slots {
		if s.later != nil {
			s.later.Stop()
		}
		if !known {
			g.register(s)
		}
	}
	g.closed = true
	g.drop()
}
