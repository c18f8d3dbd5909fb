package host_test

import (
	"fmt"
	"os"
	"os/user"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/host"
	"github.com/gozzard/gozzard/internal/procfs"
	"github.com/gozzard/gozzard/internal/supervise"
)

const dump = `env | sort
for fd in 0 1 2 3 4 5 6 7 8 9; do [ -e /proc/$$/fd/$fd ] && echo "fd $fd $(readlink /proc/$$/fd/$fd)"; done
echo "umask $(umask)"
echo "sid $(cut -d' ' -f6 /proc/$$/stat | grep -qx $$ && echo own)"
grep '^0::' /proc/$$/cgroup
grep -E '^(Uid|Gid|Groups|CapInh|CapPrm|CapEff|CapAmb|NoNewPrivs|SigIgn|SigBlk):' /proc/$$/status`

// TI2: a command inherits nothing from the agent.
func TestTI2CommandHasExactlyWhatItShould(t *testing.T) {
	needsRoot(t)
	t.Setenv("SECRET_OF_THE_AGENT", "x")
	t.Setenv("LD_PRELOAD", "")
	t.Setenv("BASH_ENV", "/tmp/x")
	t.Setenv("TZ", "Asia/Shanghai")
	leak, err := syscall.Open("/etc/passwd", syscall.O_RDONLY, 0) // not marked to be closed
	if err != nil {
		t.Fatal(err)
	}

	defer syscall.Close(leak)
	old := syscall.Umask(0o077)
	defer syscall.Umask(old)
	f := newHost(t)
	f.needsCgroups()
	k, s, op := f.key("环境"), f.spec("x"), gozzard.NewOpID()
	s.Identity.User = "nobody"
	command := "(" + dump + ") >" + f.dir + "/dump; touch made"

	if err := os.Chmod(f.dir, 0o777); err != nil {
		t.Fatal(err)
	}

	res, err := f.Run(t.Context(), supervise.Run{Key: k, Spec: s, Op: op, Command: command, Keeps: true})
	if err != nil || res.ExitCode != 0 {
		t.Fatalf("%+v %v", res, err)
	}

	got := slices.DeleteFunc(strings.Split(content(t, f.dir+"/dump"), "\n"),
		func(l string) bool { return strings.HasPrefix(l, "SHLVL=") || strings.HasPrefix(l, "_=") })

	for i, l := range got { // the run's name is random
		if strings.HasPrefix(l, "0::") {
			got[i], _, _ = strings.Cut(l, "/keep-")
		}
		if at := strings.LastIndexByte(l, '-'); strings.HasPrefix(l, "GOZZARD_RUN=") && at > 0 {
			got[i] = l[:at]
		}
	}

	u, err := user.Lookup("nobody")
	if err != nil {
		t.Fatal(err)
	}

	log := f.logDir(k) + "/current.log"
	want := []string{
		"GOZZARD_AGENT=" + f.opt.Instance, "GOZZARD_NAME=环境", "GOZZARD_NAMESPACE=测试",
		"GOZZARD_OP_ID=" + op.String(), "GOZZARD_RUN=keep-" + op.String(), "HOME=" + u.HomeDir,
		"LANG=C.UTF-8", "LOGNAME=nobody",
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "PWD=" + f.dir, "SHELL=/bin/sh",
		"TZ=Asia/Shanghai", "USER=nobody",
		"fd 0 /dev/null", "fd 1 " + log, "fd 2 " + log, "umask 0022", "sid own",
		"0::/gozzard/" + f.opt.Instance + "/" + host.KeyFolder(k),
		fmt.Sprintf("Uid:\t%s\t%[1]s\t%[1]s\t%[1]s", u.Uid), fmt.Sprintf("Gid:\t%s\t%[1]s\t%[1]s\t%[1]s", u.Gid),
		"Groups:\t" + u.Gid,
		"SigBlk:\t0000000000000000", ownSignals(t, "SigIgn:"), "CapInh:\t0000000000000000", "CapPrm:\t0000000000000000",
		"CapEff:\t0000000000000000", "CapAmb:\t0000000000000000", "NoNewPrivs:\t1",
	}

	for i := range got {
		got[i] = strings.TrimRight(got[i], " ")
	}

	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	if fi, err := os.Stat(f.dir + "/made"); err != nil || fi.Mode().Perm() != 0o644 {
		t.Errorf("%v %v", fi, err)
	}
	if now := syscall.Umask(0o077); now != 0o077 {
		t.Errorf("the umask of the agent has become %o", now)
	}
	if c, err := proc.Credentials(os.Getpid()); err != nil || c.NoNewPrivs {
		t.Errorf("the agent itself: %+v %v", c, err)
	}
}

