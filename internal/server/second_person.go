package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/api"
	"github.com/gozzard/gozzard/internal/approval"
	"github.com/gozzard/gozzard/internal/auth"
	"github.com/gozzard/gozzard/internal/enrol"
	"github.com/gozzard/gozzard/internal/taskname"
)

// The words of --second-person.
const (
	secondAdmin   = "admin-grants"
	secondRevoked = "revoked-hosts"
	secondRoot    = "root-hosts="
)

// rootWindow is the time over which hosts with commands of root are counted.
const rootWindow = time.Hour

// SecondPersonOptions say which acts need a second person. The zero value: none.
type SecondPersonOptions struct {
	For  []string      // words of --second-person
	Wait time.Duration // how long a request waits
}

// parse reads the words.
func (o *SecondPersonOptions) parse(p *secondPerson) (err error) {
	for _, word := range o.For {
		switch n, isRoot := strings.CutPrefix(word, secondRoot); {
		case word == secondAdmin:
			p.admin = true
		case word == secondRevoked:
			p.revoked = true
		case isRoot:
			if p.hosts, err = strconv.Atoi(n); err != nil || p.hosts < 0 {
				return fmt.Errorf("--second-person %s: use %sNUMBER", word, secondRoot)
			}
			p.root = true
		default:
			return fmt.Errorf("--second-person %q: use %s, %s or %sNUMBER", word, secondAdmin, secondRevoked, secondRoot)
		}
	}
	if len(o.For) > 0 && o.Wait < time.Second {
		return fmt.Errorf("--second-person-wait %s: use at least 1s", o.Wait)
	}
	return nil
}

// secondPerson is what needs a second person, and the place where requests wait.
type secondPerson struct {
	admin, revoked, root bool
	hosts                int // with commands of root that one person may reach in an hour alone
	desk                 *approval.Desk

	mu   sync.Mutex
	seen map[string]map[gozzard.AgentID]time.Time // hosts that a person has reached as root
}

// openSecondPerson makes the desk where requests wait.
func (s *Server) openSecondPerson(ctx context.Context) (err error) {
	wait := s.options.SecondPerson.Wait
	if wait == 0 {
		wait = 24 * time.Hour
	}
	s.second.desk, err = approval.NewDesk(ctx, approval.Options{Store: s.store, Wait: wait, Log: s.options.Log,
		Rights: s.accounts.Directory().RightsOf,
		Do: map[approval.Kind]approval.Do{approval.AdminGrant: s.doGrant, approval.RevokedHost: s.doReturn,
			approval.RootCommand: s.doRoot}})
	if (s.second.root || s.second.revoked) && !s.second.admin {
		s.options.Log.Warn("--second-person without " + secondAdmin + ": an admin can make a second admin alone, " +
			"and approve as that one")
	}
	return err
}

// heldGrant is a grant that waits.
type heldGrant struct {
	To    auth.Holder   `json:"to"`
	Grant gozzard.Grant `json:"grant"`
}

// askGrant asks a second person about a grant.
func (s *Server) askGrant(ctx context.Context, by gozzard.Caller, to auth.Holder, g gozzard.Grant) error {
	b, err := json.Marshal(g)
	if err != nil {
		return fmt.Errorf("cannot encode a grant: %w", err)
	}
	return s.second.desk.Ask(ctx, by, approval.AdminGrant, fmt.Sprintf("grant to %s: %s", to, b), heldGrant{to, g})
}

// doGrant gives a grant that was approved.
func (s *Server) doGrant(ctx context.Context, asker gozzard.Caller, act []byte) (string, error) {
	var in heldGrant
	if err := json.Unmarshal(act, &in); err != nil {
		return "", err
	}
	if !asker.Rights.All() {
		return "", gozzard.Errorf(gozzard.ErrUserForbidden, "%s is not an admin of everything any more", asker.User)
	}
	return "", s.accounts.AddGrant(ctx, asker, in.To, in.Grant)
}

// askReturn asks a second person about a token for a revoked host.
func (s *Server) askReturn(ctx context.Context, by gozzard.Caller, t enrol.TokenRecord) error {
	return s.second.desk.Ask(ctx, by, approval.RevokedHost, fmt.Sprintf("token %s brings back the revoked agent %s, "+
		"from %v, within %s", t.ID, t.Agent, t.Nets, t.Expires.Sub(t.Created)), t)
}

// doReturn stores a token that was approved.
func (s *Server) doReturn(ctx context.Context, asker gozzard.Caller, act []byte) (string, error) {
	var t enrol.TokenRecord
	if err := json.Unmarshal(act, &t); err != nil {
		return "", err
	}
	if s.trust.registry == nil {
		return "", gozzard.Errorf(gozzard.ErrConflict, "no host is enrolled here")
	}
	return "", s.trust.registry.AddApproved(ctx, asker, t)
}

// heldOperation is an operation that waits, with its hosts written out.
type heldOperation struct {
	Items   []heldItem    `json:"items"`
	Hash    []byte        `json:"hash"`
	Wait    time.Duration `json:"wait"`
	Confirm int           `json:"confirm"`
	Adopt   bool          `json:"adopt"`
}

type heldItem struct {
	Action  uint8             `json:"action"`
	Key     gozzard.Key       `json:"key"`
	Labels  map[string]string `json:"labels,omitempty"`
	Spec    []byte            `json:"spec,omitempty"` // by EncodeSpec
	Targets []gozzard.Target  `json:"targets"`
}

