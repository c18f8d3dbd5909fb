//go:build unix

package selfupdate_test

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/release"
	"github.com/gozzard/gozzard/internal/selfupdate"
)

// rig is a host with a script as its program. The script prints its version and what it understands.
type rig struct {
	t         *testing.T
	dir       string
	program   string
	key       ed25519.PublicKey
	private   ed25519.PrivateKey
	args      []string
	downgrade bool
}

func newRig(t *testing.T) *rig {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, dir: t.TempDir(), program: filepath.Join(t.TempDir(), "gozzard"), key: public, private: private}
	r.write(r.program, script("1.0.0"))
	return r
}

func script(version string) string {
	return "#!/bin/sh\ncase \"$*\" in *--unknown*) echo unknown flag >&2; exit 2;; *--help) exit 0;; esac\necho gozzard " + version + " go linux/amd64\n"
}

func (r *rig) write(path, text string) {
	r.t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		r.t.Fatal(err)
	}
}

// updater is the updater of a program of the given version on the host.
func (r *rig) updater(version string) *selfupdate.Updater {
	return selfupdate.New(selfupdate.Options{Dir: r.dir, Program: r.program, Version: version, Args: r.args,
		Key:            func() (ed25519.PublicKey, error) { return r.key, nil },
		AllowDowngrade: func() bool { return r.downgrade }})
}

// starts is updater for a program that has just started.
func (r *rig) starts(version string) (*selfupdate.Updater, error) {
	r.t.Helper()
	if got := r.says(); got != version {
		r.t.Fatalf("the program is %s, not %s", got, version)
	}
	u := r.updater(version)
	return u, u.Begin()
}

func (r *rig) says() string {
	r.t.Helper()
	v, err := selfupdate.SaysVersion(r.t.Context(), r.program)
	if err != nil {
		r.t.Fatal(err)
	}
	return v
}

func (r *rig) state() selfupdate.State {
	r.t.Helper()
	s, err := selfupdate.ReadState(r.dir)
	if err != nil {
		r.t.Fatal(err)
	}
	return s
}

// release makes a release with a program that prints a version.
func (r *rig) release(version, says string) selfupdate.Folder {
	r.t.Helper()
	dir, text := r.t.TempDir(), script(says)
	sum := sha256.Sum256([]byte(text))
	m := &release.Manifest{Version: version, Created: time.Now(), Expires: time.Now().Add(time.Hour),
		Files: []release.File{
			{Platform: selfupdate.Platform(), Name: "program", Size: int64(len(text)), SHA256: hex.EncodeToString(sum[:])},
		}}
	b, err := m.Encode()
	if err != nil {
		r.t.Fatal(err)
	}

	r.write(filepath.Join(dir, release.ManifestName), string(b))
	r.write(filepath.Join(dir, release.SignatureName), string(ed25519.Sign(r.private, b)))
	r.write(filepath.Join(dir, "program"), text)
	return selfupdate.Folder(dir)
}

func (r *rig) install(u *selfupdate.Updater, version string) error {
	_, err := u.Install(r.t.Context(), r.release(version, version), selfupdate.Request{})
	return err
}

func (r *rig) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

func wants(t *testing.T, err error, text string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), text) {
		t.Errorf("%v, want %q", err, text)
	}
}

