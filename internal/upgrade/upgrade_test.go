package upgrade_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/release"
	"github.com/gozzard/gozzard/internal/sqlstore"
	"github.com/gozzard/gozzard/internal/upgrade"
	"github.com/gozzard/gozzard/test/storetest"
)

const version = "1.1.0"

// rig is a runner with a real record and simulated hosts.
type rig struct {
	*upgrade.Runner
	t     *testing.T
	o     upgrade.Options
	store *sqlstore.Store
	end   func()

	mu     sync.Mutex
	hosts  map[gozzard.AgentID]*upgrade.HostView
	orders []gozzard.AgentID // first orders, in turn
	// what a host answers; nil: it installs the release at once
	obey    func(a gozzard.AgentID, r *gozzard.UpdateReport) (came bool)
	offset  time.Duration
	program []byte
	text    []byte
	sig     []byte
	public  ed25519.PublicKey
}

func newRig(t *testing.T, hosts int, change func(*upgrade.Options)) *rig {
	t.Helper()
	path := filepath.Join(t.TempDir(), "gozzard.db")
	storetest.NewSQLite(t, path)
	store, err := sqlstore.OpenSQLite(t.Context(), path, sqlstore.Options{})
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { _ = store.Close() })
	repository, err := release.OpenRepository(filepath.Join(t.TempDir(), "releases"))
	if err != nil {
		t.Fatal(err)
	}

	r := &rig{t: t, store: store, hosts: map[gozzard.AgentID]*upgrade.HostView{}, program: []byte("a program")}
	for i := range hosts {
		r.hosts[gozzard.AgentID(fmt.Sprintf("host-%02d", i))] = &upgrade.HostView{Online: true, Version: "1.0.0",
			Platform: "linux/amd64"}
	}

	r.sign(version)
	r.o = upgrade.Options{Store: store, Repository: repository, Fleet: r, Every: 2 * time.Millisecond, Now: r.now}

	if change != nil {
		change(&r.o)
	}

	r.start()
	t.Cleanup(func() { r.end() })
	return r
}

// sign makes a signed release.
func (r *rig) sign(version string) {
	r.t.Helper()
	sum := sha256.Sum256(r.program)
	m := &release.Manifest{Version: version, Created: time.Now(), Expires: time.Now().Add(time.Hour),
		Files: []release.File{
			{Platform: "linux/amd64", Name: "gozzard-linux-amd64", Size: int64(len(r.program)),
				SHA256: hex.EncodeToString(sum[:])},
		}}
	var err error
	if r.text, err = m.Encode(); err != nil {
		r.t.Fatal(err)
	}

	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		r.t.Fatal(err)
	}

	r.public, r.sig = public, ed25519.Sign(private, r.text)
}

func (r *rig) start() {
	r.t.Helper()
	runner, err := upgrade.New(r.t.Context(), r.o)
	if err != nil {
		r.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(r.t.Context())
	var wg sync.WaitGroup
	r.mu.Lock()
	r.Runner = runner
	r.mu.Unlock()
	wg.Go(func() { _ = runner.Run(ctx) })
	r.end = func() { cancel(); wg.Wait() }
}

func (r *rig) now() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return time.Now().Add(r.offset)
}

// Members implements upgrade.Fleet.
func (r *rig) Members() (list []gozzard.AgentID) {
	for a := range r.hosts {
		list = append(list, a)
	}
	slices.Sort(list)
	return list
}

// Look implements upgrade.Fleet.
func (r *rig) Look(a gozzard.AgentID) upgrade.HostView {
	r.mu.Lock()
	defer r.mu.Unlock()
	return *r.hosts[a]
}

// Order implements upgrade.Fleet.
func (r *rig) Order(a gozzard.AgentID, o gozzard.UpdateOrder) {
	r.mu.Lock()
	if !slices.Contains(r.orders, a) {
		r.orders = append(r.orders, a)
	}

	rep := gozzard.UpdateReport{Roll: o.Roll, Version: o.Version, State: gozzard.UpdateDone}
	if o.Manifest != sha256.Sum256(r.text) || r.obey != nil && !r.obey(a, &rep) {
		r.mu.Unlock()
		return
	}

	if rep.State == gozzard.UpdateDone {
		r.hosts[a].Version = o.Version
	}

	runner := r.Runner
	r.mu.Unlock()
	runner.Report(a, rep)
}

