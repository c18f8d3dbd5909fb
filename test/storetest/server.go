package storetest

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/enrol"
	"github.com/gozzard/gozzard/internal/lease"
	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/upgrade"
)

// ServerRecord is a store of servers, leases and versions, with something that they are about.
type ServerRecord interface {
	upgrade.Store

	RegisterServer(ctx context.Context, v record.Server) error
	RefreshServer(ctx context.Context, id string, agents int) (drained bool, err error)
	DrainServer(ctx context.Context, id string, drained bool, alive time.Duration, audit enrol.AuditEntry) error
	Servers(ctx context.Context) ([]record.Server, error)
	RemoveServers(ctx context.Context, absent time.Duration) (int, error)

	ClaimLeases(ctx context.Context, holder string, names []string, held []lease.Fence,
		ttl time.Duration) ([]lease.Lease, error)
	ReleaseLeases(ctx context.Context, held []lease.Fence) error
	Leases(ctx context.Context) ([]lease.Lease, error)

	Versions(ctx context.Context) (map[record.Kind]int64, error)

	SigningKey(ctx context.Context) (string, error)
	SetSigningKey(ctx context.Context, from, to string, audit enrol.AuditEntry) error

	Authority(ctx context.Context) (record.Authority, error)
	SetAuthority(ctx context.Context, from, to record.Authority, audit enrol.AuditEntry) error
	SetServerAuthority(ctx context.Context, id, pin string) (found bool, err error)
}

// RunServers runs the contract of servers and their leases. open returns a new, empty store and closes it at the end of
// the test.
func RunServers(t *testing.T, open func(*testing.T) ServerRecord) {
	for name, f := range map[string]func(*testing.T, ServerRecord){
		"servers": servers, "servers: drain": drains, "leases: one holder": leaseHolders, "leases: an earlier run of the holder": leaseOfEarlierRun,
		"leases: fences of writes": leaseFences, "versions": versions, "signing key": signingKeys, "authority": authorities,
	} {
		t.Run(name, func(t *testing.T) { f(t, open(t)) })
	}
}

func servers(t *testing.T, s ServerRecord) {
	// Register two. The times that the callers give do not count.
	ctx := t.Context()
	b := record.Server{ID: "id-b", Name: "乙", URL: "https://b:8443", Address: "10.0.0.2:4244", Version: "1.2.3", Agents: 4,
		Started: start, Seen: start}
	must(t, s.RegisterServer(ctx, b))
	must(t, s.RegisterServer(ctx, record.Server{ID: "id-a", Name: "a\x00", Drained: true}))
	list, err := s.Servers(ctx)
	must(t, err)

	if len(list) != 2 || list[0].ID != "id-a" || list[0].Name != "a\uFFFD" || !list[0].Drained {
		t.Fatalf("got %+v", list)
	}
	got := list[1]
	first := got.Started
	if got.Started.Equal(start) || got.Seen.Before(got.Started) || got.Ago < 0 || got.Ago > time.Hour {
		t.Errorf("started %s, seen %s, %s ago", got.Started, got.Seen, got.Ago)
	}
	got.Started, got.Seen, got.Ago = start, start, 0
	equal(t, "the server", got, b)

	// Refresh.
	time.Sleep(20 * time.Millisecond)
	drained, err := s.RefreshServer(ctx, "id-b", 7)
	must(t, err)
	if list, err = s.Servers(ctx); err != nil || drained || list[1].Agents != 7 || !list[1].Seen.After(first) ||
		!list[1].Started.Equal(first) || list[0].Ago < 20*time.Millisecond {
		t.Errorf("drained %t, %+v, %v", drained, list, err)
	}
	_, err = s.RefreshServer(ctx, "id-c", 7)
	wantKind(t, err, gozzard.ErrNotFound)

	// A server that starts again stays drained.
	must(t, s.RegisterServer(ctx, record.Server{ID: "id-a", Name: "a", Version: "1.2.4"}))
	if drained, err := s.RefreshServer(ctx, "id-a", 0); err != nil || !drained {
		t.Errorf("drained %t, %v", drained, err)
	}

	// Remove those that were not seen. A busy machine may need long between the refresh and the removal.
	const absent = 2 * time.Second
	if n, err := s.RemoveServers(ctx, time.Hour); err != nil || n != 0 {
		t.Errorf("removed %d, %v", n, err)
	}
	time.Sleep(absent)
	_, err = s.RefreshServer(ctx, "id-b", 7)
	must(t, err)
	if n, err := s.RemoveServers(ctx, absent); err != nil || n != 1 {
		t.Errorf("removed %d, %v", n, err)
	}
	if list, err = s.Servers(ctx); err != nil || len(list) != 1 || list[0].ID != "id-b" {
		t.Errorf("got %+v, %v", list, err)
	}
}

