package auth

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
)

// room is a set of lanes with callers that have names. Nothing in it waits: the test says which place becomes free.
type room struct {
	t *testing.T
	lanes
	names map[*waiter]string
	order []*waiter
}

func newRoom(t *testing.T) *room { return &room{t: t, names: map[*waiter]string{}} }

// at is the source of an address.
func at(address string) source {
	return sourceOf(gozzard.WithOrigin(context.Background(), gozzard.Origin{Source: address}))
}

// come lets a caller come in, and reports whether it may wait.
func (r *room) come(name, address string, c claim) bool {
	w := &waiter{from: at(address), claim: c, turn: make(chan turn, 1)}
	r.names[w], r.order = name, append(r.order, w)
	return r.enter(w)
}

// got lists what callers got since the last call, such as "kept:alice".
func (r *room) got() string {
	var list []string
	for _, w := range r.order {
		select {
		case got := <-w.turn:
			word := map[turn]string{turnShared: "shared", turnKept: "kept", turnLost: "lost"}[got]
			list = append(list, word+":"+r.names[w])
		default:
		}
	}
	return strings.Join(list, " ")
}

// wants compares what callers got since the last call.
func (r *room) wants(want string) {
	r.t.Helper()
	if got := r.got(); got != want {
		r.t.Fatalf("got %q, want %q", got, want)
	}
}

// TestTD21NetworksTakeTurns: a network with many callers has the same share as a network with one.
func TestTD21NetworksTakeTurns(t *testing.T) {
	r := newRoom(t)
	for i := range 6 {
		r.come(fmt.Sprint("a", i), fmt.Sprintf("10.0.0.%d", i), claimNone)
	}
	r.come("b0", "10.0.1.1", claimNone)
	r.come("b1", "10.0.1.1", claimNone)
	r.come("c0", "2001:db8::1", claimNone)
	r.come("c1", "2001:db8:0:ffff::1", claimNone) // the same /48
	r.wants("shared:a0")

	for _, want := range []string{"a1", "b0", "c0", "a2", "b1", "c1", "a3", "a4"} {
		r.release(turnShared)
		r.wants("shared:" + want)
	}
	r.release(turnShared)
	r.wants("") // a5 found no room
	if r.waiting != 0 || len(r.lanes.order) != 0 {
		t.Fatalf("%d wait in %d lanes", r.waiting, len(r.lanes.order))
	}
}

// TestTD21WaitingIsBounded: 2 callers of an address, 4 of a network and 64 of all may wait.
func TestTD21WaitingIsBounded(t *testing.T) {
	r := newRoom(t)
	r.come("first", "10.9.9.9", claimNone)
	for i, c := range []struct {
		address string
		waits   bool
	}{{"10.0.0.1", true}, {"10.0.0.1", true}, {"10.0.0.1", false}, {"10.0.0.2", true}, {"10.0.0.3", true},
		{"10.0.0.4", false}} {
		if waits := r.come(fmt.Sprint("a", i), c.address, claimNone); waits != c.waits {
			t.Errorf("caller %d from %s waits: %v", i, c.address, waits)
		}
	}

	for i := range 60 {
		if !r.come(fmt.Sprint("b", i), fmt.Sprintf("10.1.%d.1", i), claimNone) {
			t.Fatalf("network %d finds no room", i)
		}
	}
	if r.come("one more", "10.2.0.1", claimNone) || r.waiting != maxWaiting {
		t.Fatalf("%d wait", r.waiting)
	}
}

// TestTD21KeptPlace: networks with a failed login never take the kept place. Users at their usual networks go before new
// networks.
func TestTD21KeptPlace(t *testing.T) {
	r := newRoom(t)
	r.come("flood0", "10.0.0.1", claimNone)
	r.come("flood1", "10.0.1.1", claimNone)
	r.wants("shared:flood0")

	// The kept place is free.
	r.come("fresh0", "10.1.1.1", claimFresh)
	r.wants("kept:fresh0")

	// Others wait for it.
	r.come("fresh1", "10.1.3.1", claimFresh)
	r.come("usual0", "10.2.0.1", claimUsual)
	r.come("usual1", "10.2.0.1", claimUsual)
	r.come("usual2", "10.2.1.1", claimUsual)
	r.wants("")
	for _, want := range []string{"kept:usual0", "kept:usual2", "kept:usual1", "kept:fresh1", ""} {
		r.release(turnKept)
		r.wants(want)
	}

	r.release(turnShared)
	r.wants("shared:flood1")
}