// TestTE8Trial follows a release that is welcomed and one that is not.
func TestTE8Trial(t *testing.T) {
	r := newRig(t)
	old, err := r.starts("1.0.0")
	r.must(err)
	old.Welcomed()
	r.must(r.install(old, "1.1.0"))
	wants(t, r.install(old, "1.2.0"), "release 1.1.0 is on trial")

	next, err := r.starts("1.1.0")
	r.must(err)
	trial, welcomed := next.OnTrial()
	if !trial {
		t.Fatal("it is not on trial")
	}

	wants(t, r.install(next, "1.2.0"), "release 1.1.0 is on trial")
	next.Welcomed()
	<-welcomed
	next.Welcomed() // of every session

	if s := r.state(); s.Trial != nil || s.Highest != "1.1.0" || s.Program != r.program || s.PID != os.Getpid() {
		t.Errorf("%+v", s)
	}

	r.must(r.install(next, "1.2.0"))
	bad, err := r.starts("1.2.0")
	r.must(err)
	r.must(bad.RollBack("it was not welcomed"))
	back, err := r.starts("1.1.0")
	r.must(err)

	if s := r.state(); s.Trial != nil || len(s.Refused) != 1 || s.Refused[0].Version != "1.2.0" ||
		s.Refused[0].Reason != "it was not welcomed" || s.Highest != "1.1.0" {
		t.Errorf("%+v", s)
	}

	wants(t, r.install(back, "1.2.0"), "was tried here and rolled back (it was not welcomed)")
	r.must(r.install(back, "1.3.0"))

	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(r.program), ".*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// TestTE8CutOff: the host dies between any two steps.
func TestTE8CutOff(t *testing.T) {
	trial := func(r *rig, trial selfupdate.Trial) {
		r.t.Helper()
		b, err := json.Marshal(selfupdate.State{Trial: &trial})
		r.must(err)
		r.write(filepath.Join(r.dir, "update.json"), string(b))
	}

	t.Run("before the new program is in place", func(t *testing.T) {
		r := newRig(t)
		r.write(r.program+".previous", script("1.0.0"))
		r.write(filepath.Join(filepath.Dir(r.program), ".gozzard.update-123"), "half")
		trial(r, selfupdate.Trial{Version: "1.1.0", From: "1.0.0"})
		u, err := r.starts("1.0.0")
		r.must(err)

		if s := r.state(); s.Trial != nil || len(s.Refused) != 0 {
			t.Errorf("%+v", s)
		}
		if left, _ := filepath.Glob(filepath.Join(filepath.Dir(r.program), ".*")); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}

		r.must(r.install(u, "1.1.0"))
	})

	for name, before := range map[string]selfupdate.Trial{
		"on trial":               {Version: "1.1.0", From: "1.0.0", Starts: 1},
		"before the way back":    {Version: "1.1.0", From: "1.0.0", Starts: 1, Back: "it was not welcomed"},
		"on the way back, again": {Version: "1.1.0", From: "1.0.0", Starts: 5, Back: "it was not welcomed"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.write(r.program+".previous", script("1.0.0"))
			r.write(r.program, script("1.1.0"))
			trial(r, before)
			u, err := r.starts("1.1.0")
			var over *selfupdate.Over
			if !errors.As(err, &over) {
				t.Fatalf("it goes on: %v", err)
			}

			r.must(u.RollBack(over.Reason))
			_, err = r.starts("1.0.0")
			r.must(err)

			if s := r.state(); s.Trial != nil || len(s.Refused) != 1 {
				t.Errorf("%+v", s)
			}
		})
	}

	t.Run("nothing to go back to", func(t *testing.T) {
		r := newRig(t)
		r.write(r.program, script("1.1.0"))
		trial(r, selfupdate.Trial{Version: "1.1.0", From: "1.0.0", Starts: 1})
		u, err := r.starts("1.1.0")
		if err == nil {
			t.Fatal("it goes on")
		}
		wants(t, u.RollBack("x"), "it stays")
		if on, _ := u.OnTrial(); on || r.says() != "1.1.0" || r.state().Trial != nil {
			t.Error("it does not stay")
		}
	})
}

