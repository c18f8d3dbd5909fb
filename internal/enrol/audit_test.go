package enrol_test

import (
	"strings"
	"testing"

	"github.com/gozzard/gozzard/internal/enrol"
)

// TestTR1RenewalHasARow: enrolment and renewal of a host are in the audit, with the host.
func TestTR1RenewalHasARow(t *testing.T) {
	r := newRig(t)
	m := r.member("a", 1)
	must(t, enrol.NewRenewer(m, "machine", nil).Renew(t.Context()))
	rows, err := r.store.Audit(t.Context(), 100)
	must(t, err)

	for _, act := range []string{"enrol:join:a", "enrol:renew:a"} {
		found := false
		for i := range rows {
			if rows[i].Act == act {
				text, err := r.store.AuditText(t.Context(), rows[i].HostsHash)
				must(t, err)
				found = strings.HasPrefix(string(text), "a\t")
			}
		}
		if !found {
			t.Errorf("no row %s with its host", act)
		}
	}
}
