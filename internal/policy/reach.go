package policy

import (
	"fmt"

	"github.com/gozzard/gozzard"
)

// Rules are the questions that a policy answers.
type Rules interface {
	Action(gozzard.Action) error
	Processes(n int) error
	Definition(namespace string, s *gozzard.Spec) error
	File(namespace, account, file string, size int64) error
	Script(namespace, account string, s *gozzard.ScriptSpec) error
	Folder(user, real string) error
	Plain(command string) (words []string, held bool, err error)
	Program(user, command, file string, interpreter bool) error
	Variable(name string) error
	Names(account string) bool
	DefaultAccount(own string) string
	Unnamed() error
}

// Reach restricts a policy to what its agent is able to do. Whatever the owner allows, an agent without the powers of
// root can act for few accounts or only for one. Reach rejects the rest before anything is done, and says what to do
// about it.
type Reach struct {
	Rules
	Mode    gozzard.AgentMode
	Account string // the account of the agent
	UID     uint32
}

// Definition checks a definition. One without an account means the default account.
func (r *Reach) Definition(namespace string, s *gozzard.Spec) error {
	s, err := r.reachable(s)
	if err != nil {
		return err
	}
	return r.Rules.Definition(namespace, s)
}

// reachable is a definition with the account that it means on this host, if this agent can act for that account.
func (r *Reach) reachable(s *gozzard.Spec) (*gozzard.Spec, error) {
	s, err := r.named(s)
	if err != nil {
		return nil, err
	}

	name := s.Identity.User
	switch {
	case !hasModes || r.Mode == gozzard.ModeRoot: // where accounts have no numbers, the host checks the account
	case r.Mode == gozzard.ModeCap:
		if r.UID != 0 && r.isOwn(name) && !r.Names(r.Account) {
			return nil, fmt.Errorf("permission: account %s is the agent's own, in mode cap: its commands could change "+
				"what the agent keeps; use another account, or list it by name in users of the policy", shown(name))
		}
	case !r.isOwn(name):
		return nil, r.outOfReach("account " + shown(name) + " cannot be used")
	}
	return s, nil
}

// isOwn reports whether a name means the agent's account.
func (r *Reach) isOwn(name string) bool {
	if name == r.Account {
		return true
	}
	acct, err := lookup(name)
	return err == nil && acct.hasID && acct.uid == r.UID
}

// outOfReach makes the error for an account that this agent cannot use.
func (r *Reach) outOfReach(what string) error {
	return fmt.Errorf("permission: %s: this agent runs as %s in mode user; name that account, or run the agent as "+
		"root (gozzard-agent.service) or with capabilities (gozzard-agent-cap.service)", what, shown(r.Account))
}
