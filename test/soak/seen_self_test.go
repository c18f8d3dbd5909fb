//go:build linux

package soak_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/gozzard/gozzard/client"
	ft "github.com/gozzard/gozzard/test/fleettest"
)

// sleeper is a process in a folder that records nothing itself.
func sleeper(t *testing.T, dir string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("/bin/sleep", "1000000")
	cmd.Dir = dir
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd
}

// TestJudgeSeesPrograms: a program that records nothing is recorded from its pid file, once, and its end is noticed.
// What an old pid file names is not recorded.
func TestJudgeSeesPrograms(t *testing.T) {
	root := t.TempDir()
	write := func(path, text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write(filepath.Join(root, "journal"), "")
	w := watch(t, filepath.Join(root, "journal"))
	d := &daemon{id: "goose", dir: filepath.Join(root, "goose"), kind: kind{name: "real"}}
	if err := os.Mkdir(d.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	lives := func() (list []instance) {
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, in := range w.instances[d.id] {
			list = append(list, *in)
		}
		return list
	}
	looks := func() { // waits until the watcher has looked twice
		t.Helper()
		for range 2 {
			w.mu.Lock()
			before := w.looked
			w.mu.Unlock()
			ft.Until(t, 30*time.Second, func() string { return "the watcher does not look" }, func() bool {
				w.mu.Lock()
				defer w.mu.Unlock()
				return w.looked.After(before)
			})
		}
	}

	// The pid file names a process of another folder.
	write(filepath.Join(d.dir, "launch"), "a")
	write(d.pidFile(), fmt.Sprintln(sleeper(t, root).Process.Pid))
	w.follow(d)
	looks()
	if got := lives(); len(got) > 0 {
		t.Errorf("a process of another folder was recorded: %+v", got)
	}

	// Then it names the process.
	cmd := sleeper(t, d.dir)
	write(d.pidFile(), fmt.Sprintln(cmd.Process.Pid))
	looks()
	got := lives()
	if len(got) != 1 || got[0].PID != cmd.Process.Pid || got[0].Role != "main" || got[0].Launch != "a" ||
		got[0].gone != 0 {
		t.Fatalf("pid %d was not recorded once: %+v", cmd.Process.Pid, got)
	}

	// It ends.
	_ = cmd.Process.Kill()
	ft.Until(t, 30*time.Second, func() string { return "its end is not noticed" },
		func() bool { return lives()[0].gone != 0 })
	_ = cmd.Wait()
	looks()
	w.mu.Lock()
	lines := len(w.lines)
	w.mu.Unlock()
	if got := lives(); len(got) != 1 || lines != 1 {
		t.Errorf("recorded again in %d lines: %+v", lines, got)
	}
}

// TestJudgeOfFinalState: a launcher does not stand for the process that it brings up.
func TestJudgeOfFinalState(t *testing.T) {
	for name, test := range map[string]struct {
		row  client.Process
		main bool
		want string
	}{
		"stopped, and a launcher lives":           {row: client.Process{State: "stopped"}},
		"the status names the launcher":           {client.Process{State: "running", PID: 100}, false, colPID},
		"the status names the launcher, not main": {client.Process{State: "running", PID: 100}, true, colPID},
		"the status names the main process":       {client.Process{State: "running", PID: 101, Managed: true}, true, ""},
		"supervised, and only a launcher lives": {client.Process{State: "running", PID: 100, Managed: true}, false,
			colNotAlive},
		"stopped, and a main process lives": {client.Process{State: "stopped"}, true, colPID},
	} {
		t.Run(name, func(t *testing.T) {
			s := tell(t, kind{name: "slow"})
			s.process("launcher", "a", 1, 0)
			if test.main {
				s.process("main", "a", 2, 0)
			}
			if p := s.compare(s.d, &test.row); p.column != test.want {
				t.Errorf("%q, not %q: %s", p.column, test.want, p.text)
			}
		})
	}
}
