package auth_test

import (
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/auth"
)

// otherServer is a second server on the record of a rig.
func otherServer(t *testing.T, r *rig) *auth.Accounts {
	t.Helper()
	a, err := auth.Open(t.Context(), r.store, auth.Options{Now: r.clock.Now})
	must(t, err)
	return a
}

// TestReload: what one server changes counts on another one after Reload, in both directions.
func TestReload(t *testing.T) {
	r := newRig(t)
	ctx := t.Context()
	other := otherServer(t, r)

	secret, err := r.CreateApp(ctx, by, auth.App{Code: "shop", AssertsUsers: true, UnknownUsers: new(true)}, false)
	must(t, err)
	must(t, r.CreateUser(ctx, by, auth.User{Name: "alice", Grants: []gozzard.Grant{{Role: gozzard.RoleAdmin}}}, ""))
	token, _, err := r.CreateAppToken(ctx, by, "alice", "admin", "portal", 24*time.Hour)
	must(t, err)
	asApp := auth.Credentials{App: "shop", Secret: secret, User: "me"}
	asAlice := auth.Credentials{App: "admin", Secret: "root", Token: token}

	must(t, other.Reload(ctx))
	for name, c := range map[string]auth.Credentials{"the app": asApp, "the token": asAlice} {
		if _, _, err := other.Directory().Check(ctx, c); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}

	// What is taken away does not count any more.
	changed := other.Directory().Changed()
	must(t, r.DropApp(ctx, by, "shop"))
	_, err = r.Offboard(ctx, by, "alice")
	must(t, err)
	must(t, other.Reload(ctx))
	for name, c := range map[string]auth.Credentials{"the app": asApp, "the token": asAlice} {
		if _, _, err := other.Directory().Check(ctx, c); err == nil {
			t.Errorf("%s counts although it was removed", name)
		}
	}
	select {
	case <-changed:
	default:
		t.Error("readers that wait for a change did not hear of it")
	}

	// Nothing changed: nobody hears of it.
	changed = other.Directory().Changed()
	must(t, other.Reload(ctx))
	select {
	case <-changed:
		t.Error("readers heard of a change although nothing changed")
	default:
	}
}

// TestConcurrentChange: a change that another server's change makes wrong is rejected, and none is lost.
func TestConcurrentChange(t *testing.T) {
	r := newRig(t)
	ctx := t.Context()
	must(t, r.CreateUser(ctx, by, auth.User{Name: "alice"}, ""))
	other := otherServer(t, r)
	alice := auth.Holder{User: "alice"}
	viewer, operator := gozzard.Grant{Role: gozzard.RoleViewer}, gozzard.Grant{Role: gozzard.RoleOperator,
		Hosts: gozzard.HostsAny, Accounts: []string{"shop"}}

	must(t, r.AddGrant(ctx, by, alice, viewer))
	wantKind(t, other.AddGrant(ctx, by, alice, operator), gozzard.ErrConflict)
	must(t, other.AddGrant(ctx, by, alice, operator)) // it has read the accounts again
	if n := len(r.store.users["alice"].Grants); n != 2 {
		t.Errorf("alice has %d grants, want those of both servers", n)
	}

	// A token depends on nothing else, so it is made at once.
	_, _, err := r.CreateToken(ctx, by, "alice", "laptop", 24*time.Hour)
	must(t, err)
}
