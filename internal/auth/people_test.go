package auth_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/auth"
	"github.com/gozzard/gozzard/test/fleettest"
)

const alicePassword = "a password of alice"

// code is what an authenticator program shows for a secret.
func code(t *testing.T, secret string, at time.Time) string {
	t.Helper()
	text, err := fleettest.TOTPCode(secret, at)
	must(t, err)
	return text
}

// TestUnknownUsers: what people get through apps that the record does not know.
func TestUnknownUsers(t *testing.T) {
	r := newRig(t)
	ctx := t.Context()
	grants := []gozzard.Grant{{Role: gozzard.RoleOperator, Accounts: []string{"root"}}}
	app := auth.App{Code: "portal", AssertsUsers: true, Grants: grants}
	secret, err := r.CreateApp(ctx, by, app, false)
	must(t, err)
	must(t, r.CreateUser(ctx, by, auth.User{Name: "mallory", Grants: []gozzard.Grant{{Role: gozzard.RoleViewer}}}, ""))
	through := func(user string) (gozzard.Caller, error) {
		return r.check(t, auth.Credentials{App: "portal", Secret: secret, User: user})
	}

	caller, err := through("mallory")
	must(t, err)
	must(t, r.DropUser(ctx, by, "mallory"))
	_, err = through("mallory")
	wantKind(t, err, gozzard.ErrUserForbidden)
	_, err = through("stranger")
	wantKind(t, err, gozzard.ErrUserForbidden)

	// With the flag a stranger has the rights of the app, and a deleted user still has none, not in work under way either.
	must(t, r.SetFlags(ctx, by, "portal", auth.Flags{UnknownUsers: new(true)}))
	stranger, err := through("stranger")
	must(t, err)
	if !stranger.Rights.May(gozzard.ActionStart, "x", gozzard.HostRef{}, "root") {
		t.Error("an app for unknown users gives them nothing")
	}
	_, err = through("mallory")
	wantKind(t, err, gozzard.ErrUserForbidden)
	if r.Directory().RightsOf(caller) != nil {
		t.Error("a deleted user keeps rights")
	}
	must(t, r.SetFlags(ctx, by, "portal", auth.Flags{UnknownUsers: new(false)}))
	if r.Directory().RightsOf(stranger) != nil {
		t.Error("a stranger keeps rights")
	}

	// The name is used again only when the admin says so, also after the record is read again.
	again, err := auth.Open(ctx, r.store, auth.Options{Now: r.clock.Now})
	must(t, err)
	wantKind(t, again.CreateUser(ctx, by, auth.User{Name: "mallory"}, ""), gozzard.ErrConflict)
	must(t, again.CreateUserAgain(ctx, by, auth.User{Name: "mallory"}, ""))
	if len(r.store.gone) != 0 || !slices.Contains(r.store.acts, "user:create-again mallory") {
		t.Errorf("deleted: %v, acts: %v", r.store.gone, r.store.acts)
	}
}

// TestUndecidedApps: an app of an earlier version works as before until an admin decides.
func TestUndecidedApps(t *testing.T) {
	r := newRig(t) // its app is imported
	if got := r.Undecided(); !slices.Equal(got, []string{"admin"}) {
		t.Fatalf("undecided are %v", got)
	}
	_, err := r.check(t, auth.Credentials{App: "admin", Secret: "root", User: "stranger"})
	must(t, err)

	// The decision that would leave no way in is rejected.
	wantKind(t, r.SetFlags(t.Context(), by, "admin", auth.Flags{UnknownUsers: new(false)}), gozzard.ErrConflict)
	must(t, r.SetFlags(t.Context(), by, "admin", auth.Flags{UnknownUsers: new(true)}))
	if got := r.Undecided(); got != nil {
		t.Fatalf("undecided are %v", got)
	}
}

