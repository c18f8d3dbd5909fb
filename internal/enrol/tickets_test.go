package enrol_test

import (
	"crypto/tls"
	"testing"
	"time"

	natsgo "github.com/nats-io/nats.go"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/enrol"
	"github.com/gozzard/gozzard/internal/nats"
)

func (r *rig) came(byTicket bool) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.resumed[byTicket]
}

func (e *end) upCount() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.ups
}

// TestTD5Resumption: agents resume their connections, also at a restarted server. A ticket allows nothing that the
// certificate does not: a revoked agent cannot connect, and a new certificate starts without a ticket.
func TestTD5Resumption(t *testing.T) {
	r := newRig(t)
	var ends []*end
	for i, id := range []string{"a", "b", "c"} {
		ends = append(ends, r.link(r.member(gozzard.AgentID(id), byte(i+1)), "machine"))
	}

	back := func(what string, ups int) {
		t.Helper()
		for _, e := range ends {
			eventually(t, what, func() bool { return e.isUp() && e.upCount() == ups })
		}
	}

	back("the agents", 1)

	if r.came(true) != 0 {
		t.Fatalf("%d were resumed without a ticket", r.came(true))
	}

	for _, id := range []string{"a", "b", "c"} {
		r.broker.Cut(gozzard.AgentID(id), 0)
	}

	back("the agents again", 2)

	if n := r.came(true); n != 3 {
		t.Errorf("%d of 3 resumed", n)
	}

	r.restart()
	back("the agents with another run of the server", 3)

	if n := r.came(true); n != 6 {
		t.Errorf("%d of 3 resumed after a start of the server", n-3)
	}

	must(t, ends[0].keep.Renew(t.Context()))
	full := r.came(false)
	r.broker.Cut("a", 0)
	eventually(t, "the agent with a new certificate", func() bool { return ends[0].isUp() && ends[0].upCount() == 4 })

	if r.came(false) != full+1 {
		t.Error("a new certificate went by the ticket of the old one")
	}

	before := r.came(true)
	_, err := r.registry.SetState(t.Context(), admin(), "b", enrol.StateRevoked)
	must(t, err)
	eventually(t, "the refusal", func() bool { return r.refusals("revoked") > 0 })

	if r.came(true) == before {
		t.Error("the revoked one did not try its ticket, so this proves nothing")
	}
	if ends[1].isUp() {
		t.Error("the revoked one is in")
	}

	t.Logf("TD5: %d connections resumed, %d did not; a revoked ticket was refused %d times", r.came(true),
		r.came(false), r.refusals("revoked"))
}

// TestTicketKeys: a ticket is valid after the day on which it was made, as its certificate is, and invalid at another
// authority.
func TestTicketKeys(t *testing.T) {
	r := newRig(t)
	keep := enrol.NewRenewer(r.member("a", 1), "machine", nil)
	config := keep.TLS()
	connect := func(run string) {
		t.Helper()
		a, err := r.attack(config, natsgo.Name("machine/"+run))
		must(t, err)
		must(t, a.Flush()) // the ticket came before the answer
		a.Close()
	}

	connect("1")
	connect("2")

	if r.came(true) != 1 {
		t.Fatalf("%d resumed", r.came(true))
	}

	r.clock.forward(23 * time.Hour)
	connect("3")

	if r.came(true) != 2 {
		t.Error("a ticket of the day before was not opened")
	}

	other := newRig(t)
	foreign := &tls.Config{RootCAs: other.authority.Pool(), ServerName: enrol.ServerName,
		MinVersion: tls.VersionTLS13, GetClientCertificate: config.GetClientCertificate,
		ClientSessionCache: config.ClientSessionCache}
	if _, err := other.attack(foreign, natsgo.Name("machine/4")); err == nil {
		t.Error("another authority let it in")
	}
}

// restart replaces the broker by another one with the authority of the file.
func (r *rig) restart() {
	r.t.Helper()
	addr := r.broker.Addr()
	r.broker.Close()
	authority, err := enrol.OpenAuthority(r.dir, r.clock.now)
	must(r.t, err)

	eventually(r.t, "the port", func() bool {
		b, err := nats.StartBroker(nats.BrokerOptions{Listen: addr, TLS: authority.FabricTLS(),
			Gate: &watchedGate{Registry: r.registry, r: r}})
		if err != nil {
			return false
		}
		r.broker = b
		return true
	})

	r.t.Cleanup(r.broker.Close)
	r.registry.OnCut(r.broker.Cut)
}
