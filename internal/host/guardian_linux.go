package host

import (
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gozzard/gozzard/internal/procfs"
)

const (
	guardPoll  = 2 * time.Second // how often the guard looks whether commands still run
	guardTries = 6               // how often it tries to end a command; one try takes up to killWait
	guardLooks = 3               // how often it looks for a command that the agent was about to start
	adopted    = 1 << 63         // numbers from here on are those of commands that the agent did not name
)

// ServeGuard must be the first call of a program that runs agents. If the agent has started this process as its guard,
// ServeGuard does that work and does not return.
func ServeGuard() {
	canGuard.Store(true)
	if len(os.Args) != 2 || os.Args[0] != guardTitle {
		return
	}
	if err := runGuard(os.Args[1]); err != nil {
		os.Exit(1)
	}
	os.Exit(0)
}

// guardian is the guard's side.
type guardian struct {
	state string
	host  *Host // with what is needed to find and end processes
	slots map[uint64]*slot
	tries map[uint64]int
	looks map[uint64]int // for commands of which nothing runs
}

func runGuard(state string) error {
	// Show what this process is.
	if err := writeExisting("/proc/self/comm", guardTitle); err != nil {
		return err
	}

	// Prepare to find processes.
	g := &guardian{state: state, slots: map[uint64]*slot{}, tries: map[uint64]int{},
		looks: map[uint64]int{}}
	g.host = &Host{log: slog.New(slog.DiscardHandler), proc: procfs.New("/proc"), self: ownAccount()}
	if fd, err := openPidfd(os.Getpid()); err == nil {
		closeFD(fd)
		g.host.hasPidfd = true
	}
	debug.FreeOSMemory()

	// Listen to the agent until it ends, then do its work.
	if err := g.listen(); err != nil {
		return err
	}
	g.adopt()
	g.enforce()
	return nil
}

// listen notes which commands run, until the agent has ended.
func (g *guardian) listen() error {
	buf := make([]byte, 2*slotBytes)
	for {
		n, err := unix.Read(guardFD, buf)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return os.NewSyscallError("read", err)
		case n == 0:
			return nil
		}

		var m guardMessage
		if err := json.Unmarshal(buf[:n], &m); err != nil {
			return err
		}
		switch {
		case m.Entry == nil:
			delete(g.slots, m.Number)
		case m.Entry.valid():
			g.slots[m.Number] = &slot{entry: *m.Entry, index: m.Index}
			g.host.bootID = m.Entry.BootID
		}
	}
}

// adopt adds the commands that the ledger has and the agent did not name: it was killed right after their start. The
// agent writes them there before they start.
func (g *guardian) adopt() {
	f, err := os.Open(filepath.Join(g.state, ledgerName))
	if err != nil {
		return
	}
	defer f.Close()
	l := &ledger{bootID: g.host.bootID}
	_ = l.read(f) // what could be read counts

	named := map[string]bool{}
	for _, s := range g.slots {
		named[s.Run] = true
	}
	for i, s := range l.left {
		if s.Deadline != 0 && !named[s.Run] {
			g.slots[adopted+uint64(i)] = s
		}
	}
}

// enforce ends each command at its limit. It returns when none is left.
func (g *guardian) enforce() {
	for len(g.slots) > 0 {
		now, err := sinceBoot()
		if err != nil {
			return
		}

		// Find out which commands are over their limits.
		var due []*remains
		next := int64(guardPoll)
		for n, s := range g.slots {
			r := newRemains(s, nil)
			switch {
			case !g.recorded(s), !g.runs(r) && !g.begins(n, s), g.tries[n] == guardTries:
				delete(g.slots, n)
				if s.Group != "" {
					_ = removeTree(s.Group) // fails while it has members
				}
			case s.Deadline <= now:
				due = append(due, r)
				g.tries[n]++
			default:
				next = min(next, s.Deadline-now)
			}
		}

		// End them. The next look sees whether they have ended.
		g.host.endAll(due)
		if len(due) == 0 && len(g.slots) > 0 {
			time.Sleep(time.Duration(next))
		}
	}
}

// begins reports whether a command may be about to start: its shell is not known, and it has been looked for less than
// guardLooks times.
func (g *guardian) begins(n uint64, s *slot) bool {
	g.looks[n]++
	return s.PID == 0 && g.looks[n] < guardLooks
}

// runs reports whether something of a command must still be ended.
func (g *guardian) runs(r *remains) bool {
	members, err := g.host.membersOf(r)
	if err != nil {
		return true // it may be readable again
	}
	if r.Keeps && !g.host.commandLives(r, members) {
		return false
	}
	return slices.ContainsFunc(members, func(st procfs.Stat) bool { return !g.host.isSpared(r, st) })
}

// recorded reports whether the ledger still has a command. The next agent removes what it has ended or taken over:
// that is not the business of this guard any more. Without a ledger nothing is known.
func (g *guardian) recorded(s *slot) bool {
	f, err := os.Open(filepath.Join(g.state, ledgerName))
	if err != nil || s.index < 0 {
		return true
	}
	defer f.Close()
	b := make([]byte, slotBytes)
	n, err := f.ReadAt(b, int64(s.index)*slotBytes)
	if err != nil && !errors.Is(err, io.EOF) {
		return true
	}
	e, ok := decodeSlot(b[:n])
	return ok && e.Run == s.Run && e.BootID == s.BootID
}
