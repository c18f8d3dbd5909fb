package auth_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/auth"
)

// memoryStore is a store in memory. The contract tests of storetest check the real store.
type memoryStore struct {
	mu     sync.Mutex
	apps   map[string]auth.App
	users  map[string]auth.User
	tokens map[auth.Digest]auth.Token
	groups map[string]auth.Group
	gone   map[string]auth.DeletedUser
	acts   []string
	broken error
}

func (s *memoryStore) LoadAccounts(context.Context) (auth.Config, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return auth.Config{Apps: slices.Collect(maps.Values(s.apps)), Users: slices.Collect(maps.Values(s.users)),
			Tokens: slices.Collect(maps.Values(s.tokens)), Groups: slices.Collect(maps.Values(s.groups)),
			Deleted: slices.Collect(maps.Values(s.gone)), Version: int64(len(s.acts))},
		len(s.acts) > 0, nil
}

func (s *memoryStore) ChangeAccounts(_ context.Context, c auth.Change) error {
	s.mu.Lock()
	defer s.mu.Unlock()

	if s.broken != nil {
		return s.broken
	}
	if c.Base != 0 && c.Base != int64(len(s.acts)) {
		return gozzard.Errorf(gozzard.ErrConflict, "another server was faster")
	}

	for _, code := range c.DropApps {
		delete(s.apps, code)
	}

	for _, name := range c.DropUsers {
		delete(s.users, name)
		maps.DeleteFunc(s.tokens, func(_ auth.Digest, t auth.Token) bool { return t.User == name })
	}

	for _, d := range c.DropTokens {
		delete(s.tokens, d)
	}

	for _, a := range c.Apps {
		s.apps[a.Code] = a
	}

	for _, u := range c.Users {
		s.users[u.Name] = u
	}

	for _, t := range c.Tokens {
		s.tokens[t.Digest] = t
	}

	for _, g := range c.Groups {
		if s.groups[g.Name] = g; len(g.Grants) == 0 {
			delete(s.groups, g.Name)
		}
	}

	for _, name := range c.Restored {
		delete(s.gone, name)
	}

	for _, d := range c.Deleted {
		s.gone[d.Name] = d
	}

	s.acts = append(s.acts, c.Act)
	return nil
}

func newMemoryStore() *memoryStore {
	return &memoryStore{apps: map[string]auth.App{}, users: map[string]auth.User{}, tokens: map[auth.Digest]auth.Token{},
		groups: map[string]auth.Group{}, gone: map[string]auth.DeletedUser{}}
}

// clock is a time that tests move.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

type rig struct {
	*auth.Accounts
	store *memoryStore
	clock *clock

	mu      sync.Mutex
	refused []string
}

func (r *rig) refuse(rule string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refused = append(r.refused, rule)
}

// newRig has the app admin with the secret root. The app has all rights.
func newRig(t *testing.T, edit ...func(*auth.Options)) *rig {
	t.Helper()
	r := &rig{store: newMemoryStore(), clock: &clock{now: time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)}}
	o := auth.Options{Now: r.clock.Now, Refused: r.refuse}
	for _, f := range edit {
		f(&o)
	}

	var err error
	if r.Accounts, err = auth.Open(t.Context(), r.store, o); err != nil {
		t.Fatal(err)
	}
	if r.Known() {
		t.Fatal("an empty record has accounts")
	}

	must(t, r.Import(t.Context(), auth.Config{Apps: []auth.App{{Code: "admin",
		Secrets: []auth.Digest{auth.Hash("root")}, AssertsUsers: true}}}))
	return r
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantKind(t *testing.T, err error, kind gozzard.ErrorKind) {
	t.Helper()
	if err == nil || gozzard.KindOf(err) != kind {
		t.Fatalf("got %v, want an error of kind %s", err, kind)
	}
}

var by = gozzard.Caller{App: "admin", User: "tester"}