// TestDisabledApp: the shared app is disabled when a named admin can log in, and not before.
func TestDisabledApp(t *testing.T) {
	r := newRig(t)
	ctx := t.Context()
	disable := func(on bool) error {
		return r.SetFlags(ctx, by, "admin", auth.Flags{Disabled: &on})
	}
	wantKind(t, disable(true), gozzard.ErrConflict)
	must(t, r.CreateUser(ctx, by, auth.User{Name: "alice", Grants: gozzard.Everything().Grants}, ""))
	wantKind(t, disable(true), gozzard.ErrConflict)
	must(t, r.SetPassword(ctx, by, "alice", alicePassword))
	caller, err := r.check(t, auth.Credentials{App: "admin", Secret: "root", User: "me"})
	must(t, err)
	must(t, disable(true))
	_, err = r.check(t, auth.Credentials{App: "admin", Secret: "root", User: "me"})
	wantKind(t, err, gozzard.ErrAppForbidden)
	if r.Directory().RightsOf(caller) != nil {
		t.Error("a disabled app has rights")
	}

	// The last named admin stays, and does not lock itself out.
	self := gozzard.Caller{App: "user:alice", User: "alice"}
	wantKind(t, r.Disable(ctx, self, "alice", true), gozzard.ErrConflict)
	wantKind(t, r.DropUser(ctx, by, "alice"), gozzard.ErrConflict)
	must(t, disable(false))
	wantKind(t, r.Disable(ctx, self, "alice", true), gozzard.ErrConflict)
	must(t, r.Disable(ctx, by, "alice", true))
}

// TestTokensEnd: a reset of the password, a disabled user and a new factor end what was given out before.
func TestTokensEnd(t *testing.T) {
	r := newRig(t)
	ctx := t.Context()
	must(t, r.CreateUser(ctx, by, auth.User{Name: "alice"}, alicePassword))
	for name, end := range map[string]func() error{
		"password": func() error { return r.SetPassword(ctx, by, "alice", alicePassword) },
		"disable":  func() error { return r.Disable(ctx, by, "alice", true) },
		"subject":  func() error { return r.ForgetSubject(ctx, by, "alice") },
	} {
		session, _, err := r.Login(ctx, "alice", alicePassword)
		must(t, err)
		token, _, err := r.CreateToken(ctx, by, "alice", "", time.Hour)
		must(t, err)
		through, _, err := r.CreateAppToken(ctx, by, "alice", "admin", "", time.Hour)
		must(t, err)

		must(t, end())
		must(t, r.Disable(ctx, by, "alice", false))
		for _, secret := range []string{session, token} {
			_, err := r.Directory().CheckPerson(secret)
			if gozzard.KindOf(err) != gozzard.ErrUnauthenticated {
				t.Errorf("%s leaves a token: %v", name, err)
			}
		}
		_, err = r.check(t, auth.Credentials{App: "admin", Secret: "root", Token: through})
		if gozzard.KindOf(err) != gozzard.ErrUnauthenticated {
			t.Errorf("%s leaves a token for an app: %v", name, err)
		}
	}
	if len(r.store.tokens) != 0 {
		t.Errorf("the record has %d tokens", len(r.store.tokens))
	}
}

// TestKindsOfTokens: a token is accepted in its place and refused in every other.
func TestKindsOfTokens(t *testing.T) {
	r := newRig(t)
	ctx := t.Context()
	plain := func(code string) string {
		secret, err := r.CreateApp(ctx, by, auth.App{Code: code}, false)
		must(t, err)
		return secret
	}
	portal, other := plain("portal"), plain("other")
	must(t, r.CreateUser(ctx, by, auth.User{Name: "alice"}, alicePassword))
	alone, _, err := r.CreateToken(ctx, by, "alice", "", time.Hour)
	must(t, err)
	through, _, err := r.CreateAppToken(ctx, by, "alice", "portal", "", time.Hour)
	must(t, err)
	session, _, err := r.Login(ctx, "alice", alicePassword)
	must(t, err)
	_, _, err = r.CreateAppToken(ctx, by, "alice", "nowhere", "", time.Hour)
	wantKind(t, err, gozzard.ErrNotFound)

	for _, c := range []struct{ token, ok string }{{alone, "alone"}, {through, "portal"}, {session, "alone"}} {
		_, err := r.Directory().CheckPerson(c.token)
		if (err == nil) != (c.ok == "alone") {
			t.Errorf("the token for %s alone: %v", c.ok, err)
		}
		for app, secret := range map[string]string{"portal": portal, "other": other} {
			_, err := r.check(t, auth.Credentials{App: app, Secret: secret, Token: c.token})
			if (err == nil) != (c.ok == app) {
				t.Errorf("the token for %s through %s: %v", c.ok, app, err)
			}
		}
	}

	// An app that is made again under the same code does not get the tokens of the old one.
	must(t, r.DropApp(ctx, by, "portal"))
	portal = plain("portal")
	_, err = r.check(t, auth.Credentials{App: "portal", Secret: portal, Token: through})
	wantKind(t, err, gozzard.ErrUnauthenticated)
}

