package auth_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/auth"
)

// newSessionRig has a user alice with a password, and short times.
func newSessionRig(t *testing.T) *rig {
	t.Helper()
	r := newRig(t, func(o *auth.Options) { o.ConsoleLife, o.ConsoleIdle = 8*time.Hour, time.Hour })
	must(t, r.CreateUser(t.Context(), by, auth.User{Name: "alice", Grants: []gozzard.Grant{{Role: gozzard.RoleViewer}}},
		alicePassword))
	return r
}

func (r *rig) open(t *testing.T) auth.Session {
	t.Helper()
	s, err := r.OpenConsole(t.Context(), "alice", auth.Proof{Password: alicePassword})
	must(t, err)
	return s
}

func (r *rig) session(s auth.Session, use bool) error {
	_, _, err := r.Directory().CheckSession(s.Secret, use)
	return err
}

func TestSessionEnds(t *testing.T) {
	r := newSessionRig(t)

	// It becomes idle without requests. A look that is no request does not count.
	s := r.open(t)
	r.clock.pass(59 * time.Minute)
	must(t, r.session(s, false))
	r.clock.pass(time.Minute)
	wantKind(t, r.session(s, true), gozzard.ErrUnauthenticated)
	if list := r.Tokens("alice"); len(list) != 0 {
		t.Errorf("an idle session is in the list: %+v", list)
	}

	// With requests it lasts until its end.
	s = r.open(t)
	for range 15 {
		r.clock.pass(30 * time.Minute)
		must(t, r.session(s, true))
	}
	r.clock.pass(30 * time.Minute)
	wantKind(t, r.session(s, true), gozzard.ErrUnauthenticated)

	// A server that starts again knows the session, and begins to count.
	s = r.open(t)
	r.clock.pass(50 * time.Minute)
	again, err := auth.Open(t.Context(), r.store, auth.Options{Now: r.clock.Now, ConsoleIdle: time.Hour})
	must(t, err)
	r.clock.pass(50 * time.Minute)
	_, _, err = again.Directory().CheckSession(s.Secret, true)
	must(t, err)
	r.clock.pass(time.Hour)
	_, _, err = again.Directory().CheckSession(s.Secret, true)
	wantKind(t, err, gozzard.ErrUnauthenticated)
}

// TestSessionEndsWithItsUser: whatever ends the other tokens of a user ends sessions, too.
func TestSessionEndsWithItsUser(t *testing.T) {
	for what, end := range map[string]func(r *rig) error{
		"a new password": func(r *rig) error { return r.SetPassword(t.Context(), by, "alice", "another password") },
		"disable":        func(r *rig) error { return r.Disable(t.Context(), by, "alice", true) },
		"delete":         func(r *rig) error { return r.DropUser(t.Context(), by, "alice") },
		"offboard": func(r *rig) error {
			_, err := r.Offboard(t.Context(), by, "alice")
			return err
		},
	} {
		r := newSessionRig(t)
		s := r.open(t)
		changed := r.Directory().Changed()
		must(t, end(r))

		if err := r.session(s, true); gozzard.KindOf(err) != gozzard.ErrUnauthenticated {
			t.Errorf("after %s: %v", what, err)
		}
		select {
		case <-changed:
		default:
			t.Errorf("%s wakes no stream", what)
		}
	}
}

func TestSessionIsOnlyACookie(t *testing.T) {
	r := newSessionRig(t)
	s := r.open(t)
	if !strings.HasPrefix(s.Secret, "gzc_") || strings.Contains(s.CSRF(), s.Secret) || !s.Admits(s.CSRF()) ||
		s.Admits("") || s.Admits(s.Secret) {
		t.Errorf("the session is %+v with %s", s, s.CSRF())
	}

	_, err := r.Directory().CheckPerson(s.Secret)
	wantKind(t, err, gozzard.ErrUnauthenticated)
	_, err = r.check(t, auth.Credentials{App: "admin", Secret: "root", Token: s.Secret})
	wantKind(t, err, gozzard.ErrUnauthenticated)
	login, _, err := r.Login(t.Context(), "alice", alicePassword)
	must(t, err)
	_, _, err = r.Directory().CheckSession(login, true)
	wantKind(t, err, gozzard.ErrUnauthenticated)
}

