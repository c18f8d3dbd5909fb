//go:build linux

package faults_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	ft "github.com/gozzard/gozzard/test/fleettest"
)

// installed is an agent in the places of the packages: state in /var/lib, policy in /etc/gozzard. It has copies of these
// folders of its own, in a mount namespace.
type installed struct {
	t        *testing.T
	s        *ft.Server
	etc, lib string
	*ft.Program
}

// inNamespace runs a program with the folders of the agent. The last mount is what ReadOnlyPaths= of the unit does.
const inNamespace = `mount --bind "$0" /etc && mount --bind "$1" /var/lib || exit 97
if test "$2" = ro; then mkdir -p /etc/gozzard && mount --bind /etc/gozzard /etc/gozzard && mount -o remount,ro,bind /etc/gozzard || exit 98; fi
shift 2; exec "$@"`

func (i *installed) wrap(mode string) []string {
	return []string{"unshare", "-m", "sh", "-c", inNamespace, i.etc, i.lib, mode}
}

func startInstalled(t *testing.T) *installed {
	t.Helper()
	needs(t, "unshare")
	top := t.TempDir()
	i := &installed{t: t, s: ft.StartServer(t, ""), etc: filepath.Join(top, "etc"), lib: filepath.Join(top, "lib")}
	if err := errors.Join(os.Mkdir(i.etc, 0o755), os.Mkdir(i.lib, 0o755)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"passwd", "group"} {
		b, err := os.ReadFile("/etc/" + name)
		if err == nil {
			err = os.WriteFile(filepath.Join(i.etc, name), b, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}

	i.Program = ft.StartThrough(t, "agent", i.wrap("rw"), "agent", "--data", "/var/lib/gozzard-agent", "--allow-root",
		"--server", i.s.Agents, "--ip", "127.0.0.1", "--secret-file", filepath.Join(i.s.Data, "join.secret"))
	i.s.AwaitOnline(t, 1)
	return i
}

// policy is the path of the policy, from outside of the namespace. Earlier versions have it in the state folder.
func (i *installed) policy() string {
	path := filepath.Join(i.etc, "gozzard", "policy.yaml")
	if _, err := os.Lstat(path); err != nil {
		return filepath.Join(i.lib, "gozzard-agent", "policy.yaml")
	}
	return path
}

func (i *installed) write(path, text string) {
	i.t.Helper()
	if err := errors.Join(os.WriteFile(path+".new", []byte(text), 0o600), os.Rename(path+".new", path)); err != nil {
		i.t.Fatal(err)
	}
}

// digest is what the server shows about the policy.
func (i *installed) digest() string {
	i.t.Helper()
	var page struct {
		Hosts []struct {
			PolicyDigest string `json:"policy_digest"`
		}
	}
	if err := json.Unmarshal([]byte(mustRun(i.t, i.s, "hosts", "-o", "json")), &page); err != nil || len(page.Hosts) != 1 {
		i.t.Fatalf("%+v %v", page, err)
	}
	return page.Hosts[0].PolicyDigest
}

func sumOf(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// TE15: commands of root that the policy allows change neither the policy nor the release key of an installed agent
// whose unit protects them, a copy in the state folder has no effect, and the server notices every change.
func TestTE15PolicyOutOfReach(t *testing.T) {
	t.Parallel()
	i := startInstalled(t)
	if fi, err := os.Stat(i.policy()); err != nil || fi.Mode().Perm()&0o022 != 0 {
		t.Errorf("the first policy: %v %v", fi, err)
	}
	state := filepath.Join(i.lib, "gozzard-agent")
	if _, err := os.Lstat(filepath.Join(state, "policy.yaml")); err == nil {
		t.Error("the policy is in the state folder")
	}

	d := ft.NewDaemon(t, t.TempDir(), "gzplace")
	endFirst(t, i.Program)
	if got := i.digest(); got != sumOf(t, i.policy()) {
		t.Errorf("digest %q of the first policy", got)
	}
	i.write(i.policy(), "{allow_root: true, trusted_paths: false, path_prefixes: ["+d.Dir+"]}\n")

	// Under the unit, commands of root cannot write it.
	i.Kill(syscall.SIGKILL)
	i.Through(i.wrap("ro")...)
	i.s.AgainOnline(t, i.Program)
	known := sumOf(t, i.policy())
	run := func(text, dir string) ft.Entry {
		spec := d.Spec(nil)
		spec["identity"].(ft.J)["setup_path"] = dir
		spec["control"] = ft.J{"start_cmd": text}
		return operate(t, i.s.API, d, 0, spec)
	}
	const wide = `{allow_root: true, trusted_paths: false, path_prefixes: [/]}`
	run("touch ran; echo '"+wide+"' > /etc/gozzard/policy.yaml; echo x > /etc/gozzard/release.pub; "+
		"mv /etc/gozzard/policy.yaml /etc/gozzard/old", d.Dir)
	if _, err := os.Stat(filepath.Join(d.Dir, "ran")); err != nil {
		t.Fatal("the attack did not run")
	}
	if names, err := filepath.Glob(filepath.Join(i.etc, "gozzard", "*")); err != nil || len(names) != 1 ||
		sumOf(t, i.policy()) != known {
		t.Errorf("the policy was changed: %q %v", names, err)
	}

	// What they write into the state folder has no effect, also after a restart.
	run("echo '"+wide+"' > /var/lib/gozzard-agent/policy.yaml; echo x > /var/lib/gozzard-agent/release.pub; "+
		"chmod 600 /var/lib/gozzard-agent/*", d.Dir)
	if sumOf(t, filepath.Join(state, "policy.yaml")) == known {
		t.Fatal("the attack did not run")
	}
	i.Kill(syscall.SIGKILL)
	i.s.AgainOnline(t, i.Program)
	if e := run("true", "/etc"); !strings.Contains(e.Msg, "(path_prefixes in /etc/gozzard/policy.yaml)") {
		t.Errorf("a command in /etc: %+v", e)
	}
	if got := i.digest(); got != known {
		t.Errorf("digest %s, want %s", got, known)
	}
	if !strings.Contains(i.Output(), "the one in the state folder has no effect") {
		t.Error("the log does not name the second policy")
	}

	// A change by the owner is shown and makes an event.
	i.write(i.policy(), "{allow_root: true, trusted_paths: false, path_prefixes: ["+d.Dir+", /opt]}\n")
	ft.Until(t, time.Minute, i.s.Output, func() bool { return i.digest() == sumOf(t, i.policy()) })
	if out := mustRun(t, i.s, "events", "--kind", "policy_changed"); !strings.Contains(out, sumOf(t, i.policy())) {
		t.Errorf("no event: %s", out)
	}
	if !strings.Contains(i.s.Output(), "a host has another policy or release key than before") {
		t.Error("no line in the log of the server")
	}
	if out := mustRun(t, i.s, "hosts", "-o", "wide"); !strings.Contains(out, sumOf(t, i.policy())[:12]) {
		t.Errorf("not in the list of hosts: %s", out)
	}

	// An earlier installation has its policy in the state folder only. It works, and the log says how to move it.
	i.Kill(syscall.SIGKILL)
	if err := os.Remove(i.policy()); err != nil {
		t.Fatal(err)
	}
	i.s.AgainOnline(t, i.Program)
	if !strings.Contains(i.Output(), "install -D -m 0644 /var/lib/gozzard-agent/policy.yaml /etc/gozzard/policy.yaml") {
		t.Error("the log does not say how to move the policy")
	}
	if e := run("true", "/etc"); strings.Contains(e.Msg, "not allowed by local policy") {
		t.Errorf("the policy in the state folder has no effect: %+v", e)
	}
}

// TestInvalidPolicyCounts: a policy with a fault is the one that counts. The command says what is wrong, and writes no second
// one into the state folder, which the agent would not read.
func TestInvalidPolicyCounts(t *testing.T) {
	needs(t, "unshare")
	i := &installed{etc: filepath.Join(t.TempDir(), "etc"), lib: filepath.Join(t.TempDir(), "lib")}
	bad, second := filepath.Join(i.etc, "gozzard", "policy.yaml"), filepath.Join(i.lib, "gozzard-agent", "policy.yaml")
	if err := errors.Join(os.MkdirAll(filepath.Dir(bad), 0o755), os.MkdirAll(filepath.Dir(second), 0o700),
		os.WriteFile(bad, []byte("allow_rot: true\n"), 0o644)); err != nil {
		t.Fatal(err)
	}
	words := append(i.wrap("rw"), ft.Binary(t), "agent", "policy", "--data", "/var/lib/gozzard-agent", "--allow-path", "/var/www")
	out, err := exec.Command(words[0], words[1:]...).CombinedOutput()
	if err == nil || !strings.Contains(string(out), `policy /etc/gozzard/policy.yaml: line 1: "allow_rot" is not a setting`) {
		t.Errorf("%v: %s", err, out)
	}
	if _, err := os.Stat(second); err == nil {
		t.Error("it has written another policy")
	}
}