// TestTokenAge: the highest age holds for tokens that were made before it was set, and stays when it is raised again.
func TestTokenAge(t *testing.T) {
	const day = 24 * time.Hour
	r := newRig(t)
	ctx := t.Context()
	must(t, r.CreateUser(ctx, by, auth.User{Name: "alice"}, ""))
	_, _, err := r.CreateToken(ctx, by, "alice", "", 91*day)
	wantKind(t, err, gozzard.ErrInvalid)
	token, made, err := r.CreateToken(ctx, by, "alice", "", 90*day)
	must(t, err)
	old := auth.Token{User: "alice", Digest: auth.Hash("of an old version"), ID: "old"} // without any time
	r.store.tokens[old.Digest] = old

	open := func(age time.Duration) *auth.Accounts {
		t.Helper()
		a, err := auth.Open(ctx, r.store, auth.Options{Now: r.clock.Now, MaxTokenAge: age})
		must(t, err)
		return a
	}
	r.clock.pass(10 * day)
	short := open(30 * day)
	if list := short.Tokens("alice"); len(list) != 2 || !list[1].Expires.Equal(made.Created.Add(30*day)) {
		t.Fatalf("the tokens are %+v", list)
	}
	r.clock.pass(20 * day)
	_, err = short.Directory().CheckPerson(token)
	wantKind(t, err, gozzard.ErrUnauthenticated)
	_, err = short.Directory().CheckPerson("of an old version") // counts from when it was first seen
	must(t, err)
	open(30 * day)
	for _, age := range []time.Duration{300 * day, -1} {
		long := open(age)
		_, err = long.Directory().CheckPerson(token)
		wantKind(t, err, gozzard.ErrUnauthenticated)
	}
	_, _, err = open(-1).CreateToken(ctx, by, "alice", "", 367*day)
	wantKind(t, err, gozzard.ErrInvalid)
}

// TestProveAgain: a session alone does not make a token.
func TestProveAgain(t *testing.T) {
	r := newRig(t)
	ctx := t.Context()
	must(t, r.CreateUser(ctx, by, auth.User{Name: "alice"}, alicePassword))
	must(t, r.CreateUser(ctx, by, auth.User{Name: "bob"}, ""))
	session, _, err := r.Login(ctx, "alice", alicePassword)
	must(t, err)
	for _, p := range []auth.Proof{{}, {Password: "a password of malice"}} {
		wantKind(t, r.ProveAgain(ctx, session, p), gozzard.ErrUnauthenticated)
	}
	must(t, r.ProveAgain(ctx, session, auth.Proof{Password: alicePassword}))

	// A person of the provider logs in again.
	fresh, _, err := r.LoginSubject(ctx, "bob", "1")
	must(t, err)
	token, _, err := r.CreateToken(ctx, by, "bob", "", time.Hour)
	must(t, err)
	must(t, r.ProveAgain(ctx, fresh, auth.Proof{}))
	wantKind(t, r.ProveAgain(ctx, token, auth.Proof{}), gozzard.ErrUnauthenticated)
	r.clock.pass(auth.FreshLogin)
	wantKind(t, r.ProveAgain(ctx, fresh, auth.Proof{}), gozzard.ErrUnauthenticated)
}