func TestLinkIsUsedOnce(t *testing.T) {
	r := newSessionRig(t)
	ctx := t.Context()
	app := gozzard.Caller{App: "admin", User: "me"}
	link := func() string {
		t.Helper()
		code, _, err := r.NewLink(app)
		must(t, err)
		return code
	}

	code := link()
	s, err := r.EnterLink(ctx, code)
	must(t, err)
	_, caller, err := r.Directory().CheckSession(s.Secret, true)
	must(t, err)
	if caller.App != "admin" || caller.User != "me" || !caller.Asserted || !caller.Rights.All() {
		t.Errorf("the session is of %+v", caller)
	}
	_, err = r.EnterLink(ctx, code)
	wantKind(t, err, gozzard.ErrUnauthenticated)

	// A fresh session has what the secret of the app has, an old one must be opened anew.
	must(t, r.ProveAgain(ctx, s.Secret, auth.Proof{}))
	r.clock.pass(auth.FreshLogin)
	wantKind(t, r.ProveAgain(ctx, s.Secret, auth.Proof{}), gozzard.ErrUnauthenticated)

	// After a minute it is not valid.
	code = link()
	r.clock.pass(auth.LinkLife - time.Millisecond)
	other := link()
	r.clock.pass(time.Millisecond)
	_, err = r.EnterLink(ctx, code)
	wantKind(t, err, gozzard.ErrUnauthenticated)
	_, err = r.EnterLink(ctx, other)
	must(t, err)

	// The eleventh link of a caller replaces the first.
	first := link()
	r.clock.pass(time.Millisecond)
	for range 10 {
		code = link()
	}
	_, err = r.EnterLink(ctx, first)
	wantKind(t, err, gozzard.ErrUnauthenticated)
	_, err = r.EnterLink(ctx, code)
	must(t, err)

	// An app that is disabled in the meantime opens nothing, and its sessions end.
	must(t, r.CreateUser(ctx, by, auth.User{Name: "root", Grants: gozzard.Everything().Grants}, alicePassword))
	code = link()
	must(t, r.SetFlags(ctx, by, "admin", auth.Flags{Disabled: new(true)}))
	_, err = r.EnterLink(ctx, code)
	wantKind(t, err, gozzard.ErrUnauthenticated)
	must(t, r.SetFlags(ctx, by, "admin", auth.Flags{Disabled: new(false)}))
	wantKind(t, r.session(s, true), gozzard.ErrUnauthenticated)
}

// TestLinkOfAToken: a session that a token opened has the rights of the user and does not last longer than the token.
func TestLinkOfAToken(t *testing.T) {
	r := newSessionRig(t)
	ctx := t.Context()
	secret, token, err := r.CreateToken(ctx, by, "alice", "", 2*time.Hour)
	must(t, err)
	caller, err := r.Directory().CheckPerson(secret)
	must(t, err)
	code, _, err := r.NewLink(caller)
	must(t, err)
	s, err := r.EnterLink(ctx, code)
	must(t, err)
	if s.Token.User != "alice" || s.Token.App != "" || !s.Token.Expires.Equal(token.Expires) {
		t.Errorf("the session is %+v", s.Token)
	}

	// It proves as little as the token that opened it: a stolen token must not make another one that lasts longer.
	wantKind(t, r.ProveAgain(ctx, s.Secret, auth.Proof{}), gozzard.ErrUnauthenticated)
	must(t, r.ProveAgain(ctx, s.Secret, auth.Proof{Password: alicePassword}))

	// A token that was revoked opens nothing any more, and the session that it opened ends with it. Others do not.
	other := r.open(t)
	code, _, err = r.NewLink(caller)
	must(t, err)
	must(t, r.DropToken(ctx, by, "alice", token.ID))
	wantKind(t, r.session(s, true), gozzard.ErrUnauthenticated)
	must(t, r.session(other, true))
	_, err = r.EnterLink(ctx, code)
	wantKind(t, err, gozzard.ErrUnauthenticated)
	_, _, err = r.NewLink(caller)
	wantKind(t, err, gozzard.ErrUnauthenticated)
}

