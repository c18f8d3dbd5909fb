package host_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/host"
	"github.com/gozzard/gozzard/internal/supervise"
)

const dumpSetup = `echo "A=$A B=$B C=$C HOME=$HOME umask=$(umask) nice=$(nice) gid=$(id -g) files=$(ulimit -Sn)/$(ulimit -Hn) core=$(ulimit -c)" >`

// TestSetup runs a command as root and as an ordinary account, with and without a cgroup, in a shell and in its place.
func TestSetup(t *testing.T) {
	for name, change := range map[string][]func(*host.Options){"cgroup": nil, "no cgroup": {noCgroups}} {
		t.Run(name, func(t *testing.T) { checkSetup(t, newHost(t, change...)) })
	}
}

// TestSetupAsNobody is TestSetup with an agent of an ordinary account.
func TestSetupAsNobody(t *testing.T) {
	if os.Geteuid() == 0 {
		asNobody(t)
		return
	}
	checkSetup(t, newHost(t, noCgroups))
}

func write(t *testing.T, path, text string) {
	t.Helper()
	check(t, os.WriteFile(path, []byte(text), 0o644))
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func checkSetup(t *testing.T, f *fixture) {
	s := f.spec("sh")
	file := filepath.Join(f.dir, "vars")
	write(t, file, "# comment\n\nexport A=file\nB=\"of file\"\n")
	s.Exec = gozzard.Exec{Env: map[string]string{"A": "own", "C": "it's", "HOME": "/elsewhere"}, EnvFile: file, Umask: "0027",
		Nice: 5, Rlimits: map[string]gozzard.Rlimit{"nofile": {Soft: 100, Hard: 200}, "core": {}}}
	if res := f.run(f.key("shell"), s, false, dumpSetup+f.dir+"/out"); res.ExitCode != 0 {
		t.Fatalf("%+v", res)
	}
	got := content(t, f.dir+"/out")
	for _, want := range []string{"A=own B=of file C=it's HOME=/elsewhere umask=0027 nice=5", "files=100/200 core=0"} {
		if !strings.Contains(got, want) {
			t.Errorf("%s\nwant %s", got, want)
		}
	}

	// A program in place of the shell has them too, before its first instruction.
	sleep := f.program("limited")
	s = f.spec("limited")
	s.Exec.Rlimits = map[string]gozzard.Rlimit{"nofile": {Soft: 33, Hard: 44}}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	res, err := f.Run(ctx, supervise.Run{Key: f.key("plain"), Spec: s, Action: gozzard.ActionStart, Keeps: true,
		Command: "exec " + sleep + " 100", Front: 50 * time.Millisecond})
	if err != nil || !res.Front {
		t.Fatalf("%+v %v", res, err)
	}
	found, err := f.Find(supervise.Query{Key: f.key("plain"), Spec: s})
	if err != nil || found.Proc.IsZero() {
		t.Fatalf("%+v %v", found, err)
	}
	f.kills(found.Proc.PID)
	if limits := content(t, "/proc/"+strconv.Itoa(found.Proc.PID)+"/limits"); !strings.Contains(strings.Join(strings.Fields(limits), " "),
		"Max open files 33 44") {
		t.Errorf("%s", limits)
	}
	if status := content(t, "/proc/"+strconv.Itoa(found.Proc.PID)+"/status"); !strings.Contains(status, "TracerPid:\t0") {
		t.Error("the process is still traced")
	}
}

// TestSetupRefuses checks that a command does not run if something of its set-up cannot be had.
func TestSetupRefuses(t *testing.T) {
	f := newHost(t)
	write(t, f.dir+"/bad", "A=1\nnot a line\n")
	write(t, f.dir+"/own", "GOZZARD_RUN=1\n")
	write(t, f.dir+"/long", "A="+strings.Repeat("x", 70_000)+"\n")
	check(t, os.Symlink(f.dir+"/bad", f.dir+"/link"))
	check(t, os.Link(f.dir+"/own", f.dir+"/second"))
	for want, exec := range map[string]gozzard.Exec{
		"line 2 is not NAME=VALUE":               {EnvFile: f.dir + "/bad"},
		"it is a symbolic link":                  {EnvFile: f.dir + "/link"},
		"it has 2 names":                         {EnvFile: f.dir + "/second"},
		"more than 65536 bytes":                  {EnvFile: f.dir + "/long"},
		"not a regular file":                     {EnvFile: f.dir},
		"no such file":                           {EnvFile: f.dir + "/absent"},
		"no such group on this host":             {Group: "no-such-group"},
		`umask "x" is not octal digits`:          {Umask: "x"},
		"cannot set rlimits: bogus is not known": {Rlimits: map[string]gozzard.Rlimit{"bogus": {}}},
		"cannot set rlimits: nofile 1099511627776 is above the hard limit ": {Rlimits: map[string]gozzard.Rlimit{"nofile": {Soft: 1 << 40, Hard: 1 << 40}}},
		"raise LimitNOFILE= in the unit of the agent (systemctl edit gozzard-agent) as far as the machine allows, and restart the agent: operation not permitted": {
			Rlimits: map[string]gozzard.Rlimit{"nofile": {Soft: 10, Hard: gozzard.Unlimited}}},
		"cannot set rlimits: nofile 10: invalid argum": {Rlimits: map[string]gozzard.Rlimit{"nofile": {Soft: 10, Hard: 5}}},
	} {
		s := f.spec("sh")
		s.Exec = exec
		_, err := f.Run(t.Context(), supervise.Run{Key: f.key("x"), Spec: s, Command: "touch " + f.dir + "/ran"})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %s", exec, err, want)
		}
	}
	if _, err := os.Stat(f.dir + "/ran"); err == nil {
		t.Error("a command ran without its set-up")
	}
}