func (r *rig) check(t *testing.T, c auth.Credentials) (gozzard.Caller, error) {
	t.Helper()
	caller, _, err := r.Directory().Check(t.Context(), c)
	return caller, err
}

func TestImportOnce(t *testing.T) {
	r := newRig(t)
	wantKind(t, r.Import(t.Context(), auth.Config{}), gozzard.ErrConflict)
	again, err := auth.Open(t.Context(), r.store, auth.Options{})
	must(t, err)
	caller, _, err := again.Directory().Check(t.Context(), auth.Credentials{App: "admin", Secret: "root", User: "me"})
	must(t, err)
	if !again.Known() || !caller.Rights.All() {
		t.Fatalf("the imported app has %+v", caller.Rights)
	}
}

func TestAppLife(t *testing.T) {
	r := newRig(t)
	ctx := t.Context()
	secret, err := r.CreateApp(ctx, by, auth.App{Code: "shop", AssertsUsers: true, UnknownUsers: new(true)}, false)
	must(t, err)

	if _, err := r.CreateApp(ctx, by, auth.App{Code: "shop"}, false); gozzard.KindOf(err) != gozzard.ErrConflict {
		t.Fatalf("made twice: %v", err)
	}

	caller, err := r.check(t, auth.Credentials{App: "shop", Secret: secret, User: "u"})
	must(t, err)

	if caller.Rights.Sees("x", gozzard.HostRef{}) || caller.Rights.All() || r.Directory().RightsOf(caller) == nil {
		t.Fatal("a new app may do something, or is not known")
	}

	second, err := r.AddSecret(ctx, by, "shop")
	must(t, err)

	for _, s := range []string{secret, second} {
		_, err := r.check(t, auth.Credentials{App: "shop", Secret: s, User: "u"})
		must(t, err)
	}

	third, err := r.AddSecret(ctx, by, "shop")
	must(t, err)
	_, err = r.check(t, auth.Credentials{App: "shop", Secret: secret, User: "u"})
	wantKind(t, err, gozzard.ErrUnauthenticated)
	must(t, r.RetireSecrets(ctx, by, "shop"))
	_, err = r.check(t, auth.Credentials{App: "shop", Secret: second, User: "u"})
	wantKind(t, err, gozzard.ErrUnauthenticated)
	no := false
	must(t, r.SetFlags(ctx, by, "shop", auth.Flags{AssertsUsers: &no}))
	_, err = r.check(t, auth.Credentials{App: "shop", Secret: third, User: "u"})
	wantKind(t, err, gozzard.ErrUserForbidden)
	must(t, r.DropApp(ctx, by, "shop"))
	_, err = r.check(t, auth.Credentials{App: "shop", Secret: third, User: "u"})
	wantKind(t, err, gozzard.ErrUnauthenticated)

	if r.Directory().RightsOf(caller) != nil {
		t.Fatal("an app that is gone has rights")
	}

	for _, err := range []error{r.DropApp(ctx, by, "shop"), r.RetireSecrets(ctx, by, "shop"),
		r.SetFlags(ctx, by, "shop", auth.Flags{})} {
		wantKind(t, err, gozzard.ErrNotFound)
	}

	if text := strings.Join(r.store.acts, " "); strings.Contains(text, third) ||
		!strings.Contains(text, "app:delete shop") {
		t.Fatalf("the acts are %s", text)
	}
}

