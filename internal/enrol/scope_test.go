package enrol_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/enrol"
)

// tokenFor asks for a token for one agent.
func (r *rig) tokenFor(by gozzard.Caller, agent gozzard.AgentID, cidrs ...string) (enrol.Token, error) {
	token, _, err := r.registry.CreateToken(r.t.Context(), by,
		enrol.TokenRequest{TTL: time.Hour, Uses: 1, Agent: agent, Nets: nets(cidrs...)})
	return token, err
}

// TestTS10TokensForMembers: an enroller tries to get a token for members in every state, and uses one that was right
// when it was made.
func TestTS10TokensForMembers(t *testing.T) {
	r := newRig(t)
	eva := r.grant("eva", gozzard.Grant{Role: gozzard.RoleEnroller})
	near := r.grant("near", gozzard.Grant{Role: gozzard.RoleEnroller, Nets: nets("127.0.0.0/8", "10.0.0.2/32")})
	local := r.grant("local", gozzard.Grant{Role: gozzard.RoleAdmin, Nets: nets("127.0.0.0/8", "10.0.0.1/32")})
	r.member("a", 1)

	// A member that the caller may not enrol does not exist for it.
	_, err := r.tokenFor(near, "a", "127.0.0.0/8")
	wantKind(t, "a token for a foreign member", err, gozzard.ErrInvalid)
	_, unknown := r.tokenFor(near, "nosuch", "127.0.0.0/8")
	if err == nil || unknown == nil || err.Error() != unknown.Error() {
		t.Errorf("a foreign member is distinguished from an unknown one: %v, %v", err, unknown)
	}

	// States that only an admin may lift.
	for _, state := range []enrol.State{enrol.StateActive, enrol.StateQuarantined, enrol.StateRevoked} {
		switch state {
		case enrol.StateQuarantined:
			r.registry.Clone("a", 0)
			_, err := r.registry.SetState(t.Context(), eva, "a", enrol.StateActive)
			wantKind(t, "an enroller lifts a quarantine", err, gozzard.ErrUserForbidden)
		case enrol.StateRevoked:
			_, err := r.registry.SetState(t.Context(), local, "a", enrol.StateRevoked)
			must(t, err)
			_, err = r.registry.SetState(t.Context(), eva, "a", enrol.StateActive)
			wantKind(t, "an enroller approves a revoked host", err, gozzard.ErrConflict)
		}
		_, err := r.tokenFor(eva, "a")
		wantKind(t, "an enroller's token for a member that is "+string(state), err, gozzard.ErrUserForbidden)
		_, err = r.tokenFor(local, "a")
		must(t, err)
		if got := r.registry.StateOf("a"); got != state {
			t.Fatalf("the member is %s, want %s", got, state)
		}
	}

	// Its address under another name.
	token, _, err := r.registry.CreateToken(t.Context(), eva, enrol.TokenRequest{TTL: time.Hour, Uses: 1})
	must(t, err)
	_, err = r.join(token, "b", 1, t.TempDir())
	wantKind(t, "the address of a revoked host under another name", err, gozzard.ErrConflict)
	_, err = r.join(r.token(enrol.TokenRequest{}), "b", 1, t.TempDir())
	must(t, err) // an admin may replace the host
}

// TestTS10TokenOfAnotherTime: a token was right when it was made, and is not any more when it is used.
func TestTS10TokenOfAnotherTime(t *testing.T) {
	r := newRig(t)
	enroller := gozzard.Grant{Role: gozzard.RoleEnroller}
	eva := r.grant("eva", enroller)

	// The member was waiting for its approval.
	_, err := r.join(r.token(enrol.TokenRequest{Approve: true}), "a", 1, t.TempDir())
	must(t, err)
	early, err := r.tokenFor(eva, "a")
	must(t, err)
	for _, to := range []enrol.State{enrol.StateActive, enrol.StateRevoked} {
		_, err = r.registry.SetState(t.Context(), admin(), "a", to)
		must(t, err)
		_, err = r.join(early, "a", 1, t.TempDir())
		wantKind(t, "a token from before it became "+string(to), err, gozzard.ErrUnauthenticated)
	}

	// The creator lost the right, or was removed.
	for i, rights := range [][]gozzard.Grant{{{Role: gozzard.RoleViewer}}, nil,
		{{Role: gozzard.RoleEnroller, Nets: nets("10.9.0.0/16")}}} {
		id, n := gozzard.AgentID(fmt.Sprint("new-", i)), byte(10+i)
		eva = r.grant("eva", enroller)
		token, _, err := r.registry.CreateToken(t.Context(), eva, enrol.TokenRequest{TTL: time.Hour, Uses: 1})
		must(t, err)
		r.grant("eva", rights...)
		_, err = r.join(token, id, n, t.TempDir())
		wantKind(t, "a token of a creator without the right", err, gozzard.ErrUnauthenticated)
		r.grant("eva", enroller)
		_, err = r.join(token, id, n, t.TempDir())
		must(t, err)
	}
}

