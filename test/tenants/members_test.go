package tenants_test

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/gozzard/gozzard/internal/enrol"
	"github.com/gozzard/gozzard/internal/sqlstore"
)

// enrolled makes every host of the world a member, as if each had joined with its own token.
func enrolled(t testing.TB, store *sqlstore.Store, only string, at time.Time) {
	t.Helper()

	for _, h := range places() {
		if !strings.Contains(h.seen, only) {
			continue
		}
		id := "token-" + string(h.agent)
		err := store.AddEnrolToken(t.Context(), enrol.TokenRecord{ID: id, Created: at, Expires: at.Add(time.Hour),
			Uses: 1}, enrol.AuditEntry{})
		if err != nil {
			t.Fatal(err)
		}
		_, err = store.Enrol(t.Context(), id, h.agent,
			func(enrol.TokenRecord, enrol.AgentRecord) (enrol.AgentRecord, error) {
				return enrol.AgentRecord{Agent: h.agent, IPs: []netip.Addr{netip.MustParseAddr(h.ip)},
					Hostname: tag(h.seen), State: enrol.StateActive, Serial: "1",
					NotAfter: at.Add(24 * time.Hour), Enrolled: at, Changed: at, Token: id}, nil
			}, enrol.AuditEntry{})
		if err != nil {
			t.Fatal(err)
		}
	}
}
