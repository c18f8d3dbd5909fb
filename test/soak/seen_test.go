//go:build linux

package soak_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// lookEvery is how often the pid files of the programs of the distribution are read.
const lookEvery = 50 * time.Millisecond

// follow watches the pid file of a program of the distribution. Such a program records nothing itself, and the command
// that started it may be ended before it can record it.
func (w *watcher) follow(d *daemon) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.programs = append(w.programs, d)
}

// lookAtPrograms records the main processes of programs that are not known yet. The soak leaves their pid files alone.
func (w *watcher) lookAtPrograms() {
	if time.Since(w.looked) < lookEvery {
		return
	}
	w.looked = time.Now()

	for _, d := range w.programs {
		l := line{At: w.looked.UnixNano(), Event: "up", Name: d.id, Role: "main", Text: "seen"}
		l.PID, l.Start = w.mainOf(d)
		if l.PID == 0 || w.find(l) != nil {
			continue
		}
		launch, err := os.ReadFile(filepath.Join(d.dir, "launch"))
		if err != nil || len(launch) == 0 { // it is just being written: the next look finds it
			continue
		}
		l.Launch = string(launch)
		w.take(l)
	}
}

// mainOf is the live process that the pid file of a program names, 0 for none. A pid file may be old and its pid used
// again, so the process must also run in the folder of the daemon or have the folder in its arguments.
func (w *watcher) mainOf(d *daemon) (pid int, start uint64) {
	b, err := os.ReadFile(d.pidFile())
	first, _, _ := strings.Cut(string(b), "\n")
	pid, perr := strconv.Atoi(strings.TrimSpace(first))
	if err != nil || perr != nil || pid <= 0 {
		return 0, 0
	}

	before, err := w.proc.Stat(pid)
	if err != nil || before.Dead() {
		return 0, 0
	}
	folder, _ := os.Readlink(fmt.Sprintf("/proc/%d/cwd", pid))
	args, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if !strings.HasPrefix(folder+"/", d.dir+"/") && !strings.Contains(string(args), d.dir+"/") {
		return 0, 0
	}

	// Folder and arguments must be those of the same process.
	after, err := w.proc.Stat(pid)
	if err != nil || after.Start != before.Start {
		return 0, 0
	}
	return pid, before.Start
}
