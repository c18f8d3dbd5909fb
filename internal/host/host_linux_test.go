package host_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/host"
	"github.com/gozzard/gozzard/internal/supervise"
)

func TestFacts(t *testing.T) {
	f := newHost(t)
	got := f.Facts()
	if got.Hostname == "" || got.OS != "linux" || got.CPUs < 1 || got.MemBytes < 1<<20 || len(got.BootID) < 8 {
		t.Errorf("%+v", got)
	}
}

func TestNewRefuses(t *testing.T) {
	good := host.Options{Instance: "a", StateDir: t.TempDir(), Log: testLog(t)}
	for name, change := range map[string]func(*host.Options){
		"instance that leaves its folder": func(o *host.Options) { o.Instance = "../x" },
		"no instance":                     func(o *host.Options) { o.Instance = "" },
		"relative state folder":           func(o *host.Options) { o.StateDir = "x" },
		"no logger":                       func(o *host.Options) { o.Log = nil },
		"no proc":                         func(o *host.Options) { o.ProcRoot = "/nonexistent" },
	} {
		o := good
		change(&o)
		if h, err := host.New(o); err == nil {
			_ = h.Close()
			t.Errorf("%s: taken", name)
		}
	}
}

func TestRunReportsHowACommandEnded(t *testing.T) {
	f := newHost(t)
	k, s := f.key("命令"), f.spec("x")
	for _, c := range []struct {
		command, signal, output string
		code                    int
	}{
		{"echo 你好; echo err >&2", "", "你好\nerr", 0},
		{"echo bad; exit 3", "", "bad", 3},
		{"kill -9 $$", "SIGKILL", "", -1},
		{"kill -TERM $$", "SIGTERM", "", -1},
		{"pwd", "", f.dir, 0},
		{"echo $GOZZARD_NAMESPACE/$GOZZARD_NAME", "", "测试/命令", 0},
		{"head -c 3 /dev/stdin", "", "", 0},
		{"", "", "", 0},
	} {
		res := f.run(k, s, false, c.command)
		if res.ExitCode != c.code || res.Signal != c.signal || res.Output != c.output || res.TimedOut {
			t.Errorf("%s: %+v", c.command, res)
		}
	}

	for command, text := range map[string]string{
		"./nothing-here": "not found",
		"touch f; ./f":   "ermission denied",
	} {
		if res := f.run(k, s, false, command); res.ExitCode < 126 || !strings.Contains(res.Output, text) {
			t.Errorf("%s: %+v", command, res)
		}
	}

	if left, _ := os.ReadDir(filepath.Join(f.state, "output")); len(left) != 0 {
		t.Errorf("output files are left: %v", left)
	}
}

func TestRunKeepsTheEndOfMuchOutput(t *testing.T) {
	f := newHost(t)
	res := f.run(f.key("a"), f.spec("x"), false,
		"i=0; while [ $i -lt 3000 ]; do echo line $i; i=$((i+1)); done; exit 1")
	lines := strings.Split(res.Output, "\n")
	if res.ExitCode != 1 || len(lines) != 20 || lines[19] != "line 2999" {
		t.Errorf("%+v", res)
	}
}

func TestRunHasAFixedEnvironmentAndNothingElse(t *testing.T) {
	t.Setenv("SECRET_OF_THE_AGENT", "x")
	t.Setenv("TZ", "Asia/Shanghai")
	leak, err := os.Open("/dev/null")
	if err != nil {
		t.Fatal(err)
	}

	defer leak.Close()
	f := newHost(t)
	res := f.run(f.key("a"), f.spec("x"), false,
		"env | cut -d= -f1 | sort | tr '\\n' ' '; ls /proc/self/fd | tr '\\n' ' '; ps -o sid= -p $$ 2>/dev/null | grep -c $$ || true")
	// 3 is ls itself
	const want = "GOZZARD_AGENT GOZZARD_NAME GOZZARD_NAMESPACE GOZZARD_OP_ID GOZZARD_RUN HOME LANG LOGNAME PATH PWD SHELL TZ USER 0 1 2 3 1"
	if got := strings.Replace(res.Output, "SHELL SHLVL ", "SHELL ", 1); got != want {
		t.Errorf("got %q\nwant %q", got, want)
	}
}

func TestRunRefuses(t *testing.T) {
	f := newHost(t)
	file := filepath.Join(f.dir, "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}

	for _, c := range []struct{ dir, user, command, want string }{
		{f.dir + "/none", "", ":", "folder (setup_path) " + f.dir + "/none: no such directory"},
		{file, "", ":", "folder (setup_path) " + file + ": not a directory"},
		{"relative", "", ":", `folder (setup_path) "relative": not a clean absolute path`},
		{f.dir + "/../x", "", ":", "not a clean absolute path"},
		{f.dir, "no-such-user-here", ":", "cannot run as no-such-user-here: no such user on this host"},
		{f.dir, "", "a\x00b", "NUL"},
	} {
		s := f.spec("x")
		s.Identity.SetupPath, s.Identity.User = c.dir, c.user
		_, err := f.Run(t.Context(), supervise.Run{Key: f.key("a"), Spec: s, Command: c.command, Timeout: time.Minute})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

func TestRunAsAnotherUserNeedsRoot(t *testing.T) {
	if os.Geteuid() == 0 {
		asNobody(t)
		return
	}
	f := newHost(t)
	s := f.spec("x")
	s.Identity.User = "root"
	_, err := f.Run(t.Context(), supervise.Run{Key: f.key("a"), Spec: s, Command: ":", Timeout: time.Minute})
	if err == nil || !strings.HasPrefix(err.Error(), "cannot run as root: the agent runs as ") {
		t.Error(err)
	}
}

func TestRunAsAnotherUser(t *testing.T) {
	needsRoot(t)
	f := newHost(t)
	k, s := f.key("a"), f.spec("服务")
	s.Identity.User = "nobody"
	res := f.run(k, s, false, "id -un; id -Gn; echo $HOME $USER; echo again >>/dev/stdout; cat /etc/shadow")
	want := "nobody\nnogroup\n/nonexistent nobody\nagain\n"
	if res.ExitCode == 0 || !strings.HasPrefix(res.Output, want) || !strings.Contains(res.Output, "ermission denied") {
		t.Errorf("%+v", res)
	}

	closed := filepath.Join(f.dir, "closed")
	if err := os.Mkdir(closed, 0o700); err != nil {
		t.Fatal(err)
	}

	s.Identity.SetupPath = closed
	_, err := f.Run(t.Context(), supervise.Run{Key: k, Spec: s, Command: ":", Timeout: time.Minute})
	if err == nil || err.Error() != "folder (setup_path) "+closed+": user nobody may not enter it" {
		t.Error(err)
	}

	s.Identity.SetupPath = f.dir
	found := f.daemon(k, &gozzard.Spec{Identity: gozzard.Identity{ProcName: "服务", SetupPath: f.dir, User: "root"}},
		f.program("服务")+" 60")
	if found, err = look(f.Host, k, s); err != nil || !found.Proc.IsZero() {
		t.Errorf("root's process was taken for nobody's: %+v %v", found, err)
	}
}
