//go:build linux

package cluster_test

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	ft "github.com/gozzard/gozzard/test/fleettest"
	"github.com/gozzard/gozzard/test/ledger"
)

// TestTS19RotationOverAllServers: the signing key is rotated under load, at several servers, and at two at the same time. All
// servers sign with the newest one at once, agents accept each of them, and the secret is in no file of the database.
func TestTS19RotationOverAllServers(t *testing.T) {
	t.Parallel()                                             // it mostly waits
	f := newLoaded(t, newInstallation(t, 3, "--rate-app=0")) // the load and the checks beside it are one app
	end := f.begin()
	var seeds [][]byte
	for _, m := range f.servers[:2] {
		m.cli("key", "rotate", "signing")
		seeds = append(seeds, f.sameKey())
	}
	f.eachServes()

	// Two at the same time: one of them, or both, one after the other.
	before := f.servers[0].read("signing.key")
	var wg sync.WaitGroup
	var done atomic.Int32
	for _, m := range f.servers[1:] {
		wg.Go(func() {
			out, err := m.try("key", "rotate", "signing")
			switch {
			case err == nil:
				done.Add(1)
			case !strings.Contains(out, "at the same time") && !strings.Contains(out, "waits for the newest signing key"):
				t.Errorf("rotate: %v: %s", err, out)
			}
		})
	}
	wg.Wait()
	seeds = append(seeds, f.sameKey())
	if done.Load() == 0 || f.servers[0].read("signing.key") == before {
		t.Errorf("%d of two rotations at the same time were done", done.Load())
	}
	f.eachServes()
	end()
	seeds = append(seeds, f.besideFrozen(f.servers[2]))
	f.eachServes()

	f.judge(line{id: "TS19", fault: "the signing key rotated over all servers", times: 1}, ledger.Floor{OK: 40, Percent: 50})
	f.notInDatabase("key:signing:rotate:", seeds)
	for _, m := range f.servers {
		if got := m.nextKeys(); len(got) > 0 {
			t.Errorf("%s has keys that count no more: %v", m.listen, got)
		}
	}
}

// besideFrozen: a server that does not answer has not the new key, so there is none. One that was not seen for long is taken for
// one that has ended: the others go on, and it gets the key when it goes on.
func (f *loaded) besideFrozen(frozen *member) []byte {
	f.t.Helper()
	other := f.servers[0]
	frozen.Kill(syscall.SIGSTOP)
	f.t.Cleanup(func() { frozen.Kill(syscall.SIGCONT) }) // or it cannot be ended
	before := other.read("signing.key")
	if out, err := other.try("key", "rotate", "signing"); err == nil || !strings.Contains(out, frozen.id()) ||
		!strings.Contains(out, "did not store the new key") || other.read("signing.key") != before {
		f.t.Errorf("rotate beside a frozen server: %v: %s", err, out)
	}

	ft.Until(f.t, time.Minute, func() string { return other.cli("servers") }, func() bool { return other.server(frozen).Silent > 10 })
	other.cli("key", "rotate", "signing")
	if frozen.read("signing.key") != before || other.read("signing.key") == before {
		f.t.Error("the key was not rotated at the others only")
	}
	frozen.Kill(syscall.SIGCONT)
	frozen.answers()
	return f.sameKey()
}

// TestRotationWhileAServerIsOff: a server that was off gets the new key when it returns. If no server with the key runs, it does
// not serve, and says what to do.
func TestRotationWhileAServerIsOff(t *testing.T) {
	t.Parallel() // it mostly waits
	i := newInstallation(t, 2)
	f := &loaded{installation: i}
	a, b := i.servers[0], i.servers[1]
	a.join(faultHost(1))
	b.Kill(syscall.SIGTERM)
	ft.Until(t, time.Minute, func() string { return a.cli("servers") }, func() bool { return a.server(b).Silent > 10 })
	a.cli("key", "rotate", "signing")
	a.cli("key", "rotate", "signing")

	// Alone it cannot get it.
	a.Kill(syscall.SIGTERM)
	b.Again()
	select {
	case <-b.Done():
	case <-time.After(2 * time.Minute):
		t.Fatalf("a server with an old key goes on: %s", b.Output())
	}
	if b.ExitCode() == 0 || !strings.Contains(b.Output(), "does not have the newest signing key, and did not get it within") {
		t.Errorf("exit code %d: %s", b.ExitCode(), b.Output())
	}

	// With the other one it does.
	a.Again()
	a.answers()
	b.Again()
	b.answers()
	i.sameKey()
	f.eachServes()

	// One that was rotated in its folder, while it was stopped, gives its key to the others.
	before := a.read("signing.key")
	b.Kill(syscall.SIGTERM)
	b.cliLocal("key", "rotate", "--data", b.data)
	b.Again()
	b.answers()
	i.sameKey()
	if a.read("signing.key") == before {
		t.Error("the key that was made in a folder does not count")
	}
	f.eachServes()

	// One with the key of nobody else ends.
	b.Kill(syscall.SIGTERM)
	kept := b.read("signing.key")
	b.cliLocal("key", "rotate", "--data", b.data)
	ft.Until(t, time.Minute, func() string { return a.cli("servers") }, func() bool { return a.server(b).Silent > 10 })
	a.cli("key", "rotate", "signing")
	b.Again()
	select {
	case <-b.Done():
	case <-time.After(time.Minute):
		t.Fatalf("a server with another key goes on: %s", b.Output())
	}
	if b.ExitCode() == 0 || !strings.Contains(b.Output(), "is not that of the installation") {
		t.Errorf("exit code %d: %s", b.ExitCode(), b.Output())
	}
	if err := os.WriteFile(filepath.Join(b.data, "signing.key"), []byte(kept), 0o600); err != nil {
		t.Fatal(err)
	}
	b.Again()
	b.answers()
	i.sameKey()
	f.eachServes()
}

