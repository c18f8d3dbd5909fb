package host_test

import (
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/host"
	"github.com/gozzard/gozzard/internal/supervise"
)

// The cgroup folder of a process stays for its next start, and is removed when none comes.
func TestGroupFolderStaysForTheNextStart(t *testing.T) {
	f := newHost(t)
	f.needsCgroups()
	k, s := f.key("again"), f.spec("x")
	f.run(k, s, true, "true")
	dir := host.GroupFolder(f.Host, k)
	before, err := os.Stat(dir)
	if err != nil {
		t.Fatal(err)
	}
	host.TidyYoung(f.Host)
	if err := f.Clear(supervise.Query{Key: k, Spec: s}, nil); err != nil {
		t.Fatal(err)
	}

	f.run(k, s, true, "true")
	after, err := os.Stat(dir)
	if err != nil || !os.SameFile(before, after) {
		t.Errorf("the second start has made the folder again: %v", err)
	}
	if runs, err := os.ReadDir(dir); err != nil || slices.ContainsFunc(runs, os.DirEntry.IsDir) {
		t.Errorf("a run that has ended left its group: %v %v", runs, err)
	}

	host.Tidy(f.Host)
	if exists(dir) {
		t.Error("the folder stays for ever")
	}
}

// steps collects the progress of a command.
type steps struct {
	mu   sync.Mutex
	list []supervise.Progress
}

func (s *steps) add(p supervise.Progress) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = append(s.list, p)
}

func (s *steps) are(want ...supervise.Progress) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Equal(s.list, want)
}

func TestRunTellsHowFarItIs(t *testing.T) {
	f := newHost(t)
	sleeper := f.program("sleeper")
	for _, c := range []struct {
		command string
		want    supervise.Progress
	}{{"exec " + sleeper + " 300", supervise.ProgressProgram}, {sleeper + " 300; true", supervise.ProgressShell}} {
		var all steps
		k, s := f.key(c.command), f.spec("sleeper")
		free := host.FillTurns(f.Host)
		done := make(chan supervise.Result, 1)
		go func() {
			res, err := f.Run(t.Context(), supervise.Run{Key: k, Spec: s, Action: gozzard.ActionStart, Command: c.command,
				Timeout: 20 * time.Second, Keeps: true, Front: 50 * time.Millisecond, Progress: all.add})
			if err != nil {
				t.Error(err)
			}
			done <- res
		}()
		f.eventually("the command waits", func() bool { return all.are(supervise.ProgressQueued) })
		free()
		if res := <-done; !res.Front || !all.are(supervise.ProgressQueued, c.want) {
			t.Errorf("%s: %+v, steps %v", c.command, res, all.list)
		}
	}
}