func (r *rig) publish() {
	r.t.Helper()
	p, err := r.Publish(r.t.Context(), admin, r.text, r.sig)
	if err != nil || len(p.Missing) != 1 {
		r.t.Fatalf("%+v, %v", p, err)
	}
	if err := r.Upload(p.Version, p.Missing[0].SHA256, bytes.NewReader(r.program)); err != nil {
		r.t.Fatal(err)
	}
}

// until waits until the newest upgrade meets a condition.
func (r *rig) until(what string, cond func(upgrade.Upgrade) bool) upgrade.Upgrade {
	r.t.Helper()

	for end := time.Now().Add(time.Minute); ; time.Sleep(2 * time.Millisecond) {
		list, err := r.Upgrades(r.t.Context(), 1)
		if err != nil || len(list) != 1 {
			r.t.Fatalf("%+v, %v", list, err)
		}
		if cond(list[0]) {
			return list[0]
		}
		if time.Now().After(end) {
			r.t.Fatalf("never %s: %+v", what, list[0])
		}
	}
}

func (r *rig) asked() []gozzard.AgentID {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.orders)
}

var (
	admin  = gozzard.Caller{App: "admin", User: "me", Asserted: true}
	second = gozzard.Caller{App: "admin", User: "someone-else", Asserted: true}
	alice  = gozzard.Caller{User: "alice"}
)

func kindOf(t *testing.T, err error, want gozzard.ErrorKind) {
	t.Helper()
	if err == nil || gozzard.KindOf(err) != want {
		t.Errorf("%v, want %v", err, want)
	}
}

// TestTE8Stages: a stage starts only when every host of the previous one has the release. A host that is offline, has
// the release already or has no program is left out.
func TestTE8Stages(t *testing.T) {
	r := newRig(t, 20, nil)
	r.publish()
	var open sync.Map // hosts that may take the release
	r.obey = func(a gozzard.AgentID, _ *gozzard.UpdateReport) bool { _, ok := open.Load(a); return ok }
	got, err := r.Create(t.Context(), admin, upgrade.Request{Version: version, Stages: []int{5, 50, 100}})
	if err != nil || got.State != upgrade.StateRunning || len(got.Hosts) != 20 || got.By != "app admin" {
		t.Fatalf("%+v, %v", got, err)
	}

	stages := map[int][]gozzard.AgentID{}
	for _, h := range got.Hosts {
		stages[h.Stage] = append(stages[h.Stage], h.Agent)
	}

	if len(stages[0]) != 1 || len(stages[1]) != 9 || len(stages[2]) != 10 {
		t.Fatalf("stages %v", stages)
	}

	r.mu.Lock()
	r.hosts[stages[1][0]].Online = false
	r.hosts[stages[1][1]].Version = version
	r.hosts[stages[1][2]].Platform = "plan9/arm"
	r.mu.Unlock()
	through := 0
	for stage, want := range []int{1, 6, 10} {
		ordered := func() bool { return len(r.asked()) == through+want }
		r.until(fmt.Sprintf("stage %d is asked", stage), func(upgrade.Upgrade) bool { return ordered() })
		for _, a := range r.asked()[through:] {
			if !slices.Contains(stages[stage], a) {
				t.Fatalf("%s was asked before its turn", a)
			}
		}
		_, err := r.Create(t.Context(), admin, upgrade.Request{Version: version})
		kindOf(t, err, gozzard.ErrConflict)
		for i, a := range stages[stage] { // all but the last: the next stage must wait for that
			if i < len(stages[stage])-1 {
				open.Store(a, true)
			}
		}
		r.until("all but one have it", func(n upgrade.Upgrade) bool {
			return slices.IndexFunc(n.Hosts, func(h upgrade.Host) bool {
				return h.Stage == stage && (h.State == upgrade.HostWaiting || h.State == upgrade.HostAsked &&
					h.Agent != stages[stage][len(stages[stage])-1])
			}) < 0
		})
		if !ordered() {
			t.Fatalf("stage %d did not wait", stage+1)
		}
		open.Store(stages[stage][len(stages[stage])-1], true)
		through += want
	}

	done := r.until("done", func(n upgrade.Upgrade) bool { return n.State == upgrade.StateDone })
	counts := map[upgrade.HostState]int{}
	for _, h := range done.Hosts {
		counts[h.State]++
	}

	if counts[upgrade.HostDone] != 18 || counts[upgrade.HostOffline] != 1 || counts[upgrade.HostSkipped] != 1 {
		t.Errorf("%v", counts)
	}

	rows, err := r.store.Audit(t.Context(), 10)
	if err != nil {
		t.Fatal(err)
	}

	var acts []string
	for _, row := range rows {
		acts = append(acts, row.Act)
	}

	if want := []string{"release:done:1.1.0", "release:roll:1.1.0", "release:publish:1.1.0"}; !slices.Equal(acts,
		want) {
		t.Errorf("audit: %v", acts)
	}
}