// TestSetupOfAnotherAccount checks groups, and that a definition cannot show an account a file that it may not read.
func TestSetupOfAnotherAccount(t *testing.T) {
	needsRoot(t)
	f := newHost(t)
	check(t, os.Chmod(f.dir, 0o777))
	s := f.spec("sh")
	s.Identity.User, s.Exec.Group = "nobody", "mail"
	s.Exec.Rlimits = map[string]gozzard.Rlimit{"nofile": {Soft: 700, Hard: 700}}
	if res := f.run(f.key("group"), s, false, "echo $(id -un) $(id -gn) $(ulimit -n) >"+f.dir+"/out"); res.ExitCode != 0 {
		t.Fatalf("%+v", res)
	}
	if got := strings.TrimSpace(content(t, f.dir+"/out")); got != "nobody mail 700" {
		t.Errorf("%q", got)
	}

	// A file that only root can read stays secret.
	s.Exec = gozzard.Exec{EnvFile: f.dir + "/secret"}
	write(t, f.dir+"/secret", "A=secret\n")
	check(t, os.Chmod(f.dir+"/secret", 0o600))
	_, err := f.Run(t.Context(), supervise.Run{Key: f.key("x"), Spec: s, Command: "true"})
	if err == nil || !strings.Contains(err.Error(), "permission denied") {
		t.Errorf("%v", err)
	}

	// A file of a third account is not trusted.
	check(t, os.Chmod(f.dir+"/secret", 0o644))
	check(t, os.Chown(f.dir+"/secret", 12345, 0))
	_, err = f.Run(t.Context(), supervise.Run{Key: f.key("x"), Spec: s, Command: "true"})
	if err == nil || !strings.Contains(err.Error(), "it belongs to uid 12345") {
		t.Errorf("%v", err)
	}
}

// forbidding is a policy that forbids a variable.
type forbidding struct{ name string }

func (forbidding) Plain(string) ([]string, bool, error)       { return nil, false, nil }
func (forbidding) Program(string, string, string, bool) error { return nil }
func (p forbidding) Variable(name string) error {
	if name == p.name {
		return errors.New("variable " + name + " is forbidden")
	}
	return nil
}

// TestSetupAsksThePolicy checks the variables of a file when the command starts: the file may have changed.
func TestSetupAsksThePolicy(t *testing.T) {
	f := newHost(t, func(o *host.Options) { o.Programs = forbidding{"LD_PRELOAD"} })
	s := f.spec("sh")
	s.Exec.EnvFile = f.dir + "/vars"
	write(t, s.Exec.EnvFile, "A=1\n")
	if res := f.run(f.key("x"), s, false, "true"); res.ExitCode != 0 {
		t.Fatalf("%+v", res)
	}
	write(t, s.Exec.EnvFile, "LD_PRELOAD=/tmp/x.so\n")
	_, err := f.Run(t.Context(), supervise.Run{Key: f.key("x"), Spec: s, Command: "true"})
	if err == nil || !strings.Contains(err.Error(), "variable LD_PRELOAD is forbidden") {
		t.Errorf("%v", err)
	}
}
