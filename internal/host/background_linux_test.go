package host_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/host"
	"github.com/gozzard/gozzard/internal/supervise"
)

func TestStopInTheBackgroundRunsToItsEnd(t *testing.T) {
	for name, change := range map[string]func(*host.Options){"cgroups": func(*host.Options) {}, "sessions": noCgroups} {
		t.Run(name, func(t *testing.T) {
			f := newHost(t, change)
			k, s := f.key("a"), f.spec("x")
			run := func(command string, timeout time.Duration) supervise.Result {
				res, err := f.Run(t.Context(), supervise.Run{Key: k, Spec: s, Action: gozzard.ActionStop,
					Command: command, Timeout: timeout})
				if err != nil {
					t.Fatal(err)
				}
				return res
			}

			if res := run("{ sleep 0.3; echo done; echo >ended; } &", 20*time.Second); res.ExitCode != 0 ||
				res.Output != "done" {
				t.Errorf("%+v", res)
			}

			if _, err := os.Stat(f.dir + "/ended"); err != nil {
				t.Error("the background process did not run to its end")
			}
			if res := run("sleep 300 & echo $! >late", 200*time.Millisecond); res.ExitCode != 0 || res.TimedOut {
				t.Errorf("%+v", res)
			}
			if pid := readPID(t, f.dir+"/late"); alive(pid) {
				f.kills(pid)
				t.Error("a background process that took too long is still running")
			}
		})
	}
}

// The start and stop scripts that callers of Job usually have run with the commands that the Job door makes of them.
func TestScriptsInTheBackground(t *testing.T) {
	v := newSupervised(t)
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(v.dir, name), []byte("#!/bin/sh\n"+text), 0o755); err != nil {
			t.Fatal(err)
		}
	}

	v.program("svc")
	write("start.sh", "nohup ./$1 300 >/dev/null 2>&1 &\necho $! >svc.pid\n")
	write("stop.sh", "sleep 0.2\nkill $(cat svc.pid)\n")
	s := v.definition(fmt.Sprintf("cd %s && ./start.sh svc &", v.dir))
	s.Control.Stop = fmt.Sprintf("cd %s && ./stop.sh svc &", v.dir)
	s.Control.Shell = gozzard.ShellSh
	s.Identity.PIDPath = filepath.Join(v.dir, "svc.pid")
	s.Policy.StartCheckSecs, s.Policy.StopCheckSecs, s.Policy.OpTimeout = 1, 5, 10
	k := v.key("job")
	for _, a := range []gozzard.Action{gozzard.ActionStart, gozzard.ActionStop, gozzard.ActionStart,
		gozzard.ActionStop} {
		select {
		case out := <-v.apply(a, k, s):
			if out.Code != gozzard.CodeOK || out.Forced {
				t.Fatalf("%s: %+v", a, out)
			}
		case <-time.After(30 * time.Second):
			t.Fatalf("%s: no verdict", a)
		}
	}
}

func TestShellOfAnotherSystem(t *testing.T) {
	f := newHost(t)
	s := f.spec("x")
	for _, shell := range []gozzard.Shell{gozzard.ShellBat, gozzard.ShellPS1, "exe"} {
		s.Control.Shell = shell
		_, err := f.Run(t.Context(), supervise.Run{Key: f.key("a"), Spec: s, Action: gozzard.ActionStart,
			Command: "echo >ran", Timeout: time.Minute, Keeps: true})
		if err == nil || !strings.Contains(err.Error(),
			fmt.Sprintf("commands written for %q cannot run on linux", shell)) {
			t.Errorf("%s: %v", shell, err)
		}
	}

	if _, err := os.Stat(f.dir + "/ran"); err == nil {
		t.Error("a command ran")
	}
}
