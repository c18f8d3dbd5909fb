package host_test

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/host"
	"github.com/gozzard/gozzard/internal/policy"
	"github.com/gozzard/gozzard/internal/supervise"
)

// TE1: a command gets names and folders unchanged, whatever they mean to a shell.
func TestTE1NamesAndFoldersAreLiteral(t *testing.T) {
	f := newHost(t)
	text := content(t, "../../testdata/injection.txt")
	lines := strings.Split(strings.TrimSpace(text), "\n")[1:]
	if len(lines) < 200 {
		t.Fatalf("%d texts", len(lines))
	}

	f.keys = append(f.keys, gozzard.Key{Namespace: "x", Name: "x"})
	for _, line := range lines {
		var s string
		if err := json.Unmarshal([]byte(line), &s); err != nil {
			t.Fatal(err)
		}
		dir := filepath.Join(f.dir, "d"+s)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		spec := f.spec(s)
		spec.Identity.SetupPath = dir
		spec.Identity.PIDPath = dir + "/" + s + ".pid"
		spec.Identity.ConfigPath, spec.Identity.LogPath = s, s
		// The command writes its answer to a file, because printed output is cleaned.
		res, err := f.Run(t.Context(), supervise.Run{
			Key: gozzard.Key{Namespace: s, Name: s}, Spec: spec, Timeout: 20 * time.Second,
			Command: `printf '%s\0' "$GOZZARD_NAMESPACE" "$GOZZARD_NAME" "$(pwd -P; echo x)" >seen`,
		})
		if err != nil || res.ExitCode != 0 || res.Output != "" {
			t.Fatalf("%q: %+v %v", s, res, err)
		}
		if got, want := content(t, dir+"/seen"), s+"\x00"+s+"\x00"+dir+"\nx\x00"; got != strings.TrimSpace(want) &&
			got != want {
			t.Errorf("%q was seen as %q", s, got)
		}
		if _, err := look(f.Host, gozzard.Key{Namespace: s, Name: s}, spec); err != nil {
			t.Errorf("%q: %v", s, err)
		}
		for _, d := range []string{f.dir, dir, f.state} {
			if _, err := os.Stat(d + "/ran"); err == nil {
				t.Fatalf("%q was run", s)
			}
		}
	}

	t.Logf("TE1: %d texts, all literal", len(lines))
}

// TE3: only a small regular file with one name is a pid file. It is opened for reading only after that was checked.
func TestTE3PIDFilesOfOtherKinds(t *testing.T) {
	needsRoot(t)
	f := newHost(t)
	real := f.dir + "/real.pid"
	if err := os.WriteFile(real, []byte(strconv.Itoa(os.Getppid())), 0o644); err != nil {
		t.Fatal(err)
	}

	for name, c := range map[string]struct {
		make   func(path string) error
		reason string
	}{
		"hard link": {func(path string) error { return os.Link(real, path) }, "has 2 names"},
		"device": {func(path string) error {
			return unix.Mknod(path, unix.S_IFCHR|0o666,
				int(unix.Mkdev(1, 3)))
		}, "not a regular file"},
		"block device": {func(path string) error {
			return unix.Mknod(path, unix.S_IFBLK|0o666,
				int(unix.Mkdev(7, 200)))
		}, "not a regular file"},
		"fifo":         {func(path string) error { return syscall.Mkfifo(path, 0o666) }, "not a regular file"},
		"link":         {func(path string) error { return os.Symlink(real, path) }, "symbolic link"},
		"link to self": {func(path string) error { return os.Symlink(path, path) }, "symbolic link"},
	} {
		path := f.dir + "/x.pid"
		if err := os.RemoveAll(path); err != nil {
			t.Fatal(err)
		}
		if err := c.make(path); err != nil {
			t.Logf("%s: %v", name, err) // a container may not make devices
			continue
		}
		s := f.spec("")
		s.Identity.PIDPath = path
		began := time.Now()
		got, err := look(f.Host, f.key("a"), s)
		if err != nil || !got.Proc.IsZero() || !strings.Contains(got.Reason, c.reason) ||
			time.Since(began) > 5*time.Second {
			t.Errorf("%s: %+v %v", name, got, err)
		}
	}
}

// TE3: a service that writes any text into its pid file and replaces the file all the time cannot make the agent
// signal another process.
func TestTE3SwappedPIDFileKillsNobodyElse(t *testing.T) {
	needsRoot(t)
	for name, way := range bothWays {
		t.Run(name, func(t *testing.T) { swappedPIDFile(t, way) })
	}
}

