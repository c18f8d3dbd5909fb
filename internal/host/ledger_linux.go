package host

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/supervise"
)

// The ledger says which commands run, so that the next run of the agent can end what an interrupted one left behind.
// It is the file <state>/commands, with one slot for each running command. A slot is written before the command
// starts, again when the pid of its shell is known, and freed when the command has ended or became the process. The
// file is never synced: it matters within one boot only, and the memory of the kernel survives the end of the agent.

const (
	ledgerName  = "commands"
	slotBytes   = 2048 // a divisor of the size of a page: no write is torn by the end of the agent
	slotMax     = 1 << 14
	slotMagic   = 0x31637a67 // "gzc1"
	slotHeader  = 12         // magic, length, checksum
	imageBytes  = 1024       // how much of a command line is compared
	ledgerPerms = 0o600
)

// entry is what the ledger says about one command.
type entry struct {
	BootID   string         `json:"boot_id"`
	Key      gozzard.Key    `json:"key"`
	Op       gozzard.OpID   `json:"op"`
	Run      string         `json:"run"`                // name of its group and output
	Group    string         `json:"group,omitempty"`    // folder of its group; "" without cgroups
	Action   gozzard.Action `json:"action"`             // as a number
	Keeps    bool           `json:"keeps,omitempty"`    // what it leaves running is the process
	Front    bool           `json:"front,omitempty"`    // it may be the process itself
	Deadline int64          `json:"deadline,omitempty"` // nanoseconds of CLOCK_BOOTTIME; 0: no limit
	Image    string         `json:"image,omitempty"`    // imageOf its shell; "" if it has none

	// What the definition said about the process when the command was started.
	ProcName string  `json:"proc_name,omitempty"`
	PIDPath  string  `json:"pid_path,omitempty"`
	Owner    *uint32 `json:"owner,omitempty"`

	UID uint32 `json:"uid"` // account of the command

	// The shell. It is unknown between the two writes of a slot.
	PID   int    `json:"pid,omitempty"`
	Start uint64 `json:"start,omitempty"`
}

// leader is the shell of the command, or zero.
func (e *entry) leader() supervise.Proc {
	if e.PID == 0 {
		return supervise.Proc{}
	}
	return supervise.Proc{BootID: e.BootID, PID: e.PID, Start: e.Start}
}

// slot is the place of one command in the ledger.
type slot struct {
	entry
	index int // -1: not in the file

	// The guard's part; the lock of the guard protects it.
	number uint64      // of its message
	later  *time.Timer // names it to the guard
}

// ledger is the file with its free slots. It is opened at the first use: until then another agent may own the folder.
type ledger struct {
	path   string
	bootID string
	log    *slog.Logger
	opened sync.Once

	mu     sync.Mutex
	file   *os.File // nil: it cannot be written
	free   []int
	size   int     // slots in the file, used and free
	left   []*slot // of an earlier run of the agent
	warned bool
}

func newLedger(stateDir, bootID string, log *slog.Logger) *ledger {
	return &ledger{path: filepath.Join(stateDir, ledgerName), bootID: bootID, log: log}
}

// open reads what an earlier run of the agent left. A ledger that cannot be used prevents nothing: then commands are
// not on record, and the log says so once.
func (l *ledger) open() {
	l.opened.Do(func() {
		l.mu.Lock()
		defer l.mu.Unlock()

		// Open the file, for reading only if it cannot be written.
		f, err := os.OpenFile(l.path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW|unix.O_NONBLOCK, ledgerPerms)
		if err == nil {
			l.file = f
		} else {
			l.warn(err)
			if f, err = os.OpenFile(l.path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0); err != nil {
				return
			}
			defer f.Close()
		}

		// Read its slots.
		if err := l.read(f); err != nil {
			l.warn(err)
		}

		// Make it small again when nothing is left.
		if len(l.left) == 0 && l.file != nil && l.file.Truncate(0) == nil {
			l.size, l.free = 0, nil
		}
	})
}

// read finds the slots of this boot. All others are free: damaged slots and those of an earlier boot.
func (l *ledger) read(f *os.File) error {
	all, err := io.ReadAll(io.LimitReader(f, slotMax*slotBytes))
	for i := range (len(all) + slotBytes - 1) / slotBytes { // only the used part of the last slot was written
		e, ok := decodeSlot(all[i*slotBytes : min(len(all), (i+1)*slotBytes)])
		if ok && e.BootID == l.bootID {
			l.left = append(l.left, &slot{entry: e, index: i})
		} else {
			l.free = append(l.free, i)
		}
		l.size = i + 1
	}
	return err
}

// leftovers are the commands of an earlier run of the agent that were not ended yet.
func (l *ledger) leftovers() []*slot {
	l.open()
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]*slot(nil), l.left...)
}

// begin records a command that is about to start.
func (l *ledger) begin(e entry) *slot {
	l.open()
	s := &slot{entry: e, index: -1}

	l.mu.Lock()
	switch n := len(l.free); {
	case l.file == nil:
	case n > 0:
		s.index, l.free = l.free[n-1], l.free[:n-1]
	case l.size < slotMax:
		s.index = l.size
		l.size++
	}
	l.mu.Unlock()

	l.write(s)
	return s
}

// write writes a slot after a change.
func (l *ledger) write(s *slot) {
	b := encodeSlot(s.entry)
	l.mu.Lock()
	defer l.mu.Unlock()
	if s.index < 0 || l.file == nil {
		return
	}
	if _, err := l.file.WriteAt(b, int64(s.index)*slotBytes); err != nil {
		l.warn(err)
		l.free = append(l.free, s.index)
		s.index = -1
	}
}

