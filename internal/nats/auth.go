package nats

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/gozzard/gozzard"
)

// hubUser has no dot, so no agent can have that name.
const hubUser = "hub"

// Gate decides about agents by the certificates they show. It is called for one connection at a time and must not call the broker.
type Gate interface {
	// Admit tells whose certificate it is and until when it counts; an error refuses the connection. machine is what the agent says of its machine.
	Admit(cs *tls.ConnectionState, machine string) (agent gozzard.AgentID, cloud int, until time.Time, err error)
	// Clone is told of an agent that was found to run twice. Its connections are ended; Admit is asked about the next ones.
	Clone(agent gozzard.AgentID, cloud int)
}

// doorman decides who may connect to the broker, and to what. Without a gate one join secret serves all agents: whoever has it can connect under any
// agent's name, which is why such a broker stays on loopback.
type doorman struct {
	hub    [sha256.Size]byte // of the hub's password, drawn at start and never leaving the process
	agents [sha256.Size]byte // of the join secret
	gate   Gate              // nil: the secret counts
	server *server.Server    // set before the first connection

	mu     sync.Mutex
	guests map[string]*guest // by name; of agents with certificates
}

func newDoorman(secret string, gate Gate) (d *doorman, hubPassword string) {
	hubPassword = rand.Text() + rand.Text()
	return &doorman{hub: sha256.Sum256([]byte(hubPassword)), agents: sha256.Sum256([]byte(secret)), gate: gate, guests: map[string]*guest{}}, hubPassword
}

// Check is called by the broker for every connection, before anything else is accepted from it.
func (d *doorman) Check(c server.ClientAuthentication) bool {
	if c.Kind() != server.CLIENT {
		return false
	}
	opts := c.GetOpts()
	given := sha256.Sum256([]byte(opts.Password)) // equal lengths: the comparison tells nothing about the secret, its length included
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

// checkCertificate lets an agent in by its certificate; what it calls itself otherwise does not count. An agent has one connection: a new one ends the one
// before, which is a dead one that nobody has noticed yet, or a clone's.
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

func (d *doorman) alive(g *guest) bool { return g.conn != 0 && d.server.GetClient(g.conn) != nil }

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
