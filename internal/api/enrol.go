package api

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"errors"
	"net/http"
	"net/netip"
	"slices"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/enrol"
	"github.com/gozzard/gozzard/internal/strictjson"
)

// maxEnrolBody bounds what is read of somebody who is not known yet.
const maxEnrolBody = 32 << 10

// admitHost lets those in who can prove themselves later: a token must not be sent in the clear, and a certificate
// is only shown over TLS.
func (a *api) admitHost(r *http.Request) error {
	if a.Enrol == nil || r.TLS == nil || r.TLS.Version < tls.VersionTLS13 {
		return gozzard.Errorf(gozzard.ErrUnauthenticated,
			"hosts are enrolled over TLS 1.3 only, by a server that enrols")
	}
	return nil
}

// readEnrol reads a short body strictly.
func readEnrol(w http.ResponseWriter, r *http.Request, out any) error {
	return readStrict(w, r, maxEnrolBody, out)
}

// readStrict reads a body strictly.
func readStrict(w http.ResponseWriter, r *http.Request, limit int64, out any) error {
	body, err := readUpTo(w, r, limit)
	if err != nil {
		return err
	}
	if _, err := strictjson.Parse(body); err != nil { // depth, doubled keys, what is not text
		return err
	}

	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()

	if err := dec.Decode(out); err != nil {
		return &gozzard.Error{Kind: gozzard.ErrInvalid,
			Message: "the body is not a request of this kind: " + clip(err.Error()), Cause: err}
	}

	return nil
}

// postJoin makes a host a member. The token in the body is its credential.
func (a *api) postJoin(w http.ResponseWriter, r *http.Request, _ gozzard.Caller) error {
	var req enrol.JoinRequest
	if err := readEnrol(w, r, &req); err != nil {
		return err
	}

	from, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return err
	}

	got, err := a.Enrol.Join(r.Context(), from.Addr().Unmap(), req)
	if err != nil {
		return err
	}

	return answer(w, http.StatusOK, got)
}

// postRenew gives a member a new certificate. The certificate of the connection is its credential.
func (a *api) postRenew(w http.ResponseWriter, r *http.Request, _ gozzard.Caller) error {
	if len(r.TLS.PeerCertificates) == 0 {
		return gozzard.Errorf(gozzard.ErrUnauthenticated, "a certificate is needed")
	}
	var req enrol.RenewRequest
	if err := readEnrol(w, r, &req); err != nil {
		return err
	}
	got, err := a.Enrol.Renew(r.Context(), r.TLS, req)
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, got)
}

// desk gives the desk to callers who may use it.
func (a *api) desk(caller gozzard.Caller) (*enrol.Registry, error) {
	if !caller.Rights.Has(gozzard.RoleEnroller) {
		return nil, gozzard.Errorf(gozzard.ErrUserForbidden, "enrolling hosts is not permitted")
	}
	if a.Enrol == nil {
		return nil, gozzard.Errorf(gozzard.ErrConflict,
			"this server serves agents of its own machine only: start it with --agent-listen on an address of the network, or --enrol")
	}
	return a.Enrol, nil
}

type enrolTokenRequest struct {
	TTL     string          `json:"ttl"`
	Uses    *int            `json:"uses"`
	Cloud   int             `json:"cloud"`
	CIDRs   []netip.Prefix  `json:"cidrs"`
	Approve bool            `json:"approve"`
	Agent   gozzard.AgentID `json:"agent"`
}

type enrolTokenBody struct {
	ID        string          `json:"id"`
	Token     string          `json:"token,omitempty"` // told once
	State     string          `json:"state"`
	Created   time.Time       `json:"created"`
	Expires   time.Time       `json:"expires"`
	Uses      int             `json:"uses"`
	Used      int             `json:"used"`
	Cloud     int             `json:"cloud"`
	CIDRs     []netip.Prefix  `json:"cidrs,omitempty"`
	Approve   bool            `json:"approve"`
	Agent     gozzard.AgentID `json:"agent,omitempty"`
	CreatedBy string          `json:"created_by"`
}

func renderEnrolToken(t *enrol.TokenRecord, now time.Time) enrolTokenBody {
	state := "valid"
	switch {
	case t.Revoked:
		state = "revoked"
	case t.Used >= t.Uses:
		state = "used"
	case !now.Before(t.Expires):
		state = "over"
	}
	return enrolTokenBody{ID: t.ID, State: state, Created: t.Created.UTC(), Expires: t.Expires.UTC(), Uses: t.Uses,
		Used: t.Used, Cloud: t.Cloud, CIDRs: t.Nets,
		Approve: t.Approve, Agent: t.Agent, CreatedBy: t.CreatedBy}
}