func TestGrantsApplyAtOnce(t *testing.T) {
	r := newRig(t)
	ctx := t.Context()
	secret, err := r.CreateApp(ctx, by, auth.App{Code: "shop", AssertsUsers: true, UnknownUsers: new(true)}, false)
	must(t, err)
	must(t, r.CreateUser(ctx, by, auth.User{Name: "alice"}, ""))
	g := gozzard.Grant{Role: gozzard.RoleOperator, Namespaces: []string{"JOB_BIZ_2"}, Hosts: gozzard.HostsAny,
		Accounts: []string{"shop"}}
	shop, alice := auth.Holder{App: "shop"}, auth.Holder{User: "alice"}
	must(t, r.AddGrant(ctx, by, shop, g))
	must(t, r.AddGrant(ctx, by, shop, g)) // there already

	if n := len(r.Apps()[1].Grants); n != 1 {
		t.Fatalf("the app has %d grants", n)
	}

	may := func(user string) bool {
		caller, err := r.check(t, auth.Credentials{App: "shop", Secret: secret, User: user})
		must(t, err)
		return caller.Rights.May(gozzard.ActionStart, "JOB_BIZ_2", gozzard.HostRef{}, "shop")
	}
	if !may("stranger") || may("alice") {
		t.Fatal("an unknown user is not limited by the app alone, or a user without grants has a right")
	}

	must(t, r.AddGrant(ctx, by, alice, gozzard.Grant{Role: gozzard.RoleViewer}))

	if may("alice") {
		t.Fatal("an app gives a viewer more rights than the viewer has")
	}

	must(t, r.AddGrant(ctx, by, alice, gozzard.Grant{Role: gozzard.RoleAdmin}))

	if !may("alice") {
		t.Fatal("a grant does not apply")
	}

	must(t, r.RemoveGrant(ctx, by, shop, g))

	if may("alice") {
		t.Fatal("a grant that was taken back applies")
	}

	wantKind(t, r.RemoveGrant(ctx, by, shop, g), gozzard.ErrNotFound)
	wantKind(t, r.AddGrant(ctx, by, auth.Holder{User: "nobody"}, g), gozzard.ErrNotFound)

	for name, bad := range map[string]gozzard.Grant{
		"role": {Role: "king"}, "business": {Role: gozzard.RoleViewer, Businesses: []int{0}},
		"pattern":             {Role: gozzard.RoleViewer, Namespaces: []string{`a\b`}},
		"cloud":               {Role: gozzard.RoleViewer, Clouds: []int{-1}},
		"actions of a viewer": {Role: gozzard.RoleViewer, Actions: []gozzard.Action{gozzard.ActionStart}},
		"action":              {Role: gozzard.RoleOperator, Actions: []gozzard.Action{99}},
	} {
		if err := r.AddGrant(ctx, by, shop, bad); gozzard.KindOf(err) != gozzard.ErrInvalid {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestLastAdminStays(t *testing.T) {
	r := newRig(t)
	ctx := t.Context()
	everything := gozzard.Grant{Role: gozzard.RoleAdmin}
	wantKind(t, r.DropApp(ctx, by, "admin"), gozzard.ErrConflict)
	wantKind(t, r.RemoveGrant(ctx, by, auth.Holder{App: "admin"}, everything), gozzard.ErrConflict)
	must(t, r.CreateUser(ctx, by, auth.User{Name: "alice", Grants: []gozzard.Grant{everything}}, ""))
	wantKind(t, r.DropApp(ctx, by, "admin"), gozzard.ErrConflict) // alice cannot log in
	must(t, r.SetPassword(ctx, by, "alice", "a password of alice"))
	must(t, r.DropApp(ctx, by, "admin"))
	wantKind(t, r.SetPassword(ctx, by, "alice", ""), gozzard.ErrConflict)
	wantKind(t, r.Disable(ctx, by, "alice", true), gozzard.ErrConflict)
	wantKind(t, r.DropUser(ctx, by, "alice"), gozzard.ErrConflict)
}

func TestWhatIsNotRecordedDoesNotApply(t *testing.T) {
	r := newRig(t)
	r.store.broken = errors.New("disk full")
	if _, err := r.CreateApp(t.Context(), by, auth.App{Code: "shop"}, false); err == nil {
		t.Fatal("made without a record")
	}
	if len(r.Apps()) != 1 {
		t.Fatalf("the apps are %+v", r.Apps())
	}
}

func TestUserLife(t *testing.T) {
	r := newRig(t)
	ctx := t.Context()
	const password = "correct horse battery"
	wantKind(t, r.CreateUser(ctx, by, auth.User{Name: "alice"}, "short"), gozzard.ErrInvalid)
	must(t, r.CreateUser(ctx, by, auth.User{Name: "alice", Grants: []gozzard.Grant{{Role: gozzard.RoleViewer}}},
		password))
	wantKind(t, r.CreateUser(ctx, by, auth.User{Name: "alice"}, ""), gozzard.ErrConflict)
	must(t, r.CreateUser(ctx, by, auth.User{Name: "bob"}, ""))

	if r.Users()[0].Password != "" || !r.HasPassword("alice") || r.HasPassword("bob") ||
		!strings.HasPrefix(r.store.users["alice"].Password, "$argon2id$") {
		t.Fatalf("the users are %+v", r.Users())
	}

	for name, c := range map[string][2]string{"wrong": {"alice", "correct horse batterz"},
		"unknown": {"eve", password}, "none": {"bob", ""}, "long": {"alice", strings.Repeat("x", 5000)}} {
		if _, _, err := r.Login(ctx, c[0], c[1]); gozzard.KindOf(err) != gozzard.ErrUnauthenticated ||
			err.Error() != "user or password is wrong" {
			t.Errorf("%s: %v", name, err)
		}
	}

	session, token, err := r.Login(ctx, "alice", password)
	must(t, err)
	caller, err := r.Directory().CheckPerson(session)
	must(t, err)

	if !auth.Alone(caller) || caller.User != "alice" || caller.Asserted || !caller.Rights.SeesAll() ||
		caller.Rights.All() || !token.Session {
		t.Fatalf("the session is of %+v", caller)
	}

	must(t, r.Disable(ctx, by, "alice", true))
	_, err = r.Directory().CheckPerson(session) // disabling ends it
	wantKind(t, err, gozzard.ErrUnauthenticated)
	_, err = r.check(t, auth.Credentials{App: "admin", Secret: "root", User: "alice"})
	wantKind(t, err, gozzard.ErrUserForbidden)

	if _, _, err := r.Login(ctx, "alice", password); gozzard.KindOf(err) != gozzard.ErrUnauthenticated {
		t.Fatalf("a disabled user logs in: %v", err)
	}
	if r.Directory().RightsOf(caller) != nil {
		t.Fatal("a disabled user has rights")
	}

	must(t, r.Disable(ctx, by, "alice", false))
	must(t, r.SetPassword(ctx, by, "alice", "another long password"))
	_, err = r.Directory().CheckPerson(session)
	wantKind(t, err, gozzard.ErrUnauthenticated)
	session, _, err = r.Login(ctx, "alice", "another long password")
	must(t, err)
	must(t, r.Logout(ctx, session))
	_, err = r.Directory().CheckPerson(session)
	wantKind(t, err, gozzard.ErrUnauthenticated)
}

func TestTokens(t *testing.T) {
	r := newRig(t)
	ctx := t.Context()
	must(t, r.CreateUser(ctx, by, auth.User{Name: "alice", Grants: []gozzard.Grant{{Role: gozzard.RoleViewer}}}, ""))
	secret, token, err := r.CreateToken(ctx, by, "alice", "laptop", 24*time.Hour)
	must(t, err)

	if strings.Contains(strings.Join(r.store.acts, " "), secret) || r.store.tokens[token.Digest].User != "alice" ||
		!strings.HasPrefix(secret, "gzp_") {
		t.Fatal("the token is kept as it is, or not at all")
	}

	through, _, err := r.CreateAppToken(ctx, by, "alice", "admin", "portal", 24*time.Hour)
	must(t, err)
	caller, err := r.check(t, auth.Credentials{App: "admin", Secret: "root", Token: through})
	must(t, err)

	if caller.User != "alice" || caller.Asserted || caller.Rights.All() || !caller.Rights.SeesAll() {
		t.Fatalf("an admin's app with a viewer's token is %+v", caller)
	}

	r.clock.pass(24*time.Hour - time.Second)
	_, err = r.Directory().CheckPerson(secret)
	must(t, err)
	r.clock.pass(time.Second)
	_, err = r.Directory().CheckPerson(secret)
	wantKind(t, err, gozzard.ErrUnauthenticated)

	if len(r.Tokens("alice")) != 0 {
		t.Fatal("an expired token is listed")
	}

	secret, token, err = r.CreateToken(ctx, by, "alice", "", time.Hour)
	must(t, err)
	wantKind(t, r.DropToken(ctx, by, "bob", token.ID), gozzard.ErrNotFound)
	must(t, r.DropToken(ctx, by, "alice", token.ID))
	_, err = r.Directory().CheckPerson(secret)
	wantKind(t, err, gozzard.ErrUnauthenticated)

	for range 50 {
		_, _, err := r.CreateToken(ctx, by, "alice", "", time.Hour)
		must(t, err)
	}

	_, _, err = r.CreateToken(ctx, by, "alice", "", time.Hour)
	wantKind(t, err, gozzard.ErrConflict)
	_, _, err = r.CreateToken(ctx, by, "alice", "", 400*24*time.Hour)
	wantKind(t, err, gozzard.ErrInvalid)
	must(t, r.DropUser(ctx, by, "alice"))

	if len(r.store.tokens) != 0 || len(r.Tokens("alice")) != 0 {
		t.Fatal("the tokens of a user that is gone stay")
	}
}

func TestPersonIsNoApp(t *testing.T) {
	r := newRig(t)
	for _, code := range []string{"user:alice", "login:x", ""} {
		if _, err := r.CreateApp(t.Context(), by, auth.App{Code: code},
			false); gozzard.KindOf(err) != gozzard.ErrInvalid {
			t.Errorf("app %q: %v", code, err)
		}
	}
	if r.Directory().RightsOf(gozzard.Caller{App: "user:admin", User: "admin"}) != nil ||
		r.Directory().RightsOf(gozzard.Caller{App: "user:alice", User: "bob"}) != nil {
		t.Fatal("an unknown person has rights")
	}
}

func TestManyPasswordsAtOnceAreSentAway(t *testing.T) {
	r := newRig(t)
	var wg sync.WaitGroup
	var mu sync.Mutex
	kinds := map[gozzard.ErrorKind]int{}
	for range 100 {
		wg.Go(func() {
			_, _, err := r.Login(t.Context(), "nobody", "a guess of some length")
			mu.Lock()
			defer mu.Unlock()
			kinds[gozzard.KindOf(err)]++
		})
	}

	wg.Wait()

	if kinds[gozzard.ErrUnauthenticated] == 0 || kinds[gozzard.ErrUnauthenticated]+kinds[gozzard.ErrRateLimited] != 100 || kinds[gozzard.ErrRateLimited] == 0 {
		t.Fatalf("the answers are %v", kinds)
	}
}

func TestSubjectIsFixedByTheFirstLogin(t *testing.T) {
	r := newRig(t)
	ctx := t.Context()
	must(t, r.CreateUser(ctx, by, auth.User{Name: "a@example.com"}, ""))
	_, _, err := r.LoginSubject(ctx, "b@example.com", "1")
	wantKind(t, err, gozzard.ErrUserForbidden)
	secret, _, err := r.LoginSubject(ctx, "a@example.com", "1")
	must(t, err)
	_, err = r.Directory().CheckPerson(secret)
	must(t, err)

	for _, other := range []string{"2", "", strings.Repeat("1", 300)} {
		_, _, err = r.LoginSubject(ctx, "a@example.com", other)
		wantKind(t, err, gozzard.ErrUserForbidden)
	}

	must(t, r.ForgetSubject(ctx, by, "a@example.com"))
	_, _, err = r.LoginSubject(ctx, "a@example.com", "2")
	must(t, err)
}