// holdRoot lets an operation wait that reaches too many hosts as root, together with those of the last hour. The other
// doors cannot answer with a request, so they refuse.
func (s *Server) holdRoot(ctx context.Context, op *gozzard.Operation, attempts []gozzard.Attempt) error {
	p := &s.second
	if !p.root || gozzard.IsApproved(ctx) {
		return nil
	}
	hosts := rootHosts(attempts)
	if len(hosts) == 0 || p.within(op.Caller, hosts, time.Now(), true) {
		return nil
	}

	if op.Door != api.Door {
		return gozzard.Errorf(gozzard.ErrUserForbidden, "commands of root on more than %d hosts in an hour need a second "+
			"person: use the command line or the native API of Gozzard", p.hosts)
	}
	in := heldOperation{Hash: op.RequestHash[:], Wait: op.WaitOffline, Confirm: op.Confirm, Adopt: op.Adopt}
	var words []string
	for i := range op.Items {
		it := &op.Items[i]
		item := heldItem{Action: uint8(it.Action), Key: it.Key, Labels: it.Labels, Targets: it.Targets}
		if it.Spec != nil {
			item.Spec = gozzard.EncodeSpec(it.Spec)
		}
		in.Items = append(in.Items, item)
		if word := it.Action.String() + " " + it.Key.String(); !slices.Contains(words, word) {
			words = append(words, word)
		}
	}
	err := p.desk.Ask(ctx, op.Caller, approval.RootCommand, fmt.Sprintf("as root on %d hosts: %s", len(hosts),
		strings.Join(words, ", ")), in)

	// Large contents of files are not inside the request, so the record keeps them while it waits.
	var held *approval.Held
	if errors.As(err, &held) {
		if fault := s.plane.KeepContents(ctx, op); fault != nil {
			return fault
		}
	}
	return err
}

// holdsRoot reports whether holdRoot would let an operation wait, and counts nothing.
func (s *Server) holdsRoot(op *gozzard.Operation, attempts []gozzard.Attempt) bool {
	if !s.second.root {
		return false
	}
	hosts := rootHosts(attempts)
	return len(hosts) > 0 && !s.second.within(op.Caller, hosts, time.Now(), false)
}

// doRoot carries out an operation that was approved.
func (s *Server) doRoot(ctx context.Context, asker gozzard.Caller, act []byte) (string, error) {
	var in heldOperation
	if err := json.Unmarshal(act, &in); err != nil {
		return "", err
	}
	op := &gozzard.Operation{Caller: asker, Door: api.Door, WaitOffline: in.Wait, Confirm: in.Confirm, Adopt: in.Adopt}
	copy(op.RequestHash[:], in.Hash)
	for _, it := range in.Items {
		item := gozzard.Item{Action: gozzard.Action(it.Action), Key: it.Key, Labels: it.Labels, Targets: it.Targets}
		if len(it.Spec) > 0 {
			spec, err := gozzard.DecodeSpec(it.Spec)
			if err != nil {
				return "", err
			}
			item.Spec = spec
		}
		op.Items = append(op.Items, item)
	}

	task, err := s.plane.Operate(ctx, op)
	if err != nil {
		return "", err
	}
	return ": task " + taskname.Of(task.ID), nil
}

// rootHosts are the hosts on which attempts lead to commands of root. Without a definition that names another account
// the account is root.
func rootHosts(attempts []gozzard.Attempt) (hosts []gozzard.AgentID) {
	root := map[string]bool{} // by definition
	found := map[gozzard.AgentID]bool{}
	for i := range attempts {
		a := &attempts[i]
		if a.State.Final() || a.Action.ReadOnly() || a.Action == gozzard.ActionUnhost ||
			a.Action == gozzard.ActionUnregister || found[a.Agent] {
			continue
		}
		isRoot, known := root[string(a.Spec)]
		if !known {
			spec, err := gozzard.DecodeSpec(a.Spec)
			isRoot = err != nil || spec.Account() == gozzard.RootAccount
			root[string(a.Spec)] = isRoot
		}
		if isRoot {
			found[a.Agent] = true
			hosts = append(hosts, a.Agent)
		}
	}
	return hosts
}

// within counts the hosts of a person in the last hour, and reports whether the new ones are within the limit. Those
// that are not do not count, and none does without keep. A user is one person by any app and token.
func (p *secondPerson) within(c gozzard.Caller, hosts []gozzard.AgentID, now time.Time, keep bool) bool {
	person := "app " + c.App
	if c.User != "" && !c.Asserted {
		person = "user " + c.User
	}

	p.mu.Lock()
	defer p.mu.Unlock()
	if p.seen == nil {
		p.seen = map[string]map[gozzard.AgentID]time.Time{}
	}
	seen := p.seen[person]
	if seen == nil && keep {
		seen = map[gozzard.AgentID]time.Time{}
		p.seen[person] = seen
	}
	for agent, at := range seen {
		if now.Sub(at) >= rootWindow {
			delete(seen, agent)
		}
	}

	n := len(seen)
	for _, agent := range hosts {
		if _, known := seen[agent]; !known {
			n++
		}
	}
	if n > p.hosts {
		return false
	}
	for _, agent := range hosts {
		if keep {
			seen[agent] = now
		}
	}
	return true
}
