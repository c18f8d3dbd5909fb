package storetest

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/auth"
)

// AccountRecord is a store of accounts with its audit: changes of accounts leave audit rows.
type AccountRecord interface {
	auth.Store
	Audit(ctx context.Context, limit int) ([]gozzard.AuditRow, error)
}

// RunAccounts runs the contract of auth.Store. open gives a new, empty store and closes it at the end of the test.
func RunAccounts(t *testing.T, open func(t *testing.T) AccountRecord) {
	for _, c := range []struct {
		name string
		test func(*testing.T, AccountRecord)
	}{
		{"empty", accountsEmpty},
		{"round trip", accountsRoundTrip},
		{"replace and drop", accountsReplace},
		{"expired tokens", accountsExpired},
		{"known when none is left", accountsNoneLeft},
		{"many", accountsMany},
		{"audit", accountsAudit},
		{"for a version", accountsBase},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, open(t)) })
	}
}

func loadAccounts(t *testing.T, s AccountRecord) (auth.Config, bool) {
	t.Helper()
	c, known, err := s.LoadAccounts(t.Context())
	must(t, err)
	if known != (c.Version > 0) {
		t.Errorf("known %t with version %d", known, c.Version)
	}
	c.Version = 0 // accountsBase looks at it
	return c, known
}

// accountsBase: a change for accounts that were changed since is rejected.
func accountsBase(t *testing.T, s AccountRecord) {
	changeAccounts(t, s, auth.Change{Users: []auth.User{{Name: "ada"}}})
	c, _, err := s.LoadAccounts(t.Context())
	must(t, err)
	change := auth.Change{At: start, Base: c.Version, Users: []auth.User{{Name: "bob"}}}
	must(t, s.ChangeAccounts(t.Context(), change))
	if err := s.ChangeAccounts(t.Context(), change); gozzard.KindOf(err) != gozzard.ErrConflict {
		t.Errorf("a change for an older version: %v", err)
	}
}

func changeAccounts(t *testing.T, s AccountRecord, c auth.Change) {
	t.Helper()
	if c.At.IsZero() {
		c.At = start
	}
	must(t, s.ChangeAccounts(t.Context(), c))
}

func sampleGrants() []gozzard.Grant {
	return []gozzard.Grant{
		{Role: gozzard.RoleOperator, Businesses: []int{2, 3}, Namespaces: []string{"shop*", "游戏?"}, Clouds: []int{0, 7},
			Nets:    []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")},
			Actions: []gozzard.Action{gozzard.ActionStart}},
		{Role: gozzard.RoleViewer},
	}
}

func sampleAccounts() auth.Config {
	grants := sampleGrants()
	yes, no := true, false
	return auth.Config{
		Apps: []auth.App{
			{Code: "Plain", Secrets: []auth.Digest{auth.Hash("x")}, Grants: []gozzard.Grant{}, UnknownUsers: &no,
				Disabled: true, KnownBy: []string{"王五"}},
			{Code: "known", Secrets: []auth.Digest{auth.Hash("k")}, Grants: []gozzard.Grant{}, UnknownUsers: &yes},
			{Code: "signs", Secrets: []auth.Digest{auth.Hash("new"), auth.Hash("old")},
				SignKeys: []string{"new", "old"}, AssertsUsers: true,
				MissingActionMeansStart: true, Grants: grants},
		},

		Users: []auth.User{
			{Name: "alice", Password: "$argon2id$…", Subject: "sub|1", Grants: grants,
				Second: &auth.SecondFactor{Secret: []byte{1, 2}, Last: 7, Recovery: []auth.Digest{{3}},
					NextSecret: []byte{4}, NextRecovery: []auth.Digest{{5}}}},
			{Name: "王五", Disabled: true},
		},

		Tokens: []auth.Token{
			{User: "alice", Digest: auth.Digest{1}, ID: "t1", Note: "laptop 'a'", Created: start,
				Expires: start.Add(time.Hour)},
			{User: "not-a-user", Digest: auth.Digest{2}, Session: true},
			{User: "王五", Digest: auth.Digest{3}, Kind: auth.KindApp, App: "signs", Groups: []string{"/ops", "CN=a,DC=b"}},
		},

		Groups:  []auth.Group{{Name: "/ops", Grants: grants}, {Name: "CN=a,DC=b", Grants: grants[1:]}},
		Deleted: []auth.DeletedUser{{Name: "Mallory", At: start}, {Name: "mallory", At: start}},
	}
}

func accountsEmpty(t *testing.T, s AccountRecord) {
	c, known := loadAccounts(t, s)
	equal(t, "accounts", c, auth.Config{})
	equal(t, "known", known, false)
}

