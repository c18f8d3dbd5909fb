package enrol

import (
	"context"
	"errors"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/approval"
)

// askReturn asks a second person about a token for a revoked host. The caller gets the token now; it has no effect
// before the approval, which stores it.
func (r *Registry) askReturn(ctx context.Context, caller gozzard.Caller, t Token, rec TokenRecord) error {
	m, _ := r.member(rec.Agent)
	if r.o.Ask == nil || rec.Agent == "" || m.State != StateRevoked {
		return nil
	}

	err := r.o.Ask(ctx, caller, rec)
	var held *approval.Held
	if errors.As(err, &held) {
		held.Secret = t.String()
	}
	return err
}

// checkReturn rejects a token from before the revocation of a host: a second person has not approved it.
func (r *Registry) checkReturn(t *TokenRecord, known *AgentRecord) error {
	if r.o.Ask != nil && known.State == StateRevoked && t.Created.Before(known.Changed) {
		return errToken("made before the host was revoked, and not approved by a second person")
	}
	return nil
}

// AddApproved stores a token that a second person approved. It is valid from now on, as long as the asker wanted. The
// asker must still be allowed to make it, and the host must still be revoked.
func (r *Registry) AddApproved(ctx context.Context, asker gozzard.Caller, t TokenRecord) error {
	m, known := r.member(t.Agent)
	if !known || m.State != StateRevoked {
		return gozzard.Errorf(gozzard.ErrConflict, "agent %s is not revoked any more", t.Agent)
	}
	if !MayEnrol(asker.Rights, t.Cloud, t.Nets) {
		return gozzard.Errorf(gozzard.ErrUserForbidden, "%s may not make this token any more", asker.User)
	}

	now := r.o.Now()
	t.Created, t.Expires, t.Used = now, now.Add(t.Expires.Sub(t.Created)), 0
	return r.o.Store.AddEnrolToken(ctx, t, AuditEntry{At: now, Caller: asker, What: auditCreateToken + t.ID})
}