// TestTE8FailureStops: one host that rejects the release, goes back or does not connect stops the upgrade, with its
// reason.
func TestTE8FailureStops(t *testing.T) {
	for name, tt := range map[string]struct {
		obey func(r *rig) func(gozzard.AgentID, *gozzard.UpdateReport) bool
		want string
	}{
		"refused": {func(*rig) func(gozzard.AgentID, *gozzard.UpdateReport) bool {
			return func(_ gozzard.AgentID, rep *gozzard.UpdateReport) bool {
				rep.State, rep.Reason = gozzard.UpdateRefused, "no release key on this host"
				return true
			}
		}, "refused: no release key on this host"},
		"rolled back": {func(*rig) func(gozzard.AgentID, *gozzard.UpdateReport) bool {
			return func(_ gozzard.AgentID, rep *gozzard.UpdateReport) bool {
				rep.State, rep.Reason = gozzard.UpdateRolledBack, strings.Repeat("x", 1000)
				return true
			}
		}, "rolled back: xxx"},
		"silent": {func(r *rig) func(gozzard.AgentID, *gozzard.UpdateReport) bool {
			return func(gozzard.AgentID, *gozzard.UpdateReport) bool { r.offset = 6 * time.Minute; return false }
		}, "did not connect with the release within 5m0s"},
		"says done and is not": {func(r *rig) func(gozzard.AgentID, *gozzard.UpdateReport) bool {
			return func(a gozzard.AgentID, rep *gozzard.UpdateReport) bool {
				r.offset = 6 * time.Minute
				go r.Runner.Report(a, *rep)
				return false
			}
		}, "did not connect"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, 10, nil)
			r.obey = tt.obey(r)
			r.publish()

			if _, err := r.Create(t.Context(), admin, upgrade.Request{Version: version}); err != nil {
				t.Fatal(err)
			}

			n := r.until("stopped", func(n upgrade.Upgrade) bool { return n.State == upgrade.StateStopped })
			if !strings.Contains(n.Reason, tt.want) || len(n.Reason) > 400 {
				t.Errorf("%s", n.Reason)
			}
			if asked := r.asked(); len(asked) != 1 {
				t.Errorf("%v were asked", asked)
			}
			if _, err := r.Create(t.Context(), admin, upgrade.Request{Version: version,
				Agents: []gozzard.AgentID{"host-03"}}); err != nil {
				t.Errorf("another upgrade: %v", err)
			}
		})
	}
}

// TestTE8RestartGoesOn: a restarted server continues the upgrade.
func TestTE8RestartGoesOn(t *testing.T) {
	r := newRig(t, 5, nil)
	r.publish()
	r.obey = func(gozzard.AgentID, *gozzard.UpdateReport) bool { return false }
	if _, err := r.Create(t.Context(), admin, upgrade.Request{Version: version, Stages: []int{20, 100}}); err != nil {
		t.Fatal(err)
	}

	r.until("asked", func(n upgrade.Upgrade) bool { return n.Hosts[0].State == upgrade.HostAsked })
	r.end()
	r.mu.Lock()
	r.obey = nil
	r.mu.Unlock()
	r.start()
	r.until("done", func(n upgrade.Upgrade) bool { return n.State == upgrade.StateDone })

	if list, err := r.Releases(); err != nil || len(list) != 1 || len(list[0].Missing) != 0 {
		t.Errorf("%+v, %v", list, err)
	}
}