// drains: one server that runs and takes agents is left, whatever admins want.
func drains(t *testing.T, s ServerRecord) {
	ctx := t.Context()
	audit := enrol.AuditEntry{At: start, Caller: gozzard.Caller{User: "me"}, What: "server:drain:x"}
	drain := func(id string, drained bool) error { return s.DrainServer(ctx, id, drained, time.Hour, audit) }
	drained := func() (list []string) {
		all, err := s.Servers(ctx)
		must(t, err)
		for i := range all {
			if all[i].Drained {
				list = append(list, all[i].ID)
			}
		}
		return list
	}
	for _, id := range []string{"a", "b"} {
		must(t, s.RegisterServer(ctx, record.Server{ID: id, Name: id, AgentAddress: id + ":4230"}))
	}
	must(t, s.RegisterServer(ctx, record.Server{ID: "c", Name: "c"})) // agents cannot reach it

	// One of them, twice, and back.
	must(t, drain("a", true))
	must(t, drain("a", true))
	equal(t, "drained", drained(), []string{"a"})
	wantKind(t, drain("b", true), gozzard.ErrConflict)
	wantKind(t, drain("d", true), gozzard.ErrNotFound)
	must(t, drain("a", false))
	must(t, drain("b", true))
	equal(t, "drained", drained(), []string{"b"})
	must(t, drain("b", false))

	// One that was not seen lately takes no agents.
	time.Sleep(30 * time.Millisecond)
	_, err := s.RefreshServer(ctx, "a", 0)
	must(t, err)
	wantKind(t, s.DrainServer(ctx, "a", true, 20*time.Millisecond, audit), gozzard.ErrConflict)

	// Two admins at once.
	results := make(chan error, 2)
	for _, id := range []string{"a", "b"} {
		go func() { results <- drain(id, true) }()
	}
	if x, y := <-results, <-results; (x == nil) == (y == nil) {
		t.Errorf("both or none of the last two servers are drained: %v, %v", x, y)
	}
	equal(t, "servers that are drained", len(drained()), 1)
}

// claim claims leases for an hour, or for a time that has ended at once.
func claim(t *testing.T, s ServerRecord, holder string, held []lease.Lease, names ...string) (got []lease.Lease) {
	t.Helper()
	return claimFor(t, s, time.Hour, holder, held, names...)
}

func claimFor(t *testing.T, s ServerRecord, ttl time.Duration, holder string, held []lease.Lease,
	names ...string) (got []lease.Lease) {
	t.Helper()
	got, err := s.ClaimLeases(t.Context(), holder, names, fences(held), ttl)
	must(t, err)
	return got
}

func fences(held []lease.Lease) (list []lease.Fence) {
	for _, l := range held {
		list = append(list, l.Fence)
	}
	return list
}

func numbers(held []lease.Lease) (list []int64) {
	for _, l := range held {
		list = append(list, l.Number)
	}
	return list
}

func leaseHolders(t *testing.T, s ServerRecord) {
	// The first has it, renews it, and keeps its fence.
	a := claim(t, s, "a", nil, "jobs", "prune")
	equal(t, "the fences of a", numbers(a), []int64{1, 1})
	equal(t, "the leases of b", len(claim(t, s, "b", nil, "jobs", "prune")), 0)
	a = claim(t, s, "a", a, "jobs", "prune")
	equal(t, "the fences of a, renewed", numbers(a), []int64{1, 1})

	// A lease that was released or has ended is another's, with a new fence.
	must(t, s.ReleaseLeases(t.Context(), fences(a[:1])))
	b := claim(t, s, "b", nil, "jobs", "prune")
	equal(t, "the fences of b", b[0].Fence, lease.Fence{Name: "jobs", Holder: "b", Number: 2})
	equal(t, "the leases of b", len(b), 1)
	a = claimFor(t, s, -time.Second, "a", a[1:], "prune")
	equal(t, "the fence of a, renewed", numbers(a), []int64{1})
	b = claim(t, s, "b", b, "jobs", "prune")
	equal(t, "the fences of b", numbers(b), []int64{2, 2})

	// The first comes late: it gets nothing, and cannot release what is another's.
	equal(t, "the leases of a", len(claim(t, s, "a", a, "jobs", "prune")), 0)
	must(t, s.ReleaseLeases(t.Context(), fences(a)))
	list, err := s.Leases(t.Context())
	must(t, err)
	equal(t, "all leases", fences(list), fences(b))
	if list[0].Left < 59*time.Minute || list[0].Left > time.Hour {
		t.Errorf("%s left", list[0].Left)
	}

	// A lease that has ended and that nobody took is still its holder's.
	b = claimFor(t, s, -time.Second, "b", b, "jobs", "prune")
	equal(t, "the fences of b, late", numbers(claim(t, s, "b", b, "jobs", "prune")), []int64{2, 2})
}