// TE4: a command has no privilege of the agent.
func TestTE4PrivilegesAreGivenUp(t *testing.T) {
	needsRoot(t)
	f := newHost(t)
	for _, name := range []string{"nobody", "daemon", "www-data", "root"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		k, s := f.key(name), f.spec("svc")
		s.Identity.User = name
		p := f.front(k, s, "exec "+f.program("svc")+" 300").Proc
		c, err := proc.Credentials(p.PID)
		if err != nil {
			t.Fatal(err)
		}
		groups, err := u.GroupIds()
		if err != nil {
			t.Fatal(err)
		}
		var want []string
		for _, id := range c.Groups {
			want = append(want, fmt.Sprint(id))
		}
		slices.Sort(want)
		slices.Sort(groups)
		if fmt.Sprint(c.UIDs[0]) != u.Uid || c.UIDs[0] != c.UIDs[2] || c.UIDs[0] != c.UIDs[3] ||
			fmt.Sprint(c.GIDs[2]) != u.Gid ||
			name != "root" && (!c.NoNewPrivs || !slices.Equal(want, groups)) || name == "root" && c.NoNewPrivs {
			t.Errorf("%s: %+v, groups %v", name, c, groups)
		}
		if err := clean(f.Host, k); err != nil {
			t.Error(err)
		}
	}
}

func TestTE4SetuidProgramsGiveNothing(t *testing.T) {
	needsRoot(t)

	for allowed, want := range map[bool]string{false: "65534", true: "0"} {
		f := newHost(t, func(o *host.Options) { o.AllowSetuid = allowed })
		b, err := os.ReadFile("/usr/bin/id")
		if err != nil {
			t.Skip(err)
		}
		marked := f.dir + "/marked"
		if err := os.WriteFile(marked, b, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(marked, 0o755|os.ModeSetuid); err != nil {
			t.Fatal(err)
		}
		s := f.spec("x")
		s.Identity.User = "nobody"
		if res := f.run(f.key("a"), s, false, marked+" -u"); res.Output != want {
			t.Errorf("allowed %v: %+v", allowed, res)
		}
	}
}

func TestTE4WrongCredentialsAreSeen(t *testing.T) {
	good := procfs.Credentials{UIDs: [4]uint32{7, 7, 7, 7}, GIDs: [4]uint32{8, 8, 8, 8}, Groups: []uint32{8, 9},
		NoNewPrivs: true}
	if r := host.CredentialsDiffer(good, 7, 8, []uint32{9, 8, 8}, true); r != "" {
		t.Error(r)
	}

	for name, change := range map[string]func(*procfs.Credentials){
		"saved user":     func(c *procfs.Credentials) { c.UIDs[2] = 0 },
		"user of files":  func(c *procfs.Credentials) { c.UIDs[3] = 0 },
		"group":          func(c *procfs.Credentials) { c.GIDs[1] = 0 },
		"another group":  func(c *procfs.Credentials) { c.Groups = []uint32{0, 8, 9} },
		"missing group":  func(c *procfs.Credentials) { c.Groups = nil },
		"new privileges": func(c *procfs.Credentials) { c.NoNewPrivs = false },
	} {
		c := good
		change(&c)
		if host.CredentialsDiffer(c, 7, 8, []uint32{8, 9}, true) == "" {
			t.Errorf("%s is not seen", name)
		}
	}
}

// ownSignals is the line of this program. Ignored signals are inherited, and the program that starts the tests may
// ignore some.
func ownSignals(t *testing.T, name string) string {
	t.Helper()
	for _, l := range strings.Split(content(t, "/proc/self/status"), "\n") {
		if strings.HasPrefix(l, name) {
			return l
		}
	}
	t.Fatalf("no %s", name)
	return ""
}

// An agent with a protected OOM score does not pass it on to its commands, nor to what they start, however soon that
// is.
func TestCommandsTakeTheirNormalPlace(t *testing.T) {
	needsRoot(t)
	const own = "/proc/self/oom_score_adj"
	if err := os.WriteFile(own, []byte("500"), 0); err != nil {
		t.Skip(err)
	}

	defer func() {
		if err := os.WriteFile(own, []byte("0"), 0); err != nil {
			t.Error(err)
		}
	}()

	f := newHost(t)
	f.needsCgroups()
	s := f.spec("x")
	s.Identity.User = "nobody"
	for i := range 40 {
		k := f.key(fmt.Sprint(i))
		res := f.run(k, s, true, "sleep 300 </dev/null >/dev/null 2>&1 & echo $!")
		if got := content(t, "/proc/"+strings.TrimSpace(res.Output)+"/oom_score_adj"); got != "0" {
			t.Errorf("the OOM score is %s", got)
		}
		if err := clean(f.Host, k); err != nil {
			t.Error(err)
		}
	}

	s.Identity.User = "root"
	res := f.run(f.key("chosen"), s, true,
		"sh -c 'echo 300 >/proc/self/oom_score_adj; exec sleep 300' </dev/null >/dev/null 2>&1 & until grep -qx 300 /proc/$!/oom_score_adj; do sleep 0.01; done; echo $!")
	if got := content(t, "/proc/"+strings.TrimSpace(res.Output)+"/oom_score_adj"); got != "300" {
		t.Errorf("an OOM score that a process has chosen became %s", got)
	}
}