func (a *api) postEnrolToken(w http.ResponseWriter, r *http.Request, caller gozzard.Caller) error {
	desk, err := a.desk(caller)
	if err != nil {
		return err
	}

	var in enrolTokenRequest
	if err := readEnrol(w, r, &in); err != nil {
		return err
	}

	wish := enrol.TokenRequest{TTL: enrol.DefaultTTL, Uses: 1, Cloud: in.Cloud, Nets: in.CIDRs, Approve: in.Approve,
		Agent: in.Agent}

	if in.Uses != nil {
		wish.Uses = *in.Uses
	}

	if in.TTL != "" {
		if wish.TTL, err = time.ParseDuration(in.TTL); err != nil {
			return &gozzard.Error{Kind: gozzard.ErrInvalid,
				Faults: []gozzard.Fault{{Path: "ttl", Text: "must be a duration such as 1h30m"}}}
		}
	}

	if slices.ContainsFunc(wish.Nets, func(n netip.Prefix) bool { return !n.IsValid() }) {
		return &gozzard.Error{Kind: gozzard.ErrInvalid,
			Faults: []gozzard.Fault{{Path: "cidrs", Text: "must be networks such as 10.0.0.0/8"}}}
	}

	token, rec, err := desk.CreateToken(r.Context(), caller, wish)
	if err != nil {
		return err
	}

	body := renderEnrolToken(&rec, time.Now())
	body.Token = token.String()
	return answer(w, http.StatusCreated, body)
}

func (a *api) getEnrolTokens(w http.ResponseWriter, r *http.Request, caller gozzard.Caller) error {
	desk, err := a.desk(caller)
	if err != nil {
		return err
	}

	list, err := desk.Tokens(r.Context(), caller)
	if err != nil {
		return err
	}

	tokens := make([]enrolTokenBody, 0, len(list))
	for i := range list {
		tokens = append(tokens, renderEnrolToken(&list[i], time.Now()))
	}

	return answer(w, http.StatusOK, map[string]any{"tokens": tokens})
}

func (a *api) deleteEnrolToken(w http.ResponseWriter, r *http.Request, caller gozzard.Caller) error {
	desk, err := a.desk(caller)
	if err != nil {
		return err
	}
	if err := desk.RevokeToken(r.Context(), caller, r.PathValue("id")); err != nil {
		return err
	}
	return answer(w, http.StatusOK, map[string]any{"id": r.PathValue("id"), "state": "revoked"})
}

type memberBody struct {
	Agent    gozzard.AgentID `json:"agent"`
	Cloud    int             `json:"cloud"`
	IPs      []netip.Addr    `json:"ips"`
	Hostname string          `json:"hostname"`
	State    enrol.State     `json:"state"`
	Reason   string          `json:"reason,omitempty"`
	NotAfter time.Time       `json:"not_after"`
	Enrolled time.Time       `json:"enrolled"`
	Token    string          `json:"token"`
}

func renderMember(m *enrol.AgentRecord) memberBody {
	return memberBody{Agent: m.Agent, Cloud: m.Cloud, IPs: m.IPs, Hostname: m.Hostname, State: m.State,
		Reason: m.Reason, NotAfter: m.NotAfter.UTC(),
		Enrolled: m.Enrolled.UTC(), Token: m.Token}
}

// getMembers lists the members on hosts that the caller sees. Without enrolment there is none.
func (a *api) getMembers(w http.ResponseWriter, _ *http.Request, caller gozzard.Caller) error {
	list := []memberBody{}

	if a.Enrol != nil {
		for _, m := range a.Enrol.Agents() {
			addrs := make([]gozzard.HostAddr, 0, len(m.IPs))
			for _, ip := range m.IPs {
				addrs = append(addrs, gozzard.HostAddr{Cloud: m.Cloud, IP: ip})
			}
			if caller.Rights.SeesHost(addrs) {
				list = append(list, renderMember(&m))
			}
		}
	}

	return answer(w, http.StatusOK, map[string]any{"agents": list})
}

// putMember approves, revokes or removes a member.
func (a *api) putMember(w http.ResponseWriter, r *http.Request, caller gozzard.Caller) error {
	desk, err := a.desk(caller)
	if err != nil {
		return err
	}

	var in struct {
		State enrol.State `json:"state"`
	}
	if err := readEnrol(w, r, &in); err != nil {
		return err
	}

	agent := gozzard.AgentID(r.PathValue("agent"))
	if agent.Validate() != nil {
		return &gozzard.Error{Kind: gozzard.ErrInvalid, Message: "this is no agent id", Cause: errors.New("malformed")}
	}

	m, err := desk.SetState(r.Context(), caller, agent, in.State)
	if err != nil {
		return err
	}

	return answer(w, http.StatusOK, renderMember(&m))
}
