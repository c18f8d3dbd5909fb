package host

import (
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/procfs"
)

// ForgetPidfd makes a host work as on a kernel without pidfd.
func ForgetPidfd(h *Host) { h.hasPidfd = false }

// Tidy does at once what a host otherwise does from time to time.
func Tidy(h *Host) {
	if h.groups != nil {
		h.groups.tidy(0)
	}
	h.tidy(true)
	h.rotateLogs(true)
}

// SweepLogs checks the logs that may have changed.
func SweepLogs(h *Host) { h.rotateLogs(false) }

// ActiveLogs counts the logs that the next sweep checks.
func ActiveLogs(h *Host) int {
	h.logs.mu.Lock()
	defer h.logs.mu.Unlock()
	return len(h.logs.watch.active)
}

// WatchNoLogs makes a host work as on a kernel that watches no more files.
func WatchNoLogs(h *Host) {
	h.logs.mu.Lock()
	defer h.logs.mu.Unlock()
	h.logs.watch.close()
}

// LogsLearned makes a host believe that it has run for a while, and limits the logs of processes that are not managed.
func LogsLearned(h *Host, most int64) {
	h.logs.mu.Lock()
	defer h.logs.mu.Unlock()
	h.logs.began, h.logs.abandonedBytes = time.Time{}, most
}

// TidyYoung does what a host does from time to time, and leaves folders of cgroups that were used a short time ago.
func TidyYoung(h *Host) { h.tidy(true) }

// GroupFolder is the cgroup folder of a key.
func GroupFolder(h *Host, k gozzard.Key) string { return filepath.Join(h.groups.base, keyFolder(k)) }

// FillTurns makes all later starts wait for their turn, until the returned func is called.
func FillTurns(h *Host) (free func()) {
	for range cap(h.turns) {
		h.turns <- struct{}{}
	}
	return func() {
		for range cap(h.turns) {
			<-h.turns
		}
	}
}

// KeyFolder names the cgroup folder of a key.
func KeyFolder(k gozzard.Key) string { return keyFolder(k) }

// ParsePID reads the text of a pid file.
func ParsePID(b []byte) (int, bool) { return parsePID(b) }

// ParseEnvFile reads the text of a file of variables.
func ParseEnvFile(text []byte, to map[string]string) error { return parseEnvFile(text, to) }

// SetLimitRoot makes a host believe that a folder is the base of a cgroup v2 tree with all controllers.
func SetLimitRoot(h *Host, base string) {
	h.limits.base, h.limits.one = base, nil
	h.limits.two = map[string]bool{cpuController: true, memoryController: true, pidsController: true}
}

// CredentialsDiffer compares what a shell has with what it should have.
func CredentialsDiffer(has procfs.Credentials, uid, gid uint32, groups []uint32, confined bool) string {
	return differs(has, uid, gid, groups, confined)
}

// PassOnce does the part of a sample that reads every process of the machine.
func PassOnce(h *Host) error {
	h.sampler.mu.Lock()
	defer h.sampler.mu.Unlock()
	return h.sampler.readAll()
}

// Accounts returns a cached look-up of users. The cache uses find and is valid as long as two files do not change.
func Accounts(files [2]string, find func(name string) (uid uint32, err error)) (lookup func(name string) (uid uint32,
	err error)) {
	a := &accounts{files: files, find: func(name string) (account, error) {
		uid, err := find(name)
		return account{name: name, uid: uid}, err
	}}
	return func(name string) (uint32, error) {
		x, err := a.lookup(name)
		return x.uid, err
	}
}

// PlainExec splits a command that needs no shell.
func PlainExec(text string) ([]string, bool) { return plainExec(text) }

// ModeOf decides the mode from the number of an account and its effective capabilities.
func ModeOf(uid uint32, effective uint64) gozzard.AgentMode { return modeOf(uid, effective) }

// KillMembers kills the processes that a folder lists.
func KillMembers(dir string) error { return killMembers(dir) }

// SlotBytes is the size of a slot of the ledger.
const SlotBytes = slotBytes

// DecodeSlot reads the group of a command from a slot of the ledger.
func DecodeSlot(b []byte) (group string, ok bool) {
	e, ok := decodeSlot(b)
	return e.Group, ok
}

// RecordedShells counts the commands in a ledger whose shells are known.
func RecordedShells(stateDir string) (n int) {
	b, _ := os.ReadFile(filepath.Join(stateDir, ledgerName))
	for len(b) > 0 {
		if e, ok := decodeSlot(b[:min(len(b), slotBytes)]); ok && e.PID != 0 {
			n++
		}
		b = b[min(len(b), slotBytes):]
	}
	return n
}

// ForgetShells removes the shells from a ledger, as if the agent had ended before it knew them.
func ForgetShells(stateDir string) error {
	path := filepath.Join(stateDir, ledgerName)
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	for i := 0; i < len(b); i += slotBytes {
		e, ok := decodeSlot(b[i:min(len(b), i+slotBytes)])
		if e.PID, e.Start = 0, 0; ok {
			copy(b[i:], encodeSlot(e))
		}
	}
	return os.WriteFile(path, b, 0o600)
}

// LedgerCycle returns what the ledger does for one command.
func LedgerCycle(dir string, log *slog.Logger) func() {
	l := newLedger(dir, "boot", log)
	e := entry{BootID: "boot", Key: gozzard.Key{Namespace: "bench", Name: "run"}, Run: "once-1234", Deadline: 1}
	return func() {
		s := l.begin(e)
		s.PID, s.Start = 1234, 5678
		l.write(s)
		l.end(s)
	}
}

// Unname leaves the guard without a command that runs, as if the agent had been killed before it named it: with its shell in
// the ledger, or before that.
func Unname(h *Host, key gozzard.Key, shell bool) {
	h.guard.mu.Lock()
	slots := maps.Clone(h.guard.slots)
	h.guard.mu.Unlock()
	for s := range slots {
		if s.Key != key {
			continue
		}
		h.guard.forget(s)
		if !shell {
			s.PID, s.Start = 0, 0
			h.ledger.write(s)
		}
	}
}