// TestTE8Refusals: an update is also rejected because of what the host remembers.
func TestTE8Refusals(t *testing.T) {
	r := newRig(t)
	high := r.updater("2.0.0") // a newer one ran here once
	high.Welcomed()
	u, err := r.starts("1.0.0")
	r.must(err)
	u.Welcomed()
	wants(t, r.install(u, "1.5.0"), "not newer than 2.0.0, which ran here before")
	r.downgrade = true
	_, err = u.Install(t.Context(), r.release("1.5.0", "1.5.1"), selfupdate.Request{})
	wants(t, err, `says that it is version "1.5.1"`)
	_, err = u.Install(t.Context(), r.release("1.5.0", "1.5.0"), selfupdate.Request{Version: "1.6.0"})
	wants(t, err, "the release is 1.5.0, not 1.6.0")
	r.args = []string{"agent", "--unknown"}
	wants(t, r.install(r.updater("1.0.0"), "1.5.0"),
		"does not understand how this agent was started: exit status 2: unknown flag")
	r.args = []string{"agent", "--data", "x"}
	r.must(r.install(r.updater("1.0.0"), "1.5.0"))

	if r.says() != "1.5.0" {
		t.Error("not in place")
	}
	if err := os.WriteFile(filepath.Join(r.dir, "update.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}

	wants(t, r.install(u, "1.6.0"), "cannot read the state of updates")
}

// held is a source that waits until the test allows it to go on.
type held struct {
	selfupdate.Source
	begun, let chan struct{}
}

func (h held) Program(ctx context.Context, f release.File) (io.ReadCloser, error) {
	close(h.begun)
	<-h.let
	return h.Source.Program(ctx, f)
}

// TestTE8Orders: an order is carried out once and answered as often as it is repeated.
func TestTE8Orders(t *testing.T) {
	r := newRig(t)
	u, err := r.starts("1.0.0")
	r.must(err)
	src := r.release("1.1.0", "1.1.0")
	manifest, _, err := src.Manifest(t.Context())
	r.must(err)
	h := held{src, make(chan struct{}), make(chan struct{})}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { _ = u.Run(ctx, func(gozzard.UpdateOrder) (selfupdate.Source, error) { return h, nil }) })
	defer wg.Wait()
	defer cancel()

	order := func(roll uint64, version string, manifest []byte) gozzard.UpdateReport {
		return u.Order(gozzard.UpdateOrder{Roll: roll, Version: version, Manifest: sha256.Sum256(manifest)})
	}

	until := func(roll uint64, version string, manifest []byte, want gozzard.UpdateState) gozzard.UpdateReport {
		t.Helper()
		for end := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
			if rep := order(roll, version, manifest); rep.State == want && rep.Roll == roll && rep.Version == version {
				return rep
			} else if time.Now().After(end) {
				t.Fatalf("%+v, want %s", rep, want)
			}
		}
	}

	if rep := order(1, "1.0.0", manifest); rep.State != gozzard.UpdateDone {
		t.Errorf("what runs: %+v", rep)
	}

	for _, bad := range []string{"", "../1.1.0", "1.1.0\n"} {
		if rep := order(1, bad, manifest); rep.State != gozzard.UpdateRefused {
			t.Errorf("%q: %+v", bad, rep)
		}
	}

	if rep := until(2, "1.1.0", []byte("another"), gozzard.UpdateRefused); !strings.Contains(rep.Reason,
		"not the release 1.1.0 that was ordered") {
		t.Errorf("%+v", rep)
	}

	until(3, "1.1.0", manifest, gozzard.UpdateWorking) // another upgrade tries again
	<-h.begun

	if rep := order(4, "1.2.0", manifest); rep.State != gozzard.UpdateRefused ||
		!strings.Contains(rep.Reason, "another update of this host is in progress") {
		t.Errorf("%+v", rep)
	}

	if err := r.install(r.updater("1.0.0"), "1.3.0"); !errors.Is(err, selfupdate.ErrBusy) {
		t.Errorf("two at once: %v", err)
	}

	close(h.let)
	<-u.Placed()

	if rep := order(3, "1.1.0", manifest); rep.State != gozzard.UpdateWorking || r.says() != "1.1.0" {
		t.Errorf("%+v", rep)
	}

	next, err := r.starts("1.1.0")
	r.must(err)

	if rep := next.Order(gozzard.UpdateOrder{Roll: 3, Version: "1.1.0"}); rep.State != gozzard.UpdateWorking {
		t.Errorf("on trial: %+v", rep)
	}

	next.Welcomed()

	if rep := next.Order(gozzard.UpdateOrder{Roll: 3, Version: "1.1.0"}); rep.State != gozzard.UpdateDone {
		t.Errorf("welcomed: %+v", rep)
	}
}
