package enrol_test

import (
	"slices"
	"testing"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/enrol"
)

// TestTS14HostLeaves: a host removes itself and no other, by its certificate. Its address is free afterwards, and its
// certificate is worthless. The server forgets it. The acts are in the audit.
func TestTS14HostLeaves(t *testing.T) {
	r := newRig(t)
	a, b := r.member("a", 1), r.member("b", 2)
	must(t, enrol.Leave(t.Context(), a, "machine"))

	for _, m := range r.registry.Agents() {
		if want := map[string]enrol.State{"a": enrol.StateRemoved, "b": enrol.StateActive}[string(m.Agent)]; m.State != want {
			t.Errorf("%s is %s, want %s", m.Agent, m.State, want)
		}
	}
	if err := enrol.NewRenewer(a, "machine", nil).Renew(t.Context()); err == nil {
		t.Error("a host that left renewed its certificate")
	}
	if err := enrol.Leave(t.Context(), a, "machine"); err == nil {
		t.Error("a host left twice")
	}
	must(t, enrol.NewRenewer(b, "machine", nil).Renew(t.Context()))
	_, err := r.join(r.token(enrol.TokenRequest{}), "c", 1, t.TempDir()) // with the address of the host that left
	must(t, err)

	rows, err := r.store.Audit(t.Context(), 100)
	must(t, err)
	for _, act := range []string{"enrol:leave:a", "forget:a"} {
		if !slices.ContainsFunc(rows, func(row gozzard.AuditRow) bool { return row.Act == act }) {
			t.Errorf("the audit has no row %s of the host that left", act)
		}
	}
}

// TestTS14HeldHostStays: a host that an admin must look at cannot remove itself from the record, and neither can a copy
// of its state folder on another machine.
func TestTS14HeldHostStays(t *testing.T) {
	r := newRig(t)
	m := r.member("revoked", 1)
	_, err := r.registry.SetState(t.Context(), admin(), "revoked", enrol.StateRevoked)
	must(t, err)
	if err := enrol.Leave(t.Context(), m, "machine"); err == nil {
		t.Error("a revoked host left")
	}

	copied := r.member("copied", 2)
	if err := enrol.Leave(t.Context(), copied, "another machine"); err == nil {
		t.Error("a copy of a host left in its name")
	}
	for _, a := range r.registry.Agents() {
		if a.State == enrol.StateRemoved {
			t.Errorf("%s is removed", a.Agent)
		}
	}
}
