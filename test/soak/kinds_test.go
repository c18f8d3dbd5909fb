//go:build linux

package soak_test

import (
	"cmp"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	ft "github.com/gozzard/gozzard/test/fleettest"
)

// kind is a way in which a daemon behaves. Its commands are those of goosectl.
type kind struct {
	name   string
	share  int  // of 100 daemons
	nopid  bool // it has no pid file
	mortal bool // it does not stay up, so it need not be alive in the end

	stop, restart, reload, kill bool // the commands that its definition has
}

// kinds are the odd daemons. In each kind every second daemon has no stop_cmd.
func kinds() []kind {
	return []kind{
		{name: "plain", share: 10, stop: true, reload: true},
		{name: "nopid", share: 8, nopid: true, stop: true},
		{name: "fork", share: 14, stop: true, restart: true, reload: true, kill: true},
		{name: "latepid", share: 8, stop: true, restart: true, reload: true},
		{name: "exec", share: 12, stop: true, reload: true},
		{name: "rename", share: 6, stop: true, restart: true, reload: true},
		{name: "handover", share: 9, stop: true, reload: true},
		{name: "usr2", share: 9, stop: true, reload: true},
		{name: "workers", share: 9, stop: true, reload: true},
		{name: "stubborn", share: 3},
		{name: "flood", share: 2, stop: true},
		{name: "slow", share: 6, stop: true, restart: true, kill: true},
		{name: "forknopid", share: 5, nopid: true, stop: true, restart: true},
		{name: "slownopid", share: 4, nopid: true, stop: true},
		{name: "fails", share: 2, mortal: true},
		{name: "crash", share: 2, stop: true, mortal: true},
	}
}

// How a process came into the fleet, and by which doors it can be operated.
const (
	ownSpace = "soak"         // registered by callers: GSE, our API and the command line
	kitSpace = "GSEKIT_BIZ_2" // from the topology: GSEKit jobs, and the doors above
	jobSpace = "JOB_BIZ_1"    // defined by each request of Job
)

// daemon is one definition on one host, with everything that happens to it.
type daemon struct {
	kind
	id      string // its folder, and the name in the journal
	space   string
	process string // its name in the fleet; known for jobSpace only after the first answer
	host    int
	dir     string
	program program // not goosed, for kind real
	account string  // as which it runs

	mu       sync.Mutex // held while its definition or its pid file is changed
	windows  []window   // guarded by soak.mu
	faults   []fault    // guarded by soak.mu
	switched []span     // when its definition named another program or account; guarded by soak.mu
}

// window is the time in which an operation may have worked on a daemon.
type window struct {
	span
	action, door, task string
	verdict            string
}

// span is a stretch of time; to is zero while it lasts.
type span struct{ from, to time.Time }

func (s span) covers(t time.Time, slack time.Duration) bool {
	return !t.Before(s.from.Add(-slack)) && (s.to.IsZero() || !t.After(s.to.Add(slack)))
}

// fault is something that the soak did to a daemon or to a program.
type fault struct {
	at   time.Time
	pid  int // the process that was signalled, 0 for none
	text string
}

func (d *daemon) pidFile() string {
	if d.nopid {
		return ""
	}
	if d.program.pidFile != "" {
		return filepath.Join(d.dir, d.program.pidFile)
	}
	return filepath.Join(d.dir, "goose.pid")
}

// follows reports whether the pid file alone says which process has taken over from the one before. To falsify it would
// make the truth unknowable.
func (d *daemon) follows() bool { return d.kind.name == "handover" || d.kind.name == "usr2" }

// hasWorkers reports whether the main process starts others with its own name.
func (d *daemon) hasWorkers() bool { return d.kind.name == "workers" || d.kind.name == "real" }

// has reports whether the definition has a command.
func (d *daemon) has(action string) bool {
	switch action {
	case "start":
		return true
	case "stop":
		return d.stop
	case "restart":
		return d.restart
	case "reload":
		return d.reload
	case "kill":
		return d.kill
	}
	return false
}

// spec is the definition in the words of the API. name and user replace what it usually has, unless they are empty.
func (d *daemon) spec(name, user string) ft.J {
	name, user = cmp.Or(name, d.program.name, "goosed"), cmp.Or(user, d.program.user, d.account)
	control := ft.J{}
	for _, c := range []string{"start", "stop", "restart", "reload", "kill"} {
		if d.has(c) {
			control[c+"_cmd"] = "./" + c + ".sh"
		}
	}
	return ft.J{
		"identity": ft.J{"proc_name": name, "setup_path": d.dir, "pid_path": d.pidFile(), "user": user},
		"control":  control,
		"monitor_policy": ft.J{"auto_type": 1, "start_check_secs": 1, "stop_check_secs": 2, "start_retries": 100000,
			"start_interval": 1, "op_timeout": 20},
	}
}

// lay makes the folder of a daemon with its scripts.
func (d *daemon) lay(t testing.TB, root string) {
	t.Helper()
	conf, err := json.Marshal(ft.J{"kind": d.kind.name, "name": d.id, "journal": filepath.Join(root, "journal"),
		"pid_file": d.pidFile(), "daemon": filepath.Join(root, "goosed"), "other": filepath.Join(root, "gander")})
	if err != nil {
		t.Fatal(err)
	}

	old := syscall.Umask(0)
	defer syscall.Umask(old)
	if err := os.Mkdir(d.dir, 0o777); err != nil { // commands run as other accounts, too
		t.Fatal(err)
	}
	files := map[string]string{"goosed.json": string(conf)}
	for _, c := range []string{"start", "stop", "restart", "reload", "kill"} {
		files[c+".sh"] = "#!/bin/sh\nexec ../goosectl " + c + "\n"
	}
	maps.Copy(files, d.program.files(d.dir))
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(d.dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
}
