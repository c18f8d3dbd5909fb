package nats

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/gozzard/gozzard"
)

// hubUser has no dot, so no agent can have that name.
const hubUser = "hub"

// Gate decides about agents by the certificates they show. It is called for one connection at a time and must not
// call the broker.
type Gate interface {
	// Admit tells whose certificate it is and until when it counts; an error refuses the connection. machine is
	// what the agent says of its machine.
	Admit(cs *tls.ConnectionState, machine string) (agent gozzard.AgentID, cloud int, until time.Time, err error)
	// Clone is told of an agent that was found to run twice. Its connections are ended; Admit is asked about the
	// next ones.
	Clone(agent gozzard.AgentID, cloud int)
}

// doorman decides who may connect to the broker, and to what. Without a gate one join secret serves all agents:
// whoever has it can connect under any agent's name, which is why such a broker stays on loopback.
type doorman struct {
	hub    [sha256.Size]byte // of the hub's password, drawn at start and never leaving the process
	agents [sha256.Size]byte // of the join secret
	gate   Gate              // nil: the secret counts
	server *server.Server    // set before the first connection

	refused func(rule string)

	mu     sync.Mutex
	guests map[string]*guest    // by name; of agents with certificates
	joined map[string][]uint64  // by name; connections of agents with the secret, of which some may be gone
	sweep  int                  // how many names may be in joined before those without a connection are looked for
	out    map[string]time.Time // by name; who is kept out until when
}

func newDoorman(secret string, gate Gate) (d *doorman, hubPassword string) {
	hubPassword = rand.Text() + rand.Text()
	return &doorman{
		hub: sha256.Sum256([]byte(hubPassword)), agents: sha256.Sum256([]byte(secret)), gate: gate,
		refused: func(string) {},
		guests:  map[string]*guest{}, joined: map[string][]uint64{}, out: map[string]time.Time{}, sweep: sweepAt,
	}, hubPassword
}

// Check is called by the broker for every connection, before anything else is accepted from it.
func (d *doorman) Check(c server.ClientAuthentication) bool {
	if c.Kind() != server.CLIENT {
		return false
	}

	opts := c.GetOpts()
	// equal lengths: the comparison tells nothing about the secret, its length included
	given := sha256.Sum256([]byte(opts.Password))

	if opts.Username == hubUser {
		if subtle.ConstantTimeCompare(given[:], d.hub[:]) != 1 {
			return false
		}
		c.RegisterUser(&server.User{Username: hubUser})
		return true
	}

	if d.gate != nil {
		return d.checkCertificate(c)
	}
	if subtle.ConstantTimeCompare(given[:], d.agents[:]) != 1 {
		return false
	}

	p, err := parsePeer(opts.Username)
	if err != nil {
		return false
	}

	return d.join(c, p)
}

// join lets an agent in that has the secret.
func (d *doorman) join(c server.ClientAuthentication, p peer) bool {
	name := p.String()
	d.mu.Lock()
	defer d.mu.Unlock()

	if d.isOut(name, time.Now()) {
		return false
	}

	if len(d.joined) >= d.sweep { // whoever has the secret can take any name, one after the other
		for n, ids := range d.joined {
			if !slices.ContainsFunc(ids, d.lives) {
				delete(d.joined, n)
			}
		}
		d.sweep = max(sweepAt, 2*len(d.joined))
	}

	ids := slices.DeleteFunc(d.joined[name], func(id uint64) bool { return !d.lives(id) })
	d.joined[name] = append(ids, c.GetID())
	c.RegisterUser(userOf(p, time.Time{}))
	return true
}

// userOf is what an agent may do: speak on its own two subjects and listen on its own one.
func userOf(p peer, until time.Time) *server.User {
	name := p.String()
	return &server.User{Username: name, ConnectionDeadline: until, Permissions: &server.Permissions{
		Publish:   &server.SubjectPermission{Allow: []string{subjectResult + name, subjectStatus + name}},
		Subscribe: &server.SubjectPermission{Allow: []string{subjectOp + name}},
	}}
}

// checkCertificate lets an agent in by its certificate; what it calls itself otherwise does not count. An agent has
// one connection: a new one ends the one before, which is a dead one that nobody has noticed yet, or a clone's.
func (d *doorman) checkCertificate(c server.ClientAuthentication) bool {
	cs := c.GetTLSConnectionState()
	if cs == nil {
		return false
	}

	machine, run, _ := strings.Cut(c.GetOpts().Name, "/")
	d.mu.Lock() // also over the question: who is cut in the meantime must not slip in
	defer d.mu.Unlock()
	agent, cloud, until, err := d.gate.Admit(cs, machine)
	if err != nil {
		return false
	}

	p, err := newPeer(cloud, agent)
	if err != nil {
		return false
	}
	if d.isOut(p.String(), time.Now()) {
		return false
	}

	g := d.guests[p.String()]
	if g == nil {
		g = new(guest)
		d.guests[p.String()] = g
	}

	live := d.alive(g)
	clone := g.arrive(run, live, time.Now())
	d.kick(g)

	if clone {
		delete(d.guests, p.String())
		d.gate.Clone(agent, cloud)
		return false
	}

	g.conn = c.GetID()
	c.RegisterUser(userOf(p, until))
	return true
}

func (d *doorman) alive(g *guest) bool { return g.conn != 0 && d.lives(g.conn) }

func (d *doorman) lives(conn uint64) bool { return d.server.GetClient(conn) != nil }

func (d *doorman) kick(g *guest) {
	if g.conn != 0 {
		_ = d.server.DisconnectClientByID(g.conn) // the only error is that it is gone already
		g.conn = 0
	}
}

// cut ends the connection of an agent and forgets which runs of it were seen.
func (d *doorman) cut(p peer) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if g := d.guests[p.String()]; g != nil {
		d.kick(g)
		delete(d.guests, p.String())
	}
}

// isOut reports whether an agent is kept out now. mu is held.
func (d *doorman) isOut(name string, now time.Time) bool {
	until, ok := d.out[name]
	if !ok {
		return false
	}
	if now.Before(until) {
		d.refused(RuleKeptOut)
		return true
	}
	delete(d.out, name)
	return false
}

// keepOut ends the connections of an agent and lets it in again after a while. What it was seen to run is
// remembered: this is no decision of a person.
func (d *doorman) keepOut(name string, long time.Duration) {
	now := time.Now()
	d.mu.Lock()
	defer d.mu.Unlock()

	for n, until := range d.out {
		if !now.Before(until) {
			delete(d.out, n)
		}
	}

	d.out[name] = now.Add(long)
	if g := d.guests[name]; g != nil {
		d.kick(g)
	}

	for _, id := range d.joined[name] {
		_ = d.server.DisconnectClientByID(id) // the only error is that it is gone already
	}

	delete(d.joined, name)
}