// swappedPIDFile makes the attack on a process that the agent did not start, so that only the pid file leads to it.
func swappedPIDFile(t *testing.T, way func(*host.Options)) {
	t.Helper()
	f := newHost(t, way)
	k, s := f.key("a"), f.spec("svc")
	s.Identity.User, s.Identity.PIDPath = "nobody", f.dir+"/svc.pid"
	svc := f.program("svc")
	start := func(uid uint32, ignore string) *exec.Cmd {
		cmd := exec.Command("/bin/sh", "-c", ignore+" exec "+svc+" 300")
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		f.eventually("it runs", func() bool {
			st, err := proc.Stat(cmd.Process.Pid)
			return err == nil &&
				st.Comm() == "svc"
		})
		return cmd
	}

	own, victim := start(65534, "trap '' TERM;"), start(0, "") // the victim has the same name and is root's
	defer end(t, own)
	roots := f.dir + "/root.pid" // a file of root that names the victim
	if err := os.WriteFile(roots, []byte(strconv.Itoa(victim.Process.Pid)), 0o644); err != nil {
		t.Fatal(err)
	}

	pid := func(pid int) func(string) error {
		return func(tmp string) error {
			return errors.Join(os.WriteFile(tmp, []byte(strconv.Itoa(pid)), 0o644), os.Chown(tmp, 65534, 65534))
		}
	}

	swaps := []func(tmp string) error{
		pid(own.Process.Pid), pid(victim.Process.Pid), pid(1), pid(os.Getpid()), pid(0), pid(-1),
		func(tmp string) error { return os.Link(roots, tmp) },
		func(tmp string) error { return os.Symlink(roots, tmp) },
		func(tmp string) error { return syscall.Mkfifo(tmp, 0o644) },
	}

	stop, swapped := swapper(t, s.Identity.PIDPath, swaps)
	hits, foreign := 0, 0
	for looks := 0; looks < 5**reuses || swapped.Load() < int64(*reuses) || hits == 0 && looks < 100**reuses; looks++ {
		found, err := look(f.Host, k, s)
		if err != nil {
			t.Fatal(err)
		}
		if found.Proc.IsZero() {
			continue
		}
		if hits++; found.Proc.PID != own.Process.Pid {
			foreign++
		}
		if err := f.Signal(found.Proc, supervise.SignalTerm); err != nil {
			t.Errorf("signal: %v", err)
		}
	}

	stop()

	if st, err := proc.Stat(victim.Process.Pid); err != nil || st.Dead() {
		t.Error("the victim was ended")
	}

	end(t, victim)
	t.Logf("TE3: %d foreign processes in %d signals during %d swaps", foreign, hits, swapped.Load())

	if foreign != 0 || hits == 0 {
		t.Errorf("%d foreign of %d", foreign, hits)
	}
}

// swapper replaces a path again and again until it is stopped.
func swapper(t *testing.T, path string, swaps []func(tmp string) error) (stop func(), swapped *atomic.Int64) {
	t.Helper()
	var ended atomic.Bool
	swapped = new(atomic.Int64)
	done := make(chan error, 1)
	go func() {
		var err error
		for i := 0; !ended.Load() && err == nil; i++ {
			tmp := fmt.Sprintf("%s.%d", path, i)
			if err = swaps[i%len(swaps)](tmp); err == nil {
				err = os.Rename(tmp, path)
			}
			_ = os.Remove(tmp) // a rename between two names of one file does nothing
			swapped.Add(1)
		}
		done <- err
	}()

	return func() {
		t.Helper()
		ended.Store(true)
		if err := <-done; err != nil {
			t.Error(err)
		}
	}, swapped
}

var (
	fewestSwaps = flag.Int64("host.swaps", 0, "swaps of links at least, in TestTT4SwappedFolderStaysInside")
	swapFor     = flag.Duration("host.swapfor", 0, "how long they go on at least")
)

// TT4: a link that is replaced while commands start never leads a command into a folder that the policy forbids.
func TestTT4SwappedFolderStaysInside(t *testing.T) {
	needsRoot(t)
	top := t.TempDir()
	for d := top; d != "/tmp" && d != "/"; d = filepath.Dir(d) {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}

	in, out := top+"/in/app", top+"/out"
	for _, d := range []string{in, out} {
		if err := errors.Join(os.MkdirAll(d, 0o755), os.Chmod(d, 0o777)); err != nil {
			t.Fatal(err)
		}
	}

	p, err := policy.Parse("policy.yaml", fmt.Appendf(nil, "{users: [nobody], path_prefixes: [%s/in]}", top))
	if err != nil {
		t.Fatal(err)
	}

	f := newHost(t, func(o *host.Options) { o.Permit = p.Folder })
	s := f.spec("x")
	s.Identity.User, s.Identity.SetupPath = "nobody", top+"/in/current"
	link := func(to string) func(string) error { return func(tmp string) error { return os.Symlink(to, tmp) } }

	if err := os.Symlink("app", s.Identity.SetupPath); err != nil {
		t.Fatal(err)
	}

	stop, swapped := swapper(t, s.Identity.SetupPath,
		[]func(string) error{link("app"), link(out), link("../out"), link(in)})
	k := f.key("a")
	refused, late, entered := 0, 0, 0
	begin := time.Now()
	enough := func() bool {
		return entered >= *reuses/4 && swapped.Load() >= *fewestSwaps && time.Since(begin) >= *swapFor
	}

	for i := 0; !enough() && (i < 1000**reuses || time.Since(begin) < *swapFor || swapped.Load() < *fewestSwaps); i++ {
		// As in the agent: the definition is checked before the operation, the folder when its command starts.
		if err := p.Definition("gse", s); err != nil {
			refused++
			continue
		}
		res, err := f.Run(t.Context(), supervise.Run{Key: k, Spec: s,
			Action:  []gozzard.Action{gozzard.ActionStart, gozzard.ActionStop}[entered%2],
			Command: "touch made-" + strconv.Itoa(i), Timeout: 20 * time.Second})
		switch {
		case err == nil && res.ExitCode == 0:
			entered++
		case err != nil && strings.Contains(err.Error(), "(path_prefixes in policy.yaml)"):
			late++
		default:
			t.Fatalf("%+v %v", res, err)
		}
	}

	stop()
	outside, err := os.ReadDir(out)
	if err != nil {
		t.Fatal(err)
	}

	inside, err := os.ReadDir(in)
	if err != nil {
		t.Fatal(err)
	}

	fmt.Printf("threat TT4: %d writes outside in %d starts and stops (%d refused, %d more when they started) during %d swaps in %s\n", len(outside), entered, refused, late,
		swapped.Load(), time.Since(begin).Round(time.Second))

	if len(outside) != 0 || len(inside) != entered || entered < *reuses/4 || refused == 0 {
		t.Errorf("%d outside, %d inside of %d, %d refused", len(outside), len(inside), entered, refused)
	}
}