// TestTD21BetterClaimFindsRoom: in a full room the newest caller with the least claim makes room, for an address, for a
// network and in total. Equal claims displace nothing.
func TestTD21BetterClaimFindsRoom(t *testing.T) {
	r := newRoom(t)
	r.kept = true // by another caller
	r.come("first", "10.9.9.9", claimNone)
	r.wants("shared:first")

	// The stranger has the same address, or the same network.
	r.come("s0", "10.0.0.1", claimNone)
	r.come("s1", "10.0.0.1", claimNone)
	r.come("alice", "10.0.0.1", claimUsual)
	r.wants("lost:s1")
	r.come("s2", "10.0.0.2", claimFresh)
	r.come("s3", "10.0.0.3", claimFresh)
	r.come("bob", "10.0.0.4", claimUsual)
	r.wants("lost:s0")
	r.come("carol", "10.0.0.4", claimUsual)
	r.wants("lost:s3")

	// The room is full.
	for i := range maxWaiting - 4 {
		r.come(fmt.Sprint("n", i), fmt.Sprintf("10.1.%d.1", i), claimNone)
	}
	if r.come("n", "10.3.0.1", claimNone) {
		t.Error("a caller without a claim found room")
	}
	r.come("fresh", "10.4.0.1", claimFresh)
	r.wants("lost:n59")
	r.come("usual", "10.5.0.1", claimUsual)
	r.wants("lost:n58")
	if r.waiting != maxWaiting {
		t.Fatalf("%d wait", r.waiting)
	}

	// A failed login takes the claim of those that wait.
	r.failed(at("10.4.0.1").network)
	r.failed(at("10.5.0.1").network) // stays a usual network
	r.come("usual2", "10.5.1.1", claimUsual)
	r.wants("lost:fresh")
}

// TestTD21CallersThatGo: a caller that goes leaves its room and its place. The places are used by one caller each, and
// all of them are free at the end.
func TestTD21CallersThatGo(t *testing.T) {
	var l lanes
	var busy, ran atomic.Int32
	var wg sync.WaitGroup
	for i := range 200 {
		wg.Go(func() {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			w := &waiter{from: at(fmt.Sprintf("10.%d.%d.1", i%3, i%20)), claim: claim(i % 3)}
			if i%5 == 0 {
				go cancel()
			}
			_ = l.use(ctx, w, func() { // may have no room, or be gone
				if busy.Add(1) > 2 {
					t.Error("three callers use two places")
				}
				ran.Add(1)
				busy.Add(-1)
			})
		})
	}
	wg.Wait()

	if l.shared || l.kept || l.waiting != 0 || len(l.order) != 0 || ran.Load() == 0 {
		t.Fatalf("shared %v, kept %v, %d wait, %d ran", l.shared, l.kept, l.waiting, ran.Load())
	}
}

// TestTD21Claims: a failed login counts for an hour and for its network. A right one makes the network usual for that
// user only, and stays.
func TestTD21Claims(t *testing.T) {
	now := time.Now()
	u := newUsual(func() time.Time { return now })
	office, other := at("10.0.0.1").network, at("10.0.1.1").network
	wants := func(user string, n netip.Prefix, want claim) {
		t.Helper()
		if got := u.claim(user, n); got != want {
			t.Errorf("%s from %s has the claim %d, want %d", user, n, got, want)
		}
	}

	wants("alice", office, claimFresh)
	u.fail(at("10.0.0.99").network)
	wants("alice", office, claimNone)
	wants("alice", other, claimFresh)
	u.remember("alice", office)
	wants("alice", office, claimUsual)
	wants("bob", office, claimNone)
	now = now.Add(failureTime)
	wants("bob", office, claimFresh)
	u.fail(office)
	wants("alice", office, claimUsual)
}

// TestTD21MemoryIsBounded: users and networks that are seen for the first time displace the oldest ones. One user with
// many networks displaces only its own.
func TestTD21MemoryIsBounded(t *testing.T) {
	now := time.Now()
	u := newUsual(func() time.Time { now = now.Add(time.Millisecond); return now })
	net := func(i int) netip.Prefix { return at(fmt.Sprintf("10.%d.%d.1", i>>8&255, i&255)).network }
	u.remember("alice", net(0))
	u.remember("bob", net(0))
	for i := range 1000 {
		u.remember("mallory", net(i))
	}
	if u.claim("alice", net(0)) != claimUsual || u.claim("mallory", net(999)) != claimUsual ||
		u.claim("mallory", net(0)) == claimUsual || u.pairs != 2+maxUsualOfUser {
		t.Fatalf("%d pairs are remembered", u.pairs)
	}

	u.remember("alice", net(0)) // is newer than bob
	for i := range maxUsual - u.pairs + 1 {
		u.remember(fmt.Sprint("user", i), net(1))
	}
	if u.claim("bob", net(0)) == claimUsual || u.claim("alice", net(0)) != claimUsual || u.pairs != maxUsual {
		t.Fatalf("%d pairs are remembered", u.pairs)
	}

	for i := range maxFailures + 1000 {
		u.fail(netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}), 32))
	}
	if n := len(u.failures); n > maxFailures || n < maxFailures/2 {
		t.Fatalf("%d failures are remembered", n)
	}
}

// TestSources: the address is a /32 or a /64, the network is a /24 or a /48.
func TestSources(t *testing.T) {
	var got []string
	for _, a := range []string{"10.1.2.3", "::ffff:10.1.2.3", "2001:db8:1:2:3::4", "fe80::1%eth0", ""} {
		s := at(a)
		got = append(got, s.address.String()+" "+s.network.String())
	}
	want := []string{"10.1.2.3/32 10.1.2.0/24", "10.1.2.3/32 10.1.2.0/24", "2001:db8:1:2::/64 2001:db8:1::/48",
		"fe80::/64 fe80::/48", "invalid Prefix invalid Prefix"}
	if !slices.Equal(got, want) {
		t.Fatalf("got %q", got)
	}
}
