package host_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/gozzard/gozzard/internal/host"
)

// A log that nothing writes to is not checked, and a write makes the next sweep check it, also the write right after the
// agent has begun to watch it.
func TestSweepChecksTheLogsThatChange(t *testing.T) {
	f := newHost(t, smallLogs)
	k, s := f.key("x"), f.spec("x")
	f.run(k, s, true, "echo begun")
	current := filepath.Join(f.logDir(k), "current.log")

	for range 3 {
		f.untilQuiet()
		if err := os.WriteFile(current, make([]byte, 80<<10), 0o600); err != nil {
			t.Fatal(err)
		}
		host.SweepLogs(f.Host)
		if fi, err := os.Stat(current); err != nil || fi.Size() != 0 {
			t.Errorf("a large log was not rotated after it was quiet: %v, %v", fi, err)
		}
		if n := host.ActiveLogs(f.Host); n != 1 {
			t.Errorf("%d logs are checked after a write, want 1", n)
		}
	}
}

// Where the kernel watches no more files, every sweep checks every log.
func TestSweepWithoutWatch(t *testing.T) {
	f := newHost(t, smallLogs)
	host.WatchNoLogs(f.Host)
	k, s := f.key("x"), f.spec("x")
	f.run(k, s, true, "echo begun")
	for range 10 {
		host.SweepLogs(f.Host)
	}
	if n := host.ActiveLogs(f.Host); n != 1 {
		t.Errorf("%d logs are checked, want 1", n)
	}

	current := filepath.Join(f.logDir(k), "current.log")
	if err := os.WriteFile(current, make([]byte, 80<<10), 0o600); err != nil {
		t.Fatal(err)
	}
	host.SweepLogs(f.Host)
	if fi, err := os.Stat(current); err != nil || fi.Size() != 0 {
		t.Errorf("a large log was not rotated: %v, %v", fi, err)
	}
}

// untilQuiet sweeps until no log is checked any more.
func (f *fixture) untilQuiet() {
	f.t.Helper()
	for range 100 {
		if host.SweepLogs(f.Host); host.ActiveLogs(f.Host) == 0 {
			return
		}
	}
	f.t.Fatal("logs are checked without end")
}