// TestSecondFactor: enrolment, logins, codes that are used again, recovery codes and guesses.
func TestSecondFactor(t *testing.T) {
	r := newRig(t)
	ctx := t.Context()
	must(t, r.CreateUser(ctx, by, auth.User{Name: "alice"}, alicePassword))
	before, _, err := r.Login(ctx, "alice", alicePassword)
	must(t, err)
	login := func(code string) error {
		_, _, err := r.LoginWith(ctx, "alice", auth.Proof{Password: alicePassword, Code: code})
		return err
	}

	// Enrol. The factor counts when it is confirmed.
	_, err = r.EnrolSecond(ctx, "alice", auth.Proof{Password: "a password of malice"})
	wantKind(t, err, gozzard.ErrUnauthenticated)
	e, err := r.EnrolSecond(ctx, "alice", auth.Proof{Password: alicePassword})
	must(t, err)
	if len(e.Recovery) != 10 || !strings.Contains(e.URI, "otpauth://totp/gozzard:alice?issuer=gozzard&secret="+e.Secret) {
		t.Fatalf("the enrolment is %+v", e)
	}
	must(t, login(""))
	now := func() string { return code(t, e.Secret, r.clock.Now()) }
	wrong := func() string { return code(t, e.Secret, r.clock.Now().Add(time.Hour)) }
	wantKind(t, r.ConfirmSecond(ctx, "alice", auth.Proof{Password: alicePassword, Code: wrong()}),
		gozzard.ErrUnauthenticated)
	must(t, r.ConfirmSecond(ctx, "alice", auth.Proof{Password: alicePassword, Code: now()}))
	_, err = r.Directory().CheckPerson(before)
	wantKind(t, err, gozzard.ErrUnauthenticated)

	// A code is required, and counts once: also the one of the confirmation, and after the record is read again.
	wantKind(t, login(""), gozzard.ErrCodeRequired)
	wantKind(t, login(now()), gozzard.ErrUnauthenticated)
	r.clock.pass(30 * time.Second)
	_, _, err = r.LoginWith(ctx, "alice", auth.Proof{Password: "a password of malice", Code: now()})
	wantKind(t, err, gozzard.ErrUnauthenticated)
	must(t, login(now()))
	wantKind(t, login(now()), gozzard.ErrUnauthenticated)
	again, err := auth.Open(ctx, r.store, auth.Options{Now: r.clock.Now})
	must(t, err)
	_, _, err = again.LoginWith(ctx, "alice", auth.Proof{Password: alicePassword, Code: now()})
	wantKind(t, err, gozzard.ErrUnauthenticated)
	r.clock.pass(30 * time.Second)
	must(t, login(code(t, e.Secret, r.clock.Now().Add(30*time.Second)))) // the clock of the device is ahead
	wantKind(t, login(now()), gozzard.ErrUnauthenticated)                // a code before that is used up as well

	// A recovery code counts once, however it is written.
	must(t, login(e.Recovery[0]))
	wantKind(t, login(strings.ToUpper(e.Recovery[0])), gozzard.ErrUnauthenticated)
	must(t, login(strings.ToUpper(strings.ReplaceAll(e.Recovery[1], "-", ""))))

	// A new factor needs a code of the present one.
	_, err = r.EnrolSecond(ctx, "alice", auth.Proof{Password: alicePassword})
	wantKind(t, err, gozzard.ErrCodeRequired)

	// Guesses are limited by user, and the right code does not help then.
	for range 20 {
		_ = login(wrong())
	}
	r.clock.pass(time.Minute)
	wantKind(t, login(now()), gozzard.ErrRateLimited)
	r.clock.pass(10 * time.Minute)
	must(t, login(now()))

	// An admin removes the factor of a lost device.
	must(t, r.DropSecond(ctx, by, "alice"))
	must(t, login(""))
	wantKind(t, r.DropSecond(ctx, by, "alice"), gozzard.ErrNotFound)
	if text := jsonText(t, r.store.acts); strings.Contains(text, e.Secret) || strings.Contains(text, e.Recovery[0]) {
		t.Errorf("a secret is in the audit: %s", text)
	}
}

