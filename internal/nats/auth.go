package nats

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"

	"github.com/nats-io/nats-server/v2/server"
)

// hubUser has no dot, so no agent can have that name.
const hubUser = "hub"

// doorman decides who may connect to the broker, and to what. One join secret serves all agents until enrolment gives each its own: whoever has
// it can connect under any agent's name, which is why the broker stays on loopback.
type doorman struct {
	hub    [sha256.Size]byte // of the hub's password, drawn at start and never leaving the process
	agents [sha256.Size]byte // of the join secret
}

func newDoorman(secret string) (d *doorman, hubPassword string) {
	hubPassword = rand.Text() + rand.Text()
	return &doorman{hub: sha256.Sum256([]byte(hubPassword)), agents: sha256.Sum256([]byte(secret))}, hubPassword
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
	if subtle.ConstantTimeCompare(given[:], d.agents[:]) != 1 {
		return false
	}
	p, err := parsePeer(opts.Username)
	if err != nil {
		return false
	}
	name := p.String()
	c.RegisterUser(&server.User{Username: name, Permissions: &server.Permissions{
		Publish:   &server.SubjectPermission{Allow: []string{subjectResult + name, subjectStatus + name}},
		Subscribe: &server.SubjectPermission{Allow: []string{subjectOp + name}},
	}})
	return true
}
