package auth_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/auth"
)

// TestTD21WhatMakesANetworkUsual: everything that proves a password does, and a session or token that is sent alone. A
// wrong password and an unknown name take the claim of the network. A right password without its code does neither.
func TestTD21WhatMakesANetworkUsual(t *testing.T) {
	r := newRig(t)
	must(t, r.CreateUser(t.Context(), by, auth.User{Name: "alice"}, alicePassword))
	n := 0
	in := func(want string, act func(ctx context.Context)) {
		t.Helper()
		n++
		ctx := gozzard.WithOrigin(t.Context(), gozzard.Origin{Source: fmt.Sprintf("10.0.%d.1", n)})
		act(ctx)
		if got := r.Directory().Claim(ctx, "alice"); got != want {
			t.Errorf("network %d has the claim %q, want %q", n, got, want)
		}
	}
	proof := auth.Proof{Password: alicePassword}

	in("fresh", func(context.Context) {})
	in("none", func(ctx context.Context) { _, _, _ = r.Login(ctx, "alice", "a password of malice") })
	in("none", func(ctx context.Context) { _, _, _ = r.Login(ctx, "unknown", alicePassword) })

	var session string
	in("usual", func(ctx context.Context) {
		var err error
		session, _, err = r.Login(ctx, "alice", alicePassword)
		must(t, err)
	})
	in("usual", func(ctx context.Context) { must(t, r.ProveAgain(ctx, session, proof)) })
	in("usual", func(ctx context.Context) { must(t, r.Prove(ctx, "alice", proof)) })
	in("usual", func(ctx context.Context) {
		caller, err := r.Directory().CheckPerson(session)
		must(t, err)
		r.Directory().Seen(ctx, caller)
	})
	in("fresh", func(ctx context.Context) { r.Directory().Seen(ctx, gozzard.Caller{App: "admin", User: "alice"}) })

	var e auth.Enrolment
	in("usual", func(ctx context.Context) {
		var err error
		e, err = r.EnrolSecond(ctx, "alice", proof)
		must(t, err)
	})
	in("usual", func(ctx context.Context) {
		proof.Code = code(t, e.Secret, r.clock.Now())
		must(t, r.ConfirmSecond(ctx, "alice", proof))
	})
	in("fresh", func(ctx context.Context) { _, _, _ = r.Login(ctx, "alice", alicePassword) })
	in("none", func(ctx context.Context) {
		wantKind(t, r.ConfirmSecond(ctx, "alice", auth.Proof{Password: "a password of malice"}), gozzard.ErrUnauthenticated)
		r.clock.pass(59 * time.Minute)
	})
}
