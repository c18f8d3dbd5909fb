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

// Gate decides which agents may connect, by their certificates. The broker calls it for one connection at a time. It
// must not call the broker.
type Gate interface {
	// Admit returns the agent that a certificate belongs to and until when the certificate is valid. An error rejects
	// the connection. machine is how the agent identifies its machine.
	Admit(cs *tls.ConnectionState, machine string) (agent gozzard.AgentID, cloud int, until time.Time, err error)

	// Clone reports an agent of which two copies are running. The broker closes its connections and calls Admit for
	// the next ones.
	Clone(agent gozzard.AgentID, cloud int)
}

// authenticator decides which clients may connect to the broker and which subjects they may use. Without a gate all
// agents share one join secret. A client that has the secret can connect under the name of any agent; for that reason
// such a broker listens on loopback only.
type authenticator struct {
	hub    [sha256.Size]byte // hash of the hub's password, which is random and never leaves the process
	agents [sha256.Size]byte // hash of the join secret
	gate   Gate              // nil: agents show the join secret
	server *server.Server    // set before the first connection

	refused func(rule string)
	keeper  *doorkeeper // nil: no limit of connections
	through Through

	// nameless connections of agents have no user name at the broker. A change of the routes makes the broker look for the
	// users of all connections in its configuration, which has none, and close those with a name that it does not find.
	nameless bool

	mu     sync.Mutex
	names  map[uint64]string      // by connection; agents with certificates, some may be closed
	clones map[string]*cloneCheck // by agent name; agents with certificates
	joined map[string][]uint64    // by agent name; connections of agents with the join secret, some may be closed
	sweep  int                    // peers without a connection are removed from joined when it has this many
	banned map[string]time.Time   // by agent name; until when
}

func newAuthenticator(secret string, gate Gate) (a *authenticator, hubPassword string) {
	hubPassword = rand.Text() + rand.Text()
	return &authenticator{
		hub:     sha256.Sum256([]byte(hubPassword)),
		agents:  sha256.Sum256([]byte(secret)),
		gate:    gate,
		refused: func(string) {},
		names:   map[uint64]string{},
		clones:  map[string]*cloneCheck{},
		joined:  map[string][]uint64{},
		banned:  map[string]time.Time{},
		sweep:   sweepAt,
	}, hubPassword
}

// Check implements server.Authentication. The broker calls it for every connection before it accepts anything else.
func (a *authenticator) Check(c server.ClientAuthentication) bool {
	ok := a.check(c)
	if ok {
		a.keeper.admitted(c.GetID())
	}
	return ok
}

// check decides about a connection.
func (a *authenticator) check(c server.ClientAuthentication) bool {
	if c.Kind() != server.CLIENT {
		return false
	}

	opts := c.GetOpts()

	// The hub shows its password.
	if opts.Token != "" {
		if !isSecret(opts.Token, a.hub) {
			return false
		}
		c.RegisterUser(&server.User{})
		return true
	}

	// An agent shows a certificate if there is a gate, otherwise the join secret.
	if a.gate != nil {
		return a.nameOf(c.GetID()) != "" || a.checkCertificate(c) // the broker asks again when the routes change
	}
	if !isSecret(opts.Password, a.agents) {
		return false
	}
	p, err := parseAgentName(opts.Username)
	if err != nil {
		return false
	}
	return a.join(c, p)
}

// isSecret compares a secret with a hash. Hashes have equal lengths, so the comparison reveals nothing about the secret,
// not even its length.
func isSecret(given string, hash [sha256.Size]byte) bool {
	sum := sha256.Sum256([]byte(given))
	return subtle.ConstantTimeCompare(sum[:], hash[:]) == 1
}

// nameOf is the agent that a connection was accepted for, by its certificate; "" for all other connections.
func (a *authenticator) nameOf(conn uint64) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.names[conn]
}

// join accepts an agent that has the join secret, unless it is banned.
func (a *authenticator) join(c server.ClientAuthentication, p agentName) bool {
	name := p.String()
	a.mu.Lock()
	defer a.mu.Unlock()

	if a.isBanned(name, time.Now()) {
		return false
	}

	// A client with the secret can use one name after the other, so names without a connection are removed.
	if len(a.joined) >= a.sweep {
		for n, conns := range a.joined {
			if !slices.ContainsFunc(conns, a.isOpen) {
				delete(a.joined, n)
			}
		}
		a.sweep = max(sweepAt, 2*len(a.joined))
	}

	conns := slices.DeleteFunc(a.joined[name], func(conn uint64) bool { return !a.isOpen(conn) })
	a.joined[name] = append(conns, c.GetID())
	c.RegisterUser(userOf(p, time.Time{}))
	return true
}

