package enrol

import (
	"context"
	"crypto/sha256"
	"net/netip"
	"time"

	"github.com/gozzard/gozzard"
)

// TokenRequest describes the token that a caller wants.
type TokenRequest struct {
	TTL     time.Duration   // how long it is valid
	Uses    int             // how many hosts it enrols
	Cloud   int             // cloud area of the hosts
	Nets    []netip.Prefix  // of the hosts: they connect from there, and their addresses are in there; none: any
	Approve bool            // the hosts wait for approval
	Agent   gozzard.AgentID // enrols this agent again; "": hosts that are not enrolled yet
}

// CreateToken creates a token. Its text cannot be read again later.
func (r *Registry) CreateToken(
	ctx context.Context, caller gozzard.Caller, req TokenRequest,
) (Token, TokenRecord, error) {
	// Check the request.
	e := &gozzard.Error{Kind: gozzard.ErrInvalid}
	fault := func(bad bool, path, text string) {
		if bad {
			e.Faults = append(e.Faults, gozzard.Fault{Path: path, Text: text})
		}
	}
	fault(req.TTL <= 0 || req.TTL > MaxTTL, "ttl", "must be above 0 and at most 30 days")
	fault(req.Uses < 1 || req.Uses > MaxUses, "uses", "must be from 1 to 100000")
	fault(req.Cloud < 0, "cloud", "must be 0 or more")
	fault(len(req.Nets) > maxNets, "cidr", "at most 64 are allowed")
	fault(req.Agent != "" && req.Uses != 1, "uses", "must be 1 for a token for one agent")
	var known AgentRecord
	if req.Agent != "" { // the caller must not learn of an agent that it may not enrol
		m, ok := r.member(req.Agent)
		unknown := !ok || m.State == StateRemoved || !MayEnrol(caller.Rights, m.Cloud, hostNets(m.IPs))
		fault(unknown, "agent", "no such agent is enrolled")
		req.Cloud, known = m.Cloud, m
	}
	if len(e.Faults) > 0 {
		return Token{}, TokenRecord{}, e
	}

	// Check the rights of the caller.
	switch {
	case mayCreate(caller.Rights, req.Cloud, req.Nets, req.Agent, &known):
	case req.Agent == "" || known.State == StatePending || mayExclude(caller.Rights, known.Cloud, hostNets(known.IPs)):
		return Token{}, TokenRecord{}, gozzard.Errorf(gozzard.ErrUserForbidden,
			"creating enrolment tokens for these hosts is not permitted")
	default:
		return Token{}, TokenRecord{}, gozzard.Errorf(gozzard.ErrUserForbidden,
			"agent %s is %s: a token for it needs the role admin on all of its addresses", req.Agent, known.State)
	}

	// Create the token and store it.
	now := r.o.Now()
	t := newToken(r.o.Authority.Pin())
	rec := TokenRecord{
		ID: t.ID, Digest: sha256.Sum256([]byte(t.Secret)), Created: now, Expires: now.Add(req.TTL), Uses: req.Uses,
		Cloud: req.Cloud, Nets: req.Nets, Approve: req.Approve, Agent: req.Agent,
		CreatedBy: caller.App + "/" + caller.User,
	}
	if err := r.askReturn(ctx, caller, t, rec); err != nil {
		return Token{}, TokenRecord{}, err
	}
	act := AuditEntry{At: now, Caller: caller, What: auditCreateToken + t.ID}
	if err := r.o.Store.AddEnrolToken(ctx, rec, act); err != nil {
		return Token{}, TokenRecord{}, err
	}
	return t, rec, nil
}

// Tokens lists the tokens for hosts that the caller may enrol, newest first.
func (r *Registry) Tokens(ctx context.Context, caller gozzard.Caller) ([]TokenRecord, error) {
	list, err := r.o.Store.EnrolTokens(ctx)
	if err != nil {
		return nil, err
	}
	kept := list[:0]
	for _, t := range list {
		nets := t.Nets
		if m, ok := r.member(t.Agent); ok { // it names the agent
			nets = hostNets(m.IPs)
		}
		if MayEnrol(caller.Rights, t.Cloud, nets) {
			kept = append(kept, t)
		}
	}
	return kept, nil
}

// RevokeToken revokes a token. Hosts that it enrolled stay members.
func (r *Registry) RevokeToken(ctx context.Context, caller gozzard.Caller, id string) error {
	list, err := r.Tokens(ctx, caller)
	if err != nil {
		return err
	}
	for _, t := range list {
		if t.ID == id {
			act := AuditEntry{At: r.o.Now(), Caller: caller, What: auditRevokeToken + id}
			return r.o.Store.RevokeEnrolToken(ctx, id, act)
		}
	}
	return gozzard.Errorf(gozzard.ErrNotFound, "there is no such token")
}
