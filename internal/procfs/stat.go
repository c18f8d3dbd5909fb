//go:build linux

package procfs

import (
	"bytes"
	"errors"
)

// kernelThread is PF_KTHREAD in the kernel's flags of a task.
const kernelThread = 0x00200000

// Stat is a line of /proc/<pid>/stat. It has no pointers, so passes over thousands of processes allocate nothing.
type Stat struct {
	PID     int
	PPID    int
	Session int
	State   byte // R, S, D, Z, T …
	Flags   uint64
	UTime   uint64 // ticks, as all times here
	STime   uint64
	CUTime  uint64 // of children that the process has reaped
	CSTime  uint64
	Threads int
	Start   uint64 // ticks after boot
	RSS     int64  // pages

	comm    [64]byte // up to 15 bytes for programs, more for kernel threads
	commLen int
}

// Comm is the kernel's name of the process. It has at most 15 bytes and may be cut inside a character.
func (s *Stat) Comm() string { return string(s.comm[:s.commLen]) }

// Dead reports whether the process has ended and only waits to be reaped.
func (s *Stat) Dead() bool { return s.State == 'Z' || s.State == 'X' || s.State == 'x' }

// Kernel reports whether it is a kernel thread.
func (s *Stat) Kernel() bool { return s.Flags&kernelThread != 0 || s.PID == 2 || s.PPID == 2 }

// Ticks is the processor time of the process and of the children that it has reaped.
func (s *Stat) Ticks() uint64 { return s.UTime + s.STime + s.CUTime + s.CSTime }

var errBadStat = errors.New("not a stat line")

// ParseStat reads one stat line. The process chooses its name, which may contain blanks, parentheses and line breaks.
// The last parenthesis ends it.
func ParseStat(b []byte) (Stat, error) {
	// Find the name.
	var st Stat
	open, end := bytes.IndexByte(b, '('), bytes.LastIndexByte(b, ')')
	if open < 2 || end < open || len(b) < end+4 {
		return st, errBadStat
	}

	// Read what is before and in it.
	pid, ok := number(b[:open-1])
	if !ok {
		return st, errBadStat
	}
	st.PID = int(pid)
	st.commLen = copy(st.comm[:], b[open+1:end])
	st.State = b[end+2]

	// Read the fields 4 to 25 of proc_pid_stat(5).
	var field [22]uint64
	rest := b[end+3:]
	for i := range field {
		rest = bytes.TrimLeft(rest, " ")
		n := bytes.IndexAny(rest, " \n")
		if n < 0 {
			n = len(rest)
		}
		if n == 0 {
			return Stat{}, errBadStat
		}
		if field[i], ok = number(rest[:n]); !ok {
			return Stat{}, errBadStat
		}
		rest = rest[n:]
	}

	// Keep those that are needed.
	st.PPID, st.Session, st.Flags = int(field[0]), int(field[2]), field[5]
	st.UTime, st.STime, st.CUTime, st.CSTime = field[10], field[11], field[12], field[13]
	st.Threads, st.Start, st.RSS = int(field[16]), field[18], int64(field[20])
	return st, nil
}

// number reads a decimal number. Negative ones (tty, priority, unset limits) become 0, because they are not needed.
func number(b []byte) (uint64, bool) {
	if len(b) == 0 {
		return 0, false
	}

	negative := b[0] == '-'
	if negative {
		b = b[1:]
	}

	var n uint64
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + uint64(c-'0')
	}

	if negative {
		return 0, len(b) > 0
	}

	return n, true
}
