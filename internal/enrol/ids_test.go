package enrol_test

import (
	"net/netip"
	"path/filepath"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/enrol"
	"github.com/gozzard/gozzard/internal/sqlstore"
	"github.com/gozzard/gozzard/test/storetest"
)

// TestTS15MembersKeepTheirIds: members of an earlier version have ids that no new host may have. They join again, each as
// itself.
func TestTS15MembersKeepTheirIds(t *testing.T) {
	dir := t.TempDir()
	storetest.NewSQLite(t, filepath.Join(dir, "r.db"))
	store, err := sqlstore.OpenSQLite(t.Context(), filepath.Join(dir, "r.db"), sqlstore.Options{})
	must(t, err)
	members := []gozzard.AgentID{"server", "Web", "web", "_x"}
	for i, id := range members {
		token := enrol.TokenRecord{ID: "t" + string(rune('0'+i)), Expires: time.Now().Add(time.Hour), Uses: 1}
		must(t, store.AddEnrolToken(t.Context(), token, enrol.AuditEntry{}))
		_, err := store.Enrol(t.Context(), token.ID, id, func(enrol.TokenRecord, enrol.AgentRecord) (enrol.AgentRecord, error) {
			return enrol.AgentRecord{Agent: id, IPs: []netip.Addr{ip(byte(i))}, State: enrol.StateActive}, nil
		}, enrol.AuditEntry{})
		must(t, err)
	}
	must(t, store.Close())

	r := newRigIn(t, dir, 0)
	for i, id := range members {
		token := r.token(enrol.TokenRequest{TTL: time.Hour, Uses: 1, Agent: id})
		if m, err := r.join(token, id, byte(i), t.TempDir()); err != nil || m.Agent != id {
			t.Errorf("%s: %+v, %v", id, m, err)
		}
	}
	for _, id := range []gozzard.AgentID{"Server", "WEB", "_X", "_y"} {
		if _, err := r.join(r.token(enrol.TokenRequest{TTL: time.Hour, Uses: 1}), id, 77, t.TempDir()); err == nil {
			t.Errorf("%s has joined", id)
		}
	}
}
