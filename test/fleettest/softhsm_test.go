//go:build linux

package fleettest_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	ft "github.com/gozzard/gozzard/test/fleettest"
)

// token is a PKCS#11 token of SoftHSM with the script that uses it.
type token struct {
	t      *testing.T
	signer string
	env    []string
}

// newToken makes a token with keys.
func newToken(t *testing.T, keys ...string) *token {
	t.Helper()
	const library = "/usr/lib/softhsm/libsofthsm2.so"
	if _, err := os.Stat(library); err != nil {
		t.Skip("no softhsm2 on this machine: .ci/deps installs it")
	}
	if _, err := exec.LookPath("pkcs11-tool"); err != nil {
		t.Skip("no opensc on this machine: .ci/deps installs it")
	}

	// Make an empty token.
	dir := t.TempDir()
	signer, err := filepath.Abs("../../packaging/gozzard-signer-pkcs11")
	if err != nil {
		t.Fatal(err)
	}
	k := &token{t: t, signer: signer, env: []string{"SOFTHSM2_CONF=" + filepath.Join(dir, "conf"),
		"GOZZARD_PKCS11_MODULE=" + library, "GOZZARD_PKCS11_TOKEN=gozzard",
		"GOZZARD_PKCS11_PIN_FILE=" + filepath.Join(dir, "pin")}}
	if err := os.Mkdir(filepath.Join(dir, "tokens"), 0o700); err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(dir, "conf"), []byte("directories.tokendir = "+filepath.Join(dir, "tokens")+"\n"), 0o600)
	put(t, filepath.Join(dir, "pin"), []byte("4711\n"), 0o600)
	k.run("softhsm2-util", "--init-token", "--free", "--label", "gozzard", "--pin", "4711", "--so-pin", "4711")

	k.make(keys...)
	return k
}

// make makes keys in the token.
func (k *token) make(names ...string) {
	k.t.Helper()
	k.run(k.signer, append([]string{"make"}, names...)...)
}

func (k *token) run(name string, args ...string) {
	k.t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Env = append(os.Environ(), k.env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		k.t.Fatalf("%s %q: %v\n%s", name, args, err, out)
	}
}

// TestTT12KeysInAToken: a server signs commands and certificates with keys in a PKCS#11 token, and has no secret part
// of them. Both are rotated to other keys of the token, and a signer that dies is started again.
func TestTT12KeysInAToken(t *testing.T) {
	t.Parallel() // it mostly waits
	k := newToken(t, "signing-1", "authority-1")
	f := startKeyFleet(t, k.env, "--signer-command", k.signer, "--signer-keys", "signing,authority",
		"--certificate-life", "8s")
	agent := f.join(1)
	f.register(1)
	f.must("start", f.daemon.Name, "-n", "keys", "--host", "127.0.0.1")
	f.obeys(1)

	// noSecret checks that no file of the server has a secret part of a key.
	noSecret := func() {
		t.Helper()
		for _, name := range []string{"signing.key", "ca.pem", "ca.key", "ca-next.key"} {
			b, err := os.ReadFile(filepath.Join(f.data, name))
			if err == nil && (strings.Contains(string(b), "PRIVATE KEY") || strings.Contains(string(b), "seed")) {
				t.Errorf("%s has a secret: %s", name, b)
			}
		}
		if !f.keys().SigningExternal {
			t.Error("the signing key is not in the token")
		}
	}
	noSecret()

	// A key that the token does not have cannot be the next one.
	f.refused("signing-2", "key", "rotate", "signing")
	f.refused("authority-2", "key", "rotate", "authority")
	f.refused("external signer", "key", "rotate", "--data", f.data)
	f.obeys(1)

	// Rotate both.
	k.make("signing-2", "authority-2")
	f.must("key", "rotate", "signing")
	f.must("key", "rotate", "authority")
	f.obeys(1)
	ft.Until(t, time.Minute, func() string { return f.must("key", "status", "-o", "json") },
		func() bool { return f.keys().Authority.Moved == 1 })
	f.must("key", "rotate", "authority", "--finish")
	noSecret()
	if got := trusted(t, agent); got != f.keys().Signing[1].Key {
		t.Errorf("the host trusts %s", got)
	}

	// The signer dies and is started again.
	killChildren(t, f.server.PID())
	f.obeys(1)

	// A server without the signer does not start, and makes no key in its place.
	f.again()
	f.online(1, true)
	f.obeys(1)
	f.server.Kill(syscall.SIGTERM)
	args := []string{"server", "--data", f.data, "--listen", "127.0.0.1:0", "--agent-listen", "127.0.0.1:0", "--enrol"}
	cmd := exec.Command(ft.Binary(t), args...)
	cmd.Env = append(os.Environ(), ft.RecordEnv(t, args, nil)...)
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "--signer-command") {
		t.Errorf("a server without its keys: %v\n%s", err, out)
	}
	noSecretFiles(t, f.data)
}

// killChildren kills the programs that a process has started.
func killChildren(t *testing.T, pid int) {
	t.Helper()
	files, err := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/*/children")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, name := range files {
		for _, word := range strings.Fields(string(read(t, name))) {
			child, err := strconv.Atoi(word)
			if err != nil {
				t.Fatal(err)
			}
			if err := syscall.Kill(child, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			n++
		}
	}
	if n == 0 {
		t.Fatal("the signer does not run, so this proves nothing")
	}
}

// noSecretFiles checks that a stopped server has no secret part of a key.
func noSecretFiles(t *testing.T, data string) {
	t.Helper()
	for _, name := range []string{"signing.key", "ca.pem", "ca.key"} {
		if b := read(t, filepath.Join(data, name)); strings.Contains(string(b), "PRIVATE KEY") ||
			strings.Contains(string(b), "seed") {
			t.Errorf("%s has a secret", name)
		}
	}
}

// TestTT12MoveKeysIntoAToken: a server whose keys are in its data folder moves them into a token by a rotation, without
// a host that joins again.
func TestTT12MoveKeysIntoAToken(t *testing.T) {
	t.Parallel() // it mostly waits
	k := newToken(t, "signing-2")
	f := startKeyFleet(t, k.env)
	f.join(1)
	f.register(1)
	f.must("start", f.daemon.Name, "-n", "keys", "--host", "127.0.0.1")
	if f.keys().SigningExternal {
		t.Fatal("the signing key is not in the data folder")
	}

	f.againWith("--signer-command", k.signer)
	f.online(1, true)
	f.obeys(1)
	f.must("key", "rotate", "signing")
	f.obeys(1)
	if !f.keys().SigningExternal || strings.Contains(string(read(t, filepath.Join(f.data, "signing.key"))), "seed") {
		t.Error("the signing key is not in the token")
	}
}