// TestTS11Addresses: a member joins again with other addresses, and admins of some addresses change them.
func TestTS11Addresses(t *testing.T) {
	r := newRig(t)
	var changed []gozzard.AgentID
	r.registry.OnReaddress(func(agent gozzard.AgentID) { changed = append(changed, agent) })
	r.member("a", 1)
	r.member("b", 2)
	m, err := r.join(r.token(enrol.TokenRequest{Agent: "a"}), "a", 9, t.TempDir())
	if must(t, err); len(m.IPs) != 1 || m.IPs[0] != ip(1) {
		t.Errorf("after joining again the host has %v", m.IPs)
	}
	if got := r.registry.Addrs("a", []gozzard.HostAddr{{IP: ip(9)}}); len(got) != 1 || got[0].IP != ip(1) {
		t.Errorf("it answers as %v", got)
	}

	few := r.grant("few", gozzard.Grant{Role: gozzard.RoleAdmin, Nets: nets("10.0.0.0/30")})
	eva := r.grant("eva", gozzard.Grant{Role: gozzard.RoleEnroller})
	far := r.grant("far", gozzard.Grant{Role: gozzard.RoleAdmin, Nets: nets("10.9.0.0/16")})
	viewer := r.grant("viewer", gozzard.Grant{Role: gozzard.RoleViewer})
	operator := r.grant("operator", gozzard.Grant{Role: gozzard.RoleOperator})
	tenant := r.grant("tenant", gozzard.Grant{Role: gozzard.RoleAdmin, Businesses: []int{2}})
	var many []netip.Addr
	for n := range byte(16) {
		many = append(many, ip(100+n))
	}
	for what, c := range map[string]struct {
		by          gozzard.Caller
		add, remove []netip.Addr
		want        gozzard.ErrorKind
	}{
		"an enroller":              {eva, []netip.Addr{ip(3)}, nil, gozzard.ErrUserForbidden},
		"an admin of another net":  {far, []netip.Addr{ip(3)}, nil, gozzard.ErrNotFound},
		"an address beyond":        {few, []netip.Addr{ip(7)}, nil, gozzard.ErrUserForbidden},
		"an address of another":    {few, []netip.Addr{ip(2)}, nil, gozzard.ErrConflict},
		"one that it has not":      {few, nil, []netip.Addr{ip(2)}, gozzard.ErrInvalid},
		"none would remain":        {few, nil, []netip.Addr{ip(1)}, gozzard.ErrInvalid},
		"seventeen":                {admin(), many, nil, gozzard.ErrInvalid},
		"nothing":                  {few, nil, nil, gozzard.ErrInvalid},
		"a viewer of everything":   {viewer, many, nil, gozzard.ErrNotFound},
		"an operator":              {operator, many, nil, gozzard.ErrNotFound},
		"an admin of one business": {tenant, many, nil, gozzard.ErrNotFound},
	} {
		_, err := r.registry.ChangeAddrs(t.Context(), c.by, "a", c.add, c.remove)
		wantKind(t, what, err, c.want)
	}
	if len(changed) > 0 {
		t.Errorf("refused changes were applied to %v", changed)
	}

	rec, err := r.registry.ChangeAddrs(t.Context(), few, "a", []netip.Addr{ip(3)}, []netip.Addr{ip(1)})
	if must(t, err); len(rec.IPs) != 1 || rec.IPs[0] != ip(3) || len(changed) != 1 {
		t.Errorf("after the change it has %v, applied to %v", rec.IPs, changed)
	}
	again, err := enrol.NewRegistry(t.Context(), enrol.RegistryOptions{Store: r.store, Authority: r.authority})
	if must(t, err); len(again.Addrs("a", nil)) != 1 || again.Addrs("a", nil)[0].IP != ip(3) {
		t.Errorf("a new registry has %v", again.Addrs("a", nil))
	}
	rows, err := r.store.Audit(t.Context(), 10)
	must(t, err)
	found := false
	for _, row := range rows {
		found = found || row.Act == "enrol:address:a +10.0.0.3 -10.0.0.1" && row.Caller.User == "few"
	}
	if !found {
		t.Errorf("the audit has no row of it: %+v", rows)
	}
}

// TestTS13LogIsBounded: hundreds of wrong tokens make few lines, and each has the address they came from.
func TestTS13LogIsBounded(t *testing.T) {
	r := newRig(t)
	var out bytes.Buffer
	registry, err := enrol.NewRegistry(t.Context(), enrol.RegistryOptions{Store: r.store, Authority: r.authority,
		Log: slog.New(slog.NewTextHandler(&out, nil)), Now: time.Now})
	must(t, err)
	from := netip.MustParseAddr("192.0.2.7")
	for range 300 {
		_, err := registry.Join(t.Context(), from, enrol.JoinRequest{Token: "x"})
		wantKind(t, "no token", err, gozzard.ErrUnauthenticated)
	}
	if n := strings.Count(out.String(), "\n"); n < 1 || n > 100 {
		t.Errorf("300 wrong tokens made %d lines", n)
	}
	if lines := strings.Count(out.String(), "from=192.0.2.7"); lines != strings.Count(out.String(), "\n") {
		t.Errorf("%d lines have the address: %s", lines, out.String())
	}
}
