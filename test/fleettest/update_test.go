//go:build linux

package fleettest_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/internal/release"
	ft "github.com/gozzard/gozzard/test/fleettest"
)

func put(t *testing.T, path string, b []byte, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(path, b, mode); err != nil {
		t.Fatal(err)
	}
}

// updated is a host whose agent runs from its own program file, with a daemon that must not be affected.
type updated struct {
	t       *testing.T
	s       *ft.Server
	c       *client.Client
	agent   *ft.Program
	program string
	state   string
	config  string
	broken  string
	pid     int
	fleet   *fleet
	daemons []int
}

func startUpdated(t *testing.T) *updated {
	t.Helper()
	u := &updated{t: t, s: ft.StartServer(t, "")}
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}

	u.program, u.state, u.config, u.broken = filepath.Join(dir, "gozzard"), t.TempDir(),
		filepath.Join(dir, "agent.yaml"), filepath.Join(dir, "broken")
	text, err := os.ReadFile(ft.ProgramOf(t, ft.OldVersion))
	if err != nil {
		t.Fatal(err)
	}

	put(t, u.program, text, 0o755)
	u.trial("1m")
	t.Setenv("GOZZARD_CONFIG", u.config)
	t.Setenv("GOZZARD_BINARY", u.program)
	u.agent = u.s.StartAgentIn(t, 1, u.state, "", "GOZZARD_BROKEN="+u.broken)
	u.c = native(t, u.s.API)
	u.pid, u.fleet = u.agent.PID(), startFleet(t, u.s, 2)
	u.daemons = u.fleet.pids()
	return u
}

// trial sets how long the next program may take on trial. The program reads it at its start.
func (u *updated) trial(limit string) {
	u.t.Helper()
	put(u.t, u.config, []byte("update-trial: "+limit+"\n"), 0o600)
}

func (u *updated) runs(version string) bool {
	page, err := u.c.Hosts(u.t.Context(), 0, 10)
	return err == nil && len(page.Hosts) == 1 && page.Hosts[0].Online && page.Hosts[0].Version == version
}