// TestTE8TwoPeople: if two people must agree, one cannot start an upgrade. A user name that an app only gives is not a
// second person.
func TestTE8TwoPeople(t *testing.T) {
	r := newRig(t, 1, func(o *upgrade.Options) { o.TwoPerson = true })
	r.publish()
	got, err := r.Create(t.Context(), admin, upgrade.Request{Version: version})
	if err != nil || got.State != upgrade.StateWaiting {
		t.Fatalf("%+v, %v", got, err)
	}

	for _, c := range []gozzard.Caller{admin, second} {
		_, err = r.Approve(t.Context(), c, version)
		kindOf(t, err, gozzard.ErrUserForbidden)
	}

	_, err = r.Approve(t.Context(), alice, "9.9.9")
	kindOf(t, err, gozzard.ErrNotFound)
	r.end()
	r.start() // a restart approves nothing

	if len(r.asked()) > 0 {
		t.Fatal("begun by one person")
	}
	if got, err = r.Approve(t.Context(), alice, version); err != nil || got.Approved != "user alice" {
		t.Fatalf("%+v, %v", got, err)
	}

	r.until("done", func(n upgrade.Upgrade) bool { return n.State == upgrade.StateDone })
	_, err = r.Approve(t.Context(), alice, version)
	kindOf(t, err, gozzard.ErrNotFound)
}

func TestTE8Publish(t *testing.T) {
	r := newRig(t, 1, nil)
	r.o.Key = r.public
	r.end()
	r.start()
	flipped := bytes.Clone(r.sig)
	flipped[0] ^= 1
	_, err := r.Publish(t.Context(), admin, r.text, flipped)
	kindOf(t, err, gozzard.ErrInvalid)
	_, err = r.Create(t.Context(), admin, upgrade.Request{Version: version})
	kindOf(t, err, gozzard.ErrNotFound)
	p, err := r.Publish(t.Context(), admin, r.text, r.sig)
	if err != nil {
		t.Fatal(err)
	}

	_, err = r.Create(t.Context(), admin, upgrade.Request{Version: version})
	kindOf(t, err, gozzard.ErrConflict) // not uploaded
	digest := p.Missing[0].SHA256
	kindOf(t, r.Upload(version, digest, strings.NewReader("A program")), gozzard.ErrInvalid)
	kindOf(t, r.Upload(version, digest, strings.NewReader("a program and more")), gozzard.ErrInvalid)
	kindOf(t, r.Upload(version, "../../etc/passwd", strings.NewReader("x")), gozzard.ErrNotFound)
	kindOf(t, r.Upload("9.9.9", digest, strings.NewReader("x")), gozzard.ErrNotFound)

	if err := r.Upload(version, digest, bytes.NewReader(r.program)); err != nil {
		t.Fatal(err)
	}
	if again, err := r.Publish(t.Context(), admin, r.text, r.sig); err != nil || len(again.Missing) != 0 {
		t.Errorf("%+v, %v", again, err)
	}

	for _, w := range []upgrade.Request{{Version: version, Stages: []int{50}},
		{Version: version, Stages: []int{50, 10, 100}}, {Version: version, Stages: []int{0, 100}}} {
		_, err := r.Create(t.Context(), admin, w)
		kindOf(t, err, gozzard.ErrInvalid)
	}

	_, err = r.Create(t.Context(), admin, upgrade.Request{Version: version, Agents: []gozzard.AgentID{"stranger"}})
	kindOf(t, err, gozzard.ErrNotFound)

	if err := r.Remove(t.Context(), admin, version); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Program(version, digest); err == nil {
		t.Error("it is still there")
	}
	if _, err := r.Text(version, true); gozzard.KindOf(err) != gozzard.ErrNotFound || errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