// leaseOfEarlierRun: a server that starts again does not wait for its own lease, and what its earlier run still has under
// way is rejected.
func leaseOfEarlierRun(t *testing.T, s ServerRecord) {
	before := claim(t, s, "a", nil, "jobs")
	after := claim(t, s, "a", nil, "jobs")
	equal(t, "the fence of the new run", numbers(after), []int64{2})

	rel := upgrade.Release{Version: "1.0.0", Manifest: []byte("{}"), Signature: []byte{1}, Published: start, By: "user me"}
	err := s.AddRelease(lease.WithFence(t.Context(), before[0].Fence), rel, releaseAudit(""))
	if !errors.Is(err, lease.ErrLost) {
		t.Errorf("the earlier run could write: %v", err)
	}
	must(t, s.AddRelease(lease.WithFence(t.Context(), after[0].Fence), rel, releaseAudit("")))
}

// leaseFences: a write with a fence that is not that of its lease has no effect, in a transaction of its own and in one
// that it shares.
func leaseFences(t *testing.T, s ServerRecord) {
	a := claimFor(t, s, -time.Second, "a", nil, "jobs")
	release := func(ctx context.Context, version string) error {
		return s.AddRelease(ctx, upgrade.Release{Version: version, Manifest: []byte("{}"), Signature: []byte{1},
			Published: start, By: "user me"}, releaseAudit("release:publish:"+version))
	}
	late := lease.WithFence(t.Context(), a[0].Fence)
	must(t, release(late, "1.0.0")) // nobody else has it yet

	b := claim(t, s, "b", nil, "jobs")
	held := lease.WithFence(t.Context(), b[0].Fence)
	forged := []lease.Fence{
		{Name: "jobs", Holder: "a", Number: b[0].Number},
		{Name: "jobs", Holder: "b", Number: b[0].Number + 1},
		{Name: "no such work", Holder: "b", Number: 1},
		{},
	}
	for _, ctx := range []context.Context{late, context.WithoutCancel(late), lease.WithFence(t.Context(), forged[0]),
		lease.WithFence(t.Context(), forged[1]), lease.WithFence(t.Context(), forged[2]),
		lease.WithFence(t.Context(), forged[3])} {
		err := release(ctx, "late")
		wantKind(t, err, gozzard.ErrConflict)
		if !errors.Is(err, lease.ErrLost) {
			t.Errorf("got %v", err)
		}
	}

	// In shared transactions only the late ones fail.
	var done []string
	results := make(chan error, 60)
	for i := range 60 {
		ctx, version := late, "late"
		if i%2 == 0 {
			ctx, version = held, "2.0."+string(rune('a'+i/4))
			done = append(done, version)
		}
		go func() {
			err := release(ctx, version)
			if (ctx == late) != errors.Is(err, lease.ErrLost) {
				t.Errorf("%s: %v", version, err)
			}
			results <- err
		}()
	}
	for range 60 {
		<-results
	}

	list, err := s.Releases(t.Context())
	must(t, err)
	var names []string
	for _, r := range list {
		names = append(names, r.Version)
	}
	slices.Sort(names)
	equal(t, "the releases", names, slices.Compact(append([]string{"1.0.0"}, done...)))
}

func versions(t *testing.T, s ServerRecord) {
	read := func() int64 {
		all, err := s.Versions(t.Context())
		must(t, err)
		return all[record.KindReleases]
	}
	equal(t, "the version of nothing", read(), int64(0))

	// A change counts once, one that was rejected does not.
	rel := upgrade.Release{Version: "1.0.0", Manifest: []byte("{}"), Signature: []byte{1}, Published: start, By: "user me"}
	must(t, s.AddRelease(t.Context(), rel, releaseAudit("release:publish:1.0.0")))
	equal(t, "the version", read(), int64(1))
	rel.Manifest = []byte("[]")
	wantKind(t, s.AddRelease(t.Context(), rel, releaseAudit("")), gozzard.ErrConflict)
	equal(t, "the version", read(), int64(1))

	// What a server does by itself in an upgrade does not count: it would read it again and again.
	u := &upgrade.Upgrade{Version: "1.0.0", Stages: []int{100}, State: upgrade.StateRunning, Created: start, Changed: start,
		Hosts: []upgrade.Host{{Agent: "a", State: upgrade.HostWaiting}}}
	must(t, s.AddUpgrade(t.Context(), u, releaseAudit("release:roll:1.0.0")))
	equal(t, "the version", read(), int64(2))
	must(t, s.SaveUpgrade(t.Context(), u, u.Hosts, upgrade.AuditEntry{}))
	equal(t, "the version", read(), int64(2))
	u.State = upgrade.StateStopped
	must(t, s.SaveUpgrade(t.Context(), u, nil, releaseAudit("release:stop:1.0.0")))
	equal(t, "the version", read(), int64(3))
	must(t, s.RemoveRelease(t.Context(), "1.0.0", releaseAudit("release:remove:1.0.0")))
	equal(t, "the version", read(), int64(4))
}

