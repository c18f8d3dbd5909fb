package enrol_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/enrol"
	"github.com/gozzard/gozzard/internal/sqlstore"
)

// TestRestoredMembers: a record is restored from a backup. Its members cannot connect until an admin confirms them.
// Then they connect with the certificates they have, also those that are not in the record. Copies of old ones cannot.
func TestRestoredMembers(t *testing.T) {
	r := newRig(t)
	dirs := map[gozzard.AgentID]string{}
	firsts := map[gozzard.AgentID]*enrol.Membership{}
	for i, name := range []gozzard.AgentID{"renews", "stays", "copied", "revoked"} {
		dirs[name] = t.TempDir()
		m, err := r.join(r.token(enrol.TokenRequest{}), name, byte(i+1), dirs[name])
		must(t, err)
		firsts[name] = m
	}

	renew := func(name gozzard.AgentID) {
		t.Helper()
		m, err := enrol.LoadMembership(dirs[name])
		must(t, err)
		must(t, enrol.NewRenewer(m, "machine", nil).Renew(t.Context()))
	}

	for range 2 { // so that the first certificate is neither the newest nor the one before
		renew("copied")
	}

	r.clock.forward(time.Minute)
	taken := r.clock.now()
	dir := t.TempDir()
	must(t, sqlstore.Copy(t.Context(), filepath.Join(r.dir, "r.db"), filepath.Join(dir, "r.db")))

	for _, name := range []string{"ca.key", "signing.key"} {
		b, err := os.ReadFile(filepath.Join(r.dir, name))
		must(t, err)
		must(t, os.WriteFile(filepath.Join(dir, name), b, 0o600))
	}

	r.clock.forward(time.Minute)
	renew("renews")
	renew("renews")
	_, err := r.registry.SetState(t.Context(), admin(), "revoked", enrol.StateRevoked)
	must(t, err)

	s, err := sqlstore.OpenSQLite(t.Context(), filepath.Join(dir, "r.db"), sqlstore.Options{})
	must(t, err)
	must(t, s.MarkRestored(t.Context(), taken, r.clock.now()))
	must(t, s.Close())
	r2 := newRigIn(t, dir, 3*time.Minute)
	restore, err := enrol.OpenRestore(t.Context(), r2.store, r2.registry)
	must(t, err)

	if got := restore.From(); !got.Equal(taken.Truncate(time.Millisecond)) {
		t.Errorf("restored from %v, want %v", got, taken)
	}

	to := func(m *enrol.Membership) *end {
		m.Address = r2.broker.Addr()
		return r2.link(m, "machine")
	}

	ends := map[gozzard.AgentID]*end{}
	for name, dir := range dirs {
		m, err := enrol.LoadMembership(dir)
		must(t, err)
		ends[name] = to(m)
	}

	eventually(t, "all to be refused", func() bool { return r2.refusals("restored") >= len(ends) })

	for name, e := range ends {
		if e.isUp() || r2.registry.StateOf(name) != enrol.StateRestored {
			t.Errorf("%s is let in before anybody confirmed it", name)
		}
	}

	helper := gozzard.Caller{App: "app", User: "helper",
		Rights: &gozzard.Rights{Grants: []gozzard.Grant{{Role: gozzard.RoleEnroller}}}}
	if _, err := r2.registry.SetState(t.Context(), helper, "revoked",
		enrol.StateActive); gozzard.KindOf(err) != gozzard.ErrUserForbidden {
		t.Errorf("a caller that may only enrol approves a restored host: %v", err)
	}

	_, err = r2.registry.SetState(t.Context(), admin(), "revoked", enrol.StateRevoked) // the admin remembers
	must(t, err)

	if _, err := restore.Confirm(t.Context(), admin(), 4); gozzard.KindOf(err) != gozzard.ErrConflict {
		t.Errorf("a wrong number is taken: %v", err)
	}

	n, err := restore.Confirm(t.Context(), admin(), 3)
	if must(t, err); n != 3 || !restore.From().IsZero() {
		t.Errorf("confirmed %d, from %v", n, restore.From())
	}

	for _, name := range []gozzard.AgentID{"renews", "stays", "copied"} {
		eventually(t, string(name)+" to come back", ends[name].isUp)
	}

	if ends["revoked"].isUp() || r2.registry.StateOf("revoked") != enrol.StateRevoked {
		t.Error("what was revoked is let in")
	}

	eventually(t, "the record to know the new certificates", func() bool {
		list, err := r2.store.Members(t.Context())
		must(t, err)
		for _, m := range list {
			if m.State == enrol.StateActive && !m.Restored.IsZero() {
				return false
			}
		}
		return true
	})

	// A certificate that was replaced before the backup, and one that was in it and was replaced since.
	for _, name := range []gozzard.AgentID{"copied", "renews"} {
		to(firsts[name])
		eventually(t, "the copy of "+string(name)+" to be noticed",
			func() bool { return r2.registry.StateOf(name) == enrol.StateQuarantined })
	}

	if _, err := restore.Confirm(t.Context(), admin(), 0); gozzard.KindOf(err) != gozzard.ErrConflict {
		t.Errorf("confirmed twice: %v", err)
	}

	rows, err := r2.store.Audit(t.Context(), 10)
	must(t, err)
	seen := 0
	for _, row := range rows {
		if row.Act == "restore:confirm:"+taken.UTC().Format(time.RFC3339) && row.Targets == 3 &&
			row.Caller.User == "root" || row.Act == "restore:"+taken.UTC().Format(time.RFC3339) {
			seen++
		}
	}

	if seen != 2 {
		t.Errorf("the audit has %d of 2 rows: %+v", seen, rows)
	}
}