// end frees the slot of a command. A second call does nothing.
func (l *ledger) end(s *slot) {
	l.mu.Lock()
	defer l.mu.Unlock()

	for i, x := range l.left {
		if x == s {
			l.left = append(l.left[:i], l.left[i+1:]...)
			break
		}
	}

	if s.index < 0 || l.file == nil {
		return
	}
	if _, err := l.file.WriteAt(make([]byte, slotHeader), int64(s.index)*slotBytes); err != nil {
		l.warn(err)
	}
	l.free = append(l.free, s.index)
	s.index = -1
}

// warn says once that the ledger does not work. The caller holds l.mu.
func (l *ledger) warn(err error) {
	if l.warned {
		return
	}
	l.warned = true
	l.log.Warn("cannot record running commands: if the agent ends now, its next start does not end them", "err", err)
}

func (l *ledger) close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return nil
	}
	f := l.file
	l.file = nil
	return f.Close()
}

// encodeSlot is the slot of a command. A path that does not fit is left out.
func encodeSlot(e entry) []byte {
	body, err := json.Marshal(&e)
	if err == nil && slotHeader+len(body) > slotBytes {
		e.PIDPath = ""
		body, err = json.Marshal(&e)
	}
	if err != nil || slotHeader+len(body) > slotBytes {
		return make([]byte, slotHeader)
	}

	b := binary.LittleEndian.AppendUint32(make([]byte, 0, slotHeader+len(body)), slotMagic)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(body)))
	b = binary.LittleEndian.AppendUint32(b, crc32.Checksum(body, castagnoli))
	return append(b, body...)
}

// decodeSlot reads a slot; ok is false for a free or damaged one.
func decodeSlot(b []byte) (e entry, ok bool) {
	if len(b) < slotHeader || binary.LittleEndian.Uint32(b) != slotMagic {
		return e, false
	}
	n := int(binary.LittleEndian.Uint32(b[4:]))
	if n > len(b)-slotHeader {
		return e, false
	}
	body := b[slotHeader : slotHeader+n]
	if crc32.Checksum(body, castagnoli) != binary.LittleEndian.Uint32(b[8:]) || json.Unmarshal(body, &e) != nil {
		return entry{}, false
	}
	return e, e.valid()
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// valid rejects what no agent writes. A group outside of the folder of its run could be that of another program.
func (e *entry) valid() bool {
	if e.BootID == "" || e.PID < 0 || e.PID == 1 || e.Run == "" || strings.ContainsAny(e.Run, "/.") {
		return false
	}
	want := filepath.Join(keyFolder(e.Key), e.Run)
	return e.Group == "" || filepath.IsAbs(e.Group) && filepath.Clean(e.Group) == e.Group &&
		strings.HasSuffix(e.Group, "/"+want) && strings.Contains(e.Group, "/gozzard/")
}

// record puts a command that is about to start into the ledger.
func (h *Host) record(c *command, name string) {
	r := c.run
	e := entry{
		BootID: h.bootID, Key: r.Key, Op: r.Op, Run: name, Action: r.Action, Keeps: r.Keeps, Front: r.Front > 0,
		Image: imageOf(c.cmd.Args), ProcName: r.Spec.Identity.ProcName, PIDPath: r.Spec.Identity.PIDPath, UID: c.runAs.uid,
	}
	if c.group != nil {
		e.Group = c.group.dir
	}
	if r.Spec.Identity.User != "" || c.runAs.uid != h.self.uid {
		e.Owner = &c.runAs.uid
	}
	if r.Timeout > 0 {
		if now, err := sinceBoot(); err == nil {
			e.Deadline = now + int64(r.Timeout)
		}
	}
	c.slot = h.ledger.begin(e)
}

// recordLeader adds the shell to the record of a command that was started.
func (h *Host) recordLeader(c *command) {
	st, err := h.proc.Stat(c.cmd.Process.Pid) // not collected yet, so the pid still belongs to it
	if err != nil {
		h.log.Warn("cannot record the shell of a command", "pid", c.cmd.Process.Pid, "err", err)
		return
	}
	c.slot.PID, c.slot.Start = st.PID, st.Start
	if c.plain {
		c.slot.Image = ""
	}
	h.ledger.write(c.slot)
}

// strike removes a command from the ledger.
func (h *Host) strike(c *command) {
	if c.slot != nil {
		h.guard.forget(c.slot)
		h.ledger.end(c.slot)
	}
}

// imageOf identifies a command line by its beginning.
func imageOf(args []string) string {
	text := []byte(strings.Join(args, "\x00"))
	sum := sha256.Sum256(bytes.TrimRight(text[:min(len(text), imageBytes)], "\x00"))
	return hex.EncodeToString(sum[:8])
}

// sinceBoot is the time of CLOCK_BOOTTIME, which no caller can set and which counts while the machine sleeps.
func sinceBoot() (int64, error) {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		return 0, os.NewSyscallError("clock_gettime", err)
	}
	return ts.Nano(), nil
}

// errLeft is the error for processes that cannot be ended.
func errLeft(left []supervise.Proc, why error) error {
	pids := make([]int, len(left))
	for i, p := range left {
		pids[i] = p.PID
	}
	err := fmt.Errorf("processes %v did not end within %v of being killed", pids, killWait)
	return errors.Join(err, why)
}
