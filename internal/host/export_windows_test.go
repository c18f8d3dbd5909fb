package host

import (
	"path/filepath"
	"testing"

	"golang.org/x/sys/windows"
)

// SweepOutput removes and empties output files at once.
func (h *Host) SweepOutput() error { return h.sweepOutput() }

// Images lists all processes that can be opened by pid, with the names of their programs.
func Images(t testing.TB) map[int]string {
	t.Helper()
	s := newSampler()
	if err := s.readAll(); err != nil {
		t.Fatal(err)
	}

	images := map[int]string{}
	for _, st := range s.stats {
		process, err := openPID(st.pid, 0)
		if err != nil {
			continue
		}
		if image, err := imageOf(process); err == nil && !hasEnded(process) {
			images[st.pid] = filepath.Base(image)
		}
		_ = windows.CloseHandle(process)
	}

	return images
}