func accountsRoundTrip(t *testing.T, s AccountRecord) {
	want := sampleAccounts()
	changeAccounts(t, s, allOf(want))
	got, known := loadAccounts(t, s)
	equal(t, "accounts", got, want)
	equal(t, "known", known, true)
	if got.Apps[0].Grants == nil {
		t.Fatal("an app without grants was read with nil grants, which grant everything")
	}
}

func accountsReplace(t *testing.T, s AccountRecord) {
	want := sampleAccounts()
	changeAccounts(t, s, allOf(want))
	app := auth.App{Code: "signs", Secrets: []auth.Digest{auth.Hash("newest")},
		Grants: []gozzard.Grant{{Role: gozzard.RoleAdmin}}}
	changeAccounts(t, s, auth.Change{Apps: []auth.App{app}, DropApps: []string{"Plain", "never"},
		DropUsers: []string{"alice"}, DropTokens: []auth.Digest{{9}}})
	got, _ := loadAccounts(t, s)
	equal(t, "accounts", got, auth.Config{Apps: []auth.App{want.Apps[1], app}, Users: want.Users[1:],
		Tokens: want.Tokens[1:], Groups: want.Groups, Deleted: want.Deleted})
	changeAccounts(t, s, auth.Change{DropTokens: []auth.Digest{{2}, {3}}, Groups: []auth.Group{{Name: "/ops"}},
		Restored: []string{"mallory", "never"}})
	got, _ = loadAccounts(t, s)
	equal(t, "tokens", got.Tokens, []auth.Token{})
	equal(t, "groups", got.Groups, want.Groups[1:])
	equal(t, "deleted", got.Deleted, want.Deleted[:1])
}

// allOf is the change that adds everything.
func allOf(c auth.Config) auth.Change {
	return auth.Change{Apps: c.Apps, Users: c.Users, Groups: c.Groups, Tokens: c.Tokens, Deleted: c.Deleted}
}

func accountsExpired(t *testing.T, s AccountRecord) {
	all := sampleAccounts()
	changeAccounts(t, s, auth.Change{Tokens: all.Tokens})
	changeAccounts(t, s, auth.Change{At: start.Add(time.Hour - time.Millisecond)})
	got, _ := loadAccounts(t, s)
	equal(t, "before", got.Tokens, all.Tokens)
	changeAccounts(t, s, auth.Change{At: start.Add(time.Hour)})
	got, _ = loadAccounts(t, s)
	equal(t, "after", got.Tokens, all.Tokens[1:])
}

func accountsNoneLeft(t *testing.T, s AccountRecord) {
	changeAccounts(t, s, auth.Change{Apps: sampleAccounts().Apps})
	changeAccounts(t, s, auth.Change{DropApps: []string{"Plain", "known", "signs"}})
	got, known := loadAccounts(t, s)
	equal(t, "accounts", got, auth.Config{})
	equal(t, "known", known, true)
}

func accountsMany(t *testing.T, s AccountRecord) {
	var c auth.Change
	for i := range 700 {
		c.Users = append(c.Users, auth.User{Name: fmt.Sprintf("user-%04d", i)})
		c.Tokens = append(c.Tokens, auth.Token{User: c.Users[i].Name, Digest: auth.Digest{byte(i >> 8), byte(i)},
			ID: fmt.Sprint(i)})
	}
	changeAccounts(t, s, c)
	got, _ := loadAccounts(t, s)
	equal(t, "accounts", got, auth.Config{Users: c.Users, Tokens: c.Tokens})
}

func accountsAudit(t *testing.T, s AccountRecord) {
	by := gozzard.Caller{App: "admin", User: "root", Asserted: true}
	changeAccounts(t, s, auth.Change{By: by, Act: "app:create signs", Apps: sampleAccounts().Apps})
	rows, err := s.Audit(t.Context(), 10)
	must(t, err)

	if len(rows) != 1 || rows[0].Act != "app:create signs" || rows[0].Caller != by || !rows[0].At.Equal(start) ||
		rows[0].RequestHash == [32]byte{} {
		t.Fatalf("audit is %+v", rows)
	}

	if strings.Contains(fmt.Sprintf("%+v", rows), "old") {
		t.Fatalf("a key is in the audit: %+v", rows)
	}

	ctx, cancel := context.WithCancel(t.Context())
	cancel()

	if err := s.ChangeAccounts(ctx, auth.Change{At: start, Act: "never"}); err == nil {
		t.Fatal("a change was made although its context had ended")
	}
}