// signingKeys: a key follows the recorded one, whichever server is first. A repeated try changes nothing.
func signingKeys(t *testing.T, s ServerRecord) {
	ctx := t.Context()
	set := func(from, to string) error { return s.SetSigningKey(ctx, from, to, enrol.AuditEntry{}) }
	is := func(want string) {
		t.Helper()
		got, err := s.SigningKey(ctx)
		must(t, err)
		equal(t, "the key", got, want)
	}
	is("")
	wantKind(t, set("k1", "k2"), gozzard.ErrConflict)
	must(t, set("", "k1"))
	is("k1")

	results := make(chan error, 2)
	for _, key := range []string{"k2a", "k2b"} {
		go func() { results <- set("k1", key) }()
	}
	if x, y := <-results, <-results; (x == nil) == (y == nil) {
		t.Errorf("two keys follow one: %v, %v", x, y)
	}
	got, err := s.SigningKey(ctx)
	must(t, err)
	must(t, set("k1", got))
	is(got)
	all, err := s.Versions(ctx)
	must(t, err)
	equal(t, "the version", all[record.KindSigning], int64(2))
}

// authorities: a step of a rotation follows the recorded one, whichever server is first. A repeated try changes nothing.
func authorities(t *testing.T, s ServerRecord) {
	ctx := t.Context()
	set := func(from, to record.Authority) error { return s.SetAuthority(ctx, from, to, enrol.AuditEntry{}) }
	is := func(want record.Authority) {
		t.Helper()
		got, err := s.Authority(ctx)
		must(t, err)
		equal(t, "the authority", got, want)
	}
	first := record.Authority{Current: "a"}
	is(record.Authority{})
	wantKind(t, set(first, record.Authority{Current: "a", Next: "b"}), gozzard.ErrConflict)
	must(t, set(record.Authority{}, first))

	results := make(chan error, 2)
	for _, next := range []string{"b", "c"} {
		go func() { results <- set(first, record.Authority{Current: "a", Next: next}) }()
	}
	if x, y := <-results, <-results; (x == nil) == (y == nil) {
		t.Errorf("two authorities follow one: %v, %v", x, y)
	}
	won, err := s.Authority(ctx)
	must(t, err)
	must(t, set(first, won))
	end := record.Authority{Current: won.Next}
	must(t, set(won, end))
	wantKind(t, set(won, first), gozzard.ErrConflict)
	is(end)
	all, err := s.Versions(ctx)
	must(t, err)
	equal(t, "the version", all[record.KindAuthority], int64(3))

	// Which servers have it.
	found, err := s.SetServerAuthority(ctx, "id-a", "pin1")
	must(t, err)
	equal(t, "found", found, false)
	must(t, s.RegisterServer(ctx, record.Server{ID: "id-a", Name: "a", Authority: "pin1", Seal: "key1"}))
	must(t, s.RegisterServer(ctx, record.Server{ID: "id-b", Name: "b"}))
	found, err = s.SetServerAuthority(ctx, "id-b", "pin2")
	must(t, err)
	equal(t, "found", found, true)
	list, err := s.Servers(ctx)
	must(t, err)
	for i, want := range []record.Server{{Authority: "pin1", Seal: "key1"}, {Authority: "pin2"}} {
		equal(t, "the authority of a server", list[i].Authority, want.Authority)
		equal(t, "the public key of a server", list[i].Seal, want.Seal)
	}
	must(t, s.RegisterServer(ctx, record.Server{ID: "id-a", Name: "a", Authority: "pin3", Seal: "key2"}))
	if list, err = s.Servers(ctx); err != nil || list[0].Authority != "pin3" || list[0].Seal != "key2" {
		t.Errorf("a server that started again: %v, %+v", err, list)
	}
}