// TestRequiredSecondFactor: a password without a second factor opens nothing but its enrolment.
func TestRequiredSecondFactor(t *testing.T) {
	for _, required := range []auth.Required{auth.RequiredAdmins, auth.RequiredAll} {
		r := newRig(t, func(o *auth.Options) { o.RequireTOTP = required })
		ctx := t.Context()
		must(t, r.CreateUser(ctx, by, auth.User{Name: "root", Grants: gozzard.Everything().Grants}, alicePassword))
		must(t, r.CreateUser(ctx, by, auth.User{Name: "alice"}, alicePassword))
		_, _, err := r.Login(ctx, "root", alicePassword)
		wantKind(t, err, gozzard.ErrUserForbidden)
		if _, _, err := r.Login(ctx, "alice", alicePassword); (err == nil) != (required == auth.RequiredAdmins) {
			t.Errorf("%s, no admin: %v", required, err)
		}

		e, err := r.EnrolSecond(ctx, "root", auth.Proof{Password: alicePassword})
		must(t, err)
		_, _, err = r.LoginWith(ctx, "root", auth.Proof{Password: alicePassword, Code: code(t, e.Secret, r.clock.Now())})
		wantKind(t, err, gozzard.ErrUserForbidden) // it is not confirmed
		must(t, r.ConfirmSecond(ctx, "root", auth.Proof{Password: alicePassword, Code: code(t, e.Secret, r.clock.Now())}))
		r.clock.pass(time.Minute)
		_, _, err = r.LoginWith(ctx, "root", auth.Proof{Password: alicePassword, Code: code(t, e.Secret, r.clock.Now())})
		must(t, err)
	}
}

// TestGroupsOfALogin: the grants of groups count for the login that named them, and end with it.
func TestGroupsOfALogin(t *testing.T) {
	r := newRig(t)
	ctx := t.Context()
	must(t, r.CreateUser(ctx, by, auth.User{Name: "alice", Grants: []gozzard.Grant{{Role: gozzard.RoleViewer}}}, ""))
	ops := auth.Holder{Group: "/fleet/ops"}
	operator := gozzard.Grant{Role: gozzard.RoleOperator, Accounts: []string{"root"}}
	must(t, r.AddGrant(ctx, by, ops, operator))
	wantKind(t, r.AddGrant(ctx, by, auth.Holder{Group: "a\nb"}, operator), gozzard.ErrInvalid)
	may := func(secret string) bool {
		caller, err := r.Directory().CheckPerson(secret)
		must(t, err)
		return caller.Rights.May(gozzard.ActionStart, "x", gozzard.HostRef{}, "root")
	}

	inside, _, err := r.LoginSubject(ctx, "alice", "1", "/fleet/ops", "/others", "/fleet/ops", "\n")
	must(t, err)
	outside, _, err := r.LoginSubject(ctx, "alice", "1", "/fleet/ops/", "/FLEET/OPS")
	must(t, err)
	token, _, err := r.CreateToken(ctx, by, "alice", "", time.Hour)
	must(t, err)
	if !may(inside) || may(outside) || may(token) {
		t.Fatalf("may: %v, %v, %v", may(inside), may(outside), may(token))
	}
	caller, err := r.Directory().CheckPerson(inside)
	must(t, err)
	later := gozzard.Caller{App: caller.App, User: caller.User} // as recorded with a job
	if !r.Directory().RightsOf(later).May(gozzard.ActionStart, "x", gozzard.HostRef{}, "root") {
		t.Error("work of a login that has not ended has not its rights")
	}

	// The end of the session ends its rights, also of requests that are under way.
	must(t, r.Logout(ctx, inside))
	if r.Directory().RightsOf(caller) != nil || r.Directory().RightsOf(later).May(gozzard.ActionStart, "x", gozzard.HostRef{}, "root") {
		t.Error("the rights of a group outlive the login")
	}

	// The group loses its grant: the next request has it no more. A group without grants is gone.
	inside, _, err = r.LoginSubject(ctx, "alice", "1", "/fleet/ops")
	must(t, err)
	must(t, r.RemoveGrant(ctx, by, ops, operator))
	if may(inside) || len(r.Groups()) != 0 || len(r.store.groups) != 0 {
		t.Error("a grant that was taken back from a group applies")
	}

	// The rights of a group are no way in: the last admin is an app or a user.
	must(t, r.AddGrant(ctx, by, ops, gozzard.Grant{Role: gozzard.RoleAdmin}))
	wantKind(t, r.DropApp(ctx, by, "admin"), gozzard.ErrConflict)
}

// TestTOTPVectors: the codes are those of RFC 6238, appendix B, in their last six digits.
func TestTOTPVectors(t *testing.T) {
	const secret = "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ" // 12345678901234567890
	for at, want := range map[int64]string{59: "287082", 1111111109: "081804", 1234567890: "005924",
		20000000000: "353130"} {
		if got := code(t, secret, time.Unix(at, 0)); got != want {
			t.Errorf("at %d: %s, want %s", at, got, want)
		}
	}
}