// The agent does not open a folder for an account that cannot reach the folder, even if the account may enter it.
func TestTE4FolderBehindAClosedOne(t *testing.T) {
	needsRoot(t)
	f := newHost(t)
	inner := f.dir + "/closed/inner"
	if err := errors.Join(os.MkdirAll(inner, 0o755), os.Chmod(f.dir+"/closed", 0o700)); err != nil {
		t.Fatal(err)
	}

	s := f.spec("x")
	s.Identity.SetupPath = inner
	if res := f.run(f.key("a"), s, false, "pwd"); res.Output != inner {
		t.Errorf("root: %+v", res)
	}

	s.Identity.User = "nobody"
	_, err := f.Run(t.Context(), supervise.Run{Key: f.key("b"), Spec: s, Command: "pwd"})
	if err == nil || err.Error() != "folder (setup_path) "+inner+": user nobody may not enter it" {
		t.Errorf("nobody: %v", err)
	}
	// only a thread acted as the account
	if c, err := proc.Credentials(os.Getpid()); err != nil || c.UIDs != [4]uint32{} {
		t.Errorf("the agent itself: %+v %v", c, err)
	}
}

// TE4: a command of an account with three groups has these three groups and no other. The account exists only in a
// private view of /etc.
func TestTE4AccountInThreeGroups(t *testing.T) {
	needsRoot(t)
	const inside = "GOZZARD_TEST_PRIVATE_ETC"
	if os.Getenv(inside) == "" {
		dir := t.TempDir()
		for name, more := range map[string]string{
			"passwd": "gozzthree:x:54301:54301::/:/bin/sh\n",
			"group":  "gozzthree:x:54301:\ngozzweb:x:54302:gozzthree\ngozzlog:x:54303:other,gozzthree\ngozznot:x:54304:other\n",
		} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(content(t, "/etc/"+name)+"\n"+more),
				0o644); err != nil {
				t.Fatal(err)
			}
		}
		cmd := exec.Command("unshare", "--mount", "--propagation", "private", "/bin/sh", "-c",
			`mount --bind "$1/passwd" /etc/passwd && mount --bind "$1/group" /etc/group || exit 77; exec "$2" -test.run '^TestTE4AccountInThreeGroups$' -test.v`,
			"sh", dir, os.Args[0])
		cmd.Env = append(os.Environ(), inside+"=1")
		out, err := cmd.CombinedOutput()
		var exit *exec.ExitError
		switch {
		case errors.Is(err, exec.ErrNotFound), errors.As(err, &exit) &&
			(exit.ExitCode() == 77 || strings.Contains(string(out), "unshare failed")):
			t.Skipf("no private view of /etc here: %v %s", err, out)
		case err != nil:
			t.Errorf("%v\n%s", err, out)
		}
		return
	}

	f := newHost(t)
	s := f.spec("x")
	s.Identity.User = "gozzthree"
	res := f.run(f.key("a"), s, false, "id -u; id -g; id -G; grep -E '^(Groups|CapEff|NoNewPrivs):' /proc/$$/status")
	lines := strings.Split(res.Output, "\n")
	if len(lines) != 6 || lines[0] != "54301" || lines[1] != "54301" {
		t.Fatalf("%+v", res)
	}

	for _, l := range []string{lines[2], strings.TrimPrefix(lines[3], "Groups:\t")} {
		groups := strings.Fields(l)
		slices.Sort(groups)
		if !slices.Equal(groups, []string{"54301", "54302", "54303"}) {
			t.Errorf("groups %v", groups)
		}
	}

	for group, member := range map[string]bool{"gozzlog": true, "gozzweb": true, "gozzthree": true, "gozznot": false,
		"no-such-group": false} {
		p, err := policy.Parse("x", fmt.Appendf(nil, `{users: ["@%s"], path_prefixes: ["/"]}`, group))
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Definition("gse", s); (err == nil) != member {
			t.Errorf("%s: %v", group, err)
		}
	}
}