// TestLinkOfALogin: a session that a login on the command line opened ends with that login, unless the session itself
// ends all others.
func TestLinkOfALogin(t *testing.T) {
	r := newSessionRig(t)
	ctx := t.Context()
	enter := func() (login auth.Token, s auth.Session) {
		secret, login, err := r.Login(ctx, "alice", alicePassword)
		must(t, err)
		caller, err := r.Directory().CheckPerson(secret)
		must(t, err)
		code, _, err := r.NewLink(caller)
		must(t, err)
		s, err = r.EnterLink(ctx, code)
		must(t, err)
		return login, s
	}

	login, s := enter()
	must(t, r.DropToken(ctx, by, "alice", login.ID))
	wantKind(t, r.session(s, true), gozzard.ErrUnauthenticated)

	login, s = enter()
	n, err := r.EndOthers(ctx, s)
	must(t, err)
	if n != 1 {
		t.Errorf("%d sessions ended", n)
	}
	must(t, r.session(s, true))
	wantKind(t, r.DropToken(ctx, by, "alice", login.ID), gozzard.ErrNotFound)
}

func TestEndOtherSessions(t *testing.T) {
	r := newSessionRig(t)
	ctx := t.Context()
	must(t, r.CreateUser(ctx, by, auth.User{Name: "bob"}, alicePassword))
	one, two := r.open(t), r.open(t)
	bob, err := r.OpenConsole(ctx, "bob", auth.Proof{Password: alicePassword})
	must(t, err)
	login, _, err := r.Login(ctx, "alice", alicePassword)
	must(t, err)
	token, _, err := r.CreateToken(ctx, by, "alice", "", time.Hour)
	must(t, err)

	n, err := r.EndOthers(ctx, one)
	must(t, err)
	if n != 2 {
		t.Errorf("%d sessions ended", n)
	}
	must(t, r.session(one, true))
	must(t, r.session(bob, true))
	wantKind(t, r.session(two, true), gozzard.ErrUnauthenticated)
	_, err = r.Directory().CheckPerson(login)
	wantKind(t, err, gozzard.ErrUnauthenticated)
	_, err = r.Directory().CheckPerson(token)
	must(t, err)

	// The session of an app for a user of that name is not the user, and ends nothing of the user.
	code, _, err := r.NewLink(gozzard.Caller{App: "admin", User: "alice"})
	must(t, err)
	app, err := r.EnterLink(ctx, code)
	must(t, err)
	n, err = r.EndOthers(ctx, app)
	must(t, err)
	if n != 0 || r.session(one, true) != nil {
		t.Errorf("an app ended %d sessions of a user", n)
	}
}

// TestTR1SessionsHaveRows: the audit has the begin and the end of every session.
func TestTR1SessionsHaveRows(t *testing.T) {
	r := newSessionRig(t)
	ctx := t.Context()
	one, two := r.open(t), r.open(t)
	code, _, err := r.NewLink(gozzard.Caller{App: "admin", User: "me"})
	must(t, err)
	link, err := r.EnterLink(ctx, code)
	must(t, err)
	_, err = r.EndOthers(ctx, one)
	must(t, err)
	must(t, r.EndSession(ctx, one))

	for _, act := range []string{"user:login alice " + one.Token.ID, "user:login alice " + two.Token.ID,
		"user:login me " + link.Token.ID, "session:end-others alice", "token:revoke alice " + one.Token.ID} {
		if !slices.Contains(r.store.acts, act) {
			t.Errorf("no row says %q: %v", act, r.store.acts)
		}
	}
}