// update runs `gozzard agent update` as the host's admin.
func (u *updated) update(from string, more ...string) (string, error) {
	cmd := exec.Command(u.program, append([]string{"agent", "update", "--data", u.state, "--from", from}, more...)...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// untouched checks that the host is unchanged, except for the version that runs.
func (u *updated) untouched(t *testing.T, version string) {
	t.Helper()

	ft.Until(t, time.Minute, func() string { return version + " does not run: " + u.agent.Output() },
		func() bool { return u.runs(version) })

	if u.agent.PID() != u.pid {
		t.Errorf("the agent has pid %d, had %d", u.agent.PID(), u.pid)
	}

	select {
	case <-u.agent.Done():
		t.Fatal("the agent's process ended")
	default:
	}

	want, err1 := os.ReadFile(ft.ProgramOf(t, version))
	got, err2 := os.ReadFile(u.program)
	if err1 != nil || err2 != nil || !bytes.Equal(want, got) {
		t.Errorf("the program file is not that of %s, %v, %v", version, err1, err2)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(u.program), ".gozzard*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	if now := u.fleet.pids(); !slices.Equal(now, u.daemons) {
		t.Errorf("daemons were %v, are %v", u.daemons, now)
	}

	for _, d := range u.fleet.daemons {
		if d.Count("start") != 1 || d.Copies() != 1 {
			t.Errorf("%s was started %d times, %d copies", d.Name, d.Count("start"), d.Copies())
		}
	}
}

// TestTE8LocalUpdate: a release replaces an agent only if the owner's key signed it and if it is newer, complete and
// for this platform. If it fails, the agent goes back to the version before. No process is affected, and the agent
// keeps its pid.
func TestTE8LocalUpdate(t *testing.T) {
	u := startUpdated(t)
	key, other := ft.NewReleaseKey(t), ft.NewReleaseKey(t)
	file := ft.ProgramOf(t, ft.NewVersion)

	refused := func(name, want string, dir string) {
		t.Helper()
		t.Run(name, func(t *testing.T) {
			if out, err := u.update(dir); err == nil || !strings.Contains(out, want) {
				t.Errorf("%v, %s", err, out)
			}
			u.untouched(t, ft.OldVersion)
		})
	}

	// Reject an update without a key, or with a key that others can write.
	good := key.ReleaseOf(t, ft.NewVersion, file, nil)
	refused("no key", "no release key on this host", good)
	put(t, filepath.Join(u.state, "release.pub"), key.PEM, 0o666)

	if err := os.Chmod(filepath.Join(u.state, "release.pub"), 0o666); err != nil {
		t.Fatal(err)
	}

	refused("a key that others can write", "only root and the agent's account", good)

	if out, err := exec.Command(u.program, "agent", "doctor", "--data", u.state).CombinedOutput(); err == nil ||
		!regexp.MustCompile(`FAIL +updates`).Match(out) {
		t.Errorf("doctor: %v, %s", err, out)
	}

	if err := os.Chmod(filepath.Join(u.state, "release.pub"), 0o644); err != nil {
		t.Fatal(err)
	}

	// Reject releases that are changed, unsigned, older, expired or for another platform.
	altered := func(change func(dir string)) string {
		dir := key.ReleaseOf(t, ft.NewVersion, file, nil)
		change(dir)
		return dir
	}

	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}

	replaced := func(text []byte) string {
		return altered(func(dir string) {
			if err := os.Remove(filepath.Join(dir, "gozzard-program")); err != nil {
				t.Fatal(err)
			}
			put(t, filepath.Join(dir, "gozzard-program"), text, 0o755)
		})
	}

	flipped := bytes.Clone(text)
	flipped[len(flipped)/2] ^= 1

	refused("unsigned", "not signed by the release key",
		altered(func(dir string) { _ = os.Remove(filepath.Join(dir, release.SignatureName)) }))

	refused("wrong key", "not signed by the release key", other.ReleaseOf(t, ft.NewVersion, file, nil))

	refused("changed manifest", "not signed by the release key", altered(func(dir string) {
		b, _ := os.ReadFile(filepath.Join(dir, release.ManifestName))
		put(t, filepath.Join(dir, release.ManifestName), bytes.Replace(b, []byte(ft.NewVersion), []byte("9.9.9"), 1),
			0o644)
	}))

	refused("older", "is not newer than 1.0.0", key.ReleaseOf(t, "0.9.0", file, nil))
	refused("the same", "is already running", key.ReleaseOf(t, ft.OldVersion, ft.ProgramOf(t, ft.OldVersion), nil))

	refused("expired", "expired at", key.ReleaseOf(t, ft.NewVersion, file,
		func(m *release.Manifest) { m.Expires = time.Now().Add(-time.Minute) }))

	refused("another platform", "has no program for",
		key.ReleaseOf(t, ft.NewVersion, file, func(m *release.Manifest) { m.Files[0].Platform = "plan9/arm" }))

	refused("truncated", "is truncated", replaced(text[:len(text)-1]))
	refused("longer", "is longer", replaced(append(bytes.Clone(text), 0)))
	refused("a flipped bit", "is not the file that was signed", replaced(flipped))
	refused("another version inside", `says that it is version "1.1.0"`, key.ReleaseOf(t, "1.1.1", file, nil))

	// Install a good release.
	out, err := u.update(good)
	if err != nil || !strings.Contains(out, "release 1.1.0 is running") {
		t.Fatalf("%v, %s\n%s", err, out, u.agent.Output())
	}

	u.untouched(t, ft.NewVersion)

	if kept, err := os.ReadFile(u.program + ".previous"); err != nil || len(kept) == 0 {
		t.Errorf("the program before is not kept: %v", err)
	}

	// Go back from a release that hangs, and do not try it again.
	u.trial("2s")
	bad := key.ReleaseOf(t, ft.BrokenVersion, ft.ProgramOf(t, ft.BrokenVersion), nil)
	if out, err = u.update(bad); err == nil || !strings.Contains(out,
		"was rolled back to 1.1.0: the server did not accept its connection within 2s") {
		t.Errorf("a program that hangs: %v, %s", err, out)
	}

	u.untouched(t, ft.NewVersion)

	if out, err = u.update(bad); err == nil || !strings.Contains(out, "was tried here and rolled back") {
		t.Errorf("tried twice: %v, %s", err, out)
	}

	u.untouched(t, ft.NewVersion)

	// Go back from a release that exits.
	u.trial("1m")
	u.dies(bad)
}

// dies: a program that ends during its trial is started again, as a service manager does. Then the agent goes back to
// the version before.
func (u *updated) dies(bad string) {
	t := u.t
	put(t, u.broken, []byte("exit"), 0o600)
	out, err := u.update(bad, "--again", "--wait", "1ms")
	if err == nil || !strings.Contains(out, "is still on trial") {
		t.Errorf("%v, %s", err, out)
	}

	select {
	case <-u.agent.Done():
	case <-time.After(time.Minute):
		t.Fatal("the new program did not end")
	}

	u.s.AgainOnline(t, u.agent) // the server does not notice so short an absence
	u.pid = u.agent.PID()
	u.untouched(t, ft.NewVersion)
	b, err := exec.Command(u.program, "agent", "update", "--data", u.state).CombinedOutput()
	if err != nil || !strings.Contains(string(b), "rolled back at") ||
		!strings.Contains(string(b), "1.2.0, because release 1.2.0 was started 1 times") {
		t.Errorf("%v, %s", err, b)
	}
}