// userOf is what an agent may do: publish on its two report subjects and subscribe to its command subject.
func userOf(p agentName, until time.Time) *server.User {
	name := p.String()
	return &server.User{Username: name, ConnectionDeadline: until, Permissions: &server.Permissions{
		Publish:   &server.SubjectPermission{Allow: []string{subjectResult + name, subjectStatus + name}},
		Subscribe: &server.SubjectPermission{Allow: []string{subjectOp + name}},
	}}
}

// checkCertificate accepts an agent by its certificate; the user name that it gives does not count. An agent has one
// connection: a new one closes the previous one, which is either dead and not yet noticed, or that of a clone.
func (a *authenticator) checkCertificate(c server.ClientAuthentication) bool {
	cs := c.GetTLSConnectionState()
	if cs == nil {
		return false
	}

	// A change of the routes makes the broker ask also about connections whose client has said nothing yet. Nothing is known
	// of its machine then, and the gate would take it for a copy. It connects again.
	machine, run, said := strings.Cut(c.GetOpts().Name, "/")
	if !said || run == "" {
		return false
	}

	// Ask the gate. The lock is held meanwhile, so that an agent that is disconnected now cannot connect unnoticed.
	a.mu.Lock()
	defer a.mu.Unlock()
	agent, cloud, until, err := a.gate.Admit(cs, machine)
	if err != nil {
		return false
	}
	p, err := newAgentName(cloud, agent)
	if err != nil {
		return false
	}

	// Reject an agent that came through a relay of other cloud areas, and a banned one.
	if from := c.RemoteAddress(); from != nil && !a.through.mayBring(from.String(), cloud) {
		a.refused(RuleRelayArea)
		return false
	}
	name := p.String()
	if a.isBanned(name, time.Now()) {
		return false
	}

	// Close the previous connection and look for a clone.
	check := a.clones[name]
	if check == nil {
		check = new(cloneCheck)
		a.clones[name] = check
	}
	open := check.conn != 0 && a.isOpen(check.conn)
	clone := check.connected(run, open, time.Now())
	a.closeConn(check)
	if clone {
		delete(a.clones, name)
		a.gate.Clone(agent, cloud)
		return false
	}

	// Accept the agent.
	check.conn = c.GetID()
	a.names[check.conn] = name
	user := userOf(p, until)
	if a.nameless {
		user.Username = ""
	}
	c.RegisterUser(user)
	return true
}

func (a *authenticator) isOpen(conn uint64) bool { return a.server.GetClient(conn) != nil }

// closeConn closes the current connection of an agent. mu is held.
func (a *authenticator) closeConn(c *cloneCheck) {
	if c.conn != 0 {
		_ = a.server.DisconnectClientByID(c.conn) // the only error: it is already closed
		delete(a.names, c.conn)
		c.conn = 0
	}
}

// disconnect closes the connection of an agent and forgets its earlier runs.
func (a *authenticator) disconnect(p agentName) {
	a.mu.Lock()
	defer a.mu.Unlock()

	if c := a.clones[p.String()]; c != nil {
		a.closeConn(c)
		delete(a.clones, p.String())
	}
}

// isBanned reports whether an agent is banned now. mu is held.
func (a *authenticator) isBanned(name string, now time.Time) bool {
	until, ok := a.banned[name]
	if !ok {
		return false
	}
	if now.Before(until) {
		a.refused(RuleBanned)
		return true
	}

	delete(a.banned, name)
	return false
}

// ban closes the connections of an agent and rejects new ones for a while. Unlike disconnect it keeps the earlier
// runs: no person has looked at the agent, so a clone must still be found.
func (a *authenticator) ban(name string, d time.Duration) {
	now := time.Now()
	a.mu.Lock()
	defer a.mu.Unlock()

	// Remove the bans that have ended.
	for n, until := range a.banned {
		if !now.Before(until) {
			delete(a.banned, n)
		}
	}

	a.banned[name] = now.Add(d)
	if c := a.clones[name]; c != nil {
		a.closeConn(c)
	}
	for _, conn := range a.joined[name] {
		_ = a.server.DisconnectClientByID(conn) // the only error: it is already closed
	}
	delete(a.joined, name)
}