// C10: the server that rotates, or another one, is killed in the middle of a rotation. Afterwards all
// servers sign with one key, and a rotation works, also at a server where other acts need a second person.
func TestC10RotationBesideDeaths(t *testing.T) {
	t.Parallel() // it mostly waits
	i := newInstallation(t, 2)
	i.flags = append(i.flags, "--second-person=admin-grants")
	two := i.add()
	i.servers[0].join(faultHost(1))
	f := &loaded{installation: i}
	for n := range 6 {
		asked, victim := i.servers[n%3], i.servers[(n+n%2)%3] // itself, or the next one
		done := make(chan string)
		go func() {
			out, err := asked.try("key", "rotate", "signing")
			done <- fmt.Sprintf("%v %s", err, out)
		}()
		time.Sleep(time.Duration(rand.IntN(400)) * time.Millisecond) // the rotation has begun, or is over
		victim.Kill(syscall.SIGKILL)
		t.Logf("server %d rotates, server %d is killed: %s", n%3, (n+n%2)%3, <-done)
		victim.Again()
		victim.answers()
		i.sameKey()
	}
	f.eachServes()

	before := two.read("signing.key")
	two.cli("key", "rotate", "signing")
	i.sameKey()
	if two.read("signing.key") == before {
		t.Error("the key is the one before")
	}
	f.eachServes()
}

// sameKey waits until all servers have the same signing key. It returns the secret part.
func (i *installation) sameKey() []byte {
	i.t.Helper()
	ft.Until(i.t, time.Minute, func() string { return "the servers have different signing keys" }, func() bool {
		for _, m := range i.servers[1:] {
			if m.read("signing.key") != i.servers[0].read("signing.key") {
				return false
			}
		}
		return true
	})
	var file struct {
		Seed []byte `json:"seed"`
	}
	if err := json.Unmarshal([]byte(i.servers[0].read("signing.key")), &file); err != nil || len(file.Seed) != ed25519.SeedSize {
		i.t.Fatalf("signing.key: %v", err)
	}
	return file.Seed
}

// nextKeys are the files of keys that do not count yet.
func (m *member) nextKeys() []string {
	m.i.t.Helper()
	list, err := filepath.Glob(filepath.Join(m.data, "signing-next-*"))
	if err != nil {
		m.i.t.Fatal(err)
	}
	return list
}

// eachServes operates a host through each server.
func (f *loaded) eachServes() {
	f.t.Helper()
	for _, m := range f.servers {
		m.online(faultHost(1), true)
		task := m.Operate("operate_proc_v2", ft.J{"meta": ft.J{"namespace": "keys", "name": "p"}, "op_type": 8,
			"hosts": []ft.J{host(faultHost(1))}, "spec": ft.J{"identity": ft.J{"proc_name": "p", "setup_path": "/tmp",
				"pid_path": "/tmp/none.pid", "user": "root"}, "control": ft.J{"reload_cmd": "true"}}})
		for key, e := range m.Await(task) {
			if e.Code != 0 {
				f.t.Errorf("through %s: %s: %d %s", m.listen, key, e.Code, e.Msg)
			}
		}
	}
}

// notInDatabase searches all files of PostgreSQL, the log of its transactions included, and a dump for secrets. The act that they
// come from must be there.
func (f *loaded) notInDatabase(act string, seeds [][]byte) {
	f.t.Helper()
	dump := filepath.Join(f.t.TempDir(), "dump.sql")
	if err := os.WriteFile(dump, []byte(f.pg.Tool("pg_dump", "fleet")), 0o600); err != nil {
		f.t.Fatal(err)
	}
	files, found := 0, false
	search := func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return nil // it was removed meanwhile
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return nil
		}
		files++
		found = found || bytes.Contains(b, []byte(act))
		for _, seed := range seeds {
			for _, form := range [][]byte{seed, []byte(hex.EncodeToString(seed)), []byte(base64.StdEncoding.EncodeToString(seed)),
				[]byte(base64.RawURLEncoding.EncodeToString(seed))} {
				if bytes.Contains(b, form) {
					f.t.Errorf("%s has a secret key", path)
				}
			}
		}
		return nil
	}
	for _, dir := range []string{f.pg.Dir, dump} {
		if err := filepath.WalkDir(dir, search); err != nil {
			f.t.Fatal(err)
		}
	}
	if files < 100 || !found {
		f.t.Errorf("%d files of the database were searched, and the act is in one of them: %t", files, found)
	}
}
