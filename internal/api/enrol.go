package api

import (
	"errors"
	"math"
	"net/http"
	"net/netip"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/internal/audit"
	"github.com/gozzard/gozzard/internal/auth"
	"github.com/gozzard/gozzard/internal/enrol"
	"github.com/gozzard/gozzard/internal/strictjson"
)

// postJoin enrols a host. The token in the body is its credential, so a wrong one counts as a failed login.
func (a *api) postJoin(w http.ResponseWriter, r *http.Request, _ gozzard.Caller) error {
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return err
	}

	var got enrol.Answer
	err = auth.Login(r, func() (string, error) {
		var req enrol.JoinRequest
		if err := readValue(w, r, maxShortBody, &req); err != nil {
			return "", err
		}
		req.Moves = r.Header.Get(enrol.MovesHeader) != ""
		req.Trusts = r.Header.Get(enrol.TrustsHeader)
		got, err = a.Enrol.Join(r.Context(), from.Addr().Unmap(), req)
		return string(req.Agent), err
	})
	if err != nil {
		return refusedHost(err, "join")
	}
	return answer(w, http.StatusOK, got)
}

// postRenew renews the certificate of a host. The certificate of the connection is its credential, so a wrong one counts
// as a failed login.
func (a *api) postRenew(w http.ResponseWriter, r *http.Request, _ gozzard.Caller) error {
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return err
	}

	var got enrol.Answer
	err = auth.Login(r, func() (string, error) {
		if len(r.TLS.PeerCertificates) == 0 {
			return "", gozzard.Errorf(gozzard.ErrUnauthenticated, "this needs the certificate of an enrolled host")
		}
		var req enrol.RenewRequest
		if err := readValue(w, r, maxShortBody, &req); err != nil {
			return "", err
		}
		req.Moves = r.Header.Get(enrol.MovesHeader) != ""
		got, err = a.Enrol.Renew(r.Context(), from.Addr().Unmap(), r.TLS, req)
		return string(got.Agent), err
	})
	if err != nil {
		return refusedHost(err, "renew")
	}
	return answer(w, http.StatusOK, got)
}

// refusedHost marks an error for the audit: a host was refused. Faults of the server are no refusals.
func refusedHost(err error, what string) error {
	switch gozzard.KindOf(err) {
	case gozzard.ErrInternal, gozzard.ErrUnavailable, gozzard.ErrStorageFull:
		return err
	}
	return gozzard.Refused(err, gozzard.Refusal{Act: audit.ActEnrol, About: what})
}

// registry is the registry of enrolled hosts, for callers with the role enroller.
func (a *api) registry(caller gozzard.Caller) (*enrol.Registry, error) {
	return a.registryFor(caller, gozzard.Errorf(gozzard.ErrUserForbidden, "this needs the role enroller"))
}

// registryFor is the registry of enrolled hosts for a request that needs the role enroller at least. needs is the answer
// to callers without it: what this request needs.
func (a *api) registryFor(caller gozzard.Caller, needs error) (*enrol.Registry, error) {
	if !caller.Rights.Has(gozzard.RoleEnroller) {
		return nil, needs
	}
	if a.Enrol == nil {
		return nil, gozzard.Errorf(gozzard.ErrConflict, "this server serves only agents on its own machine: "+
			"start it with --agent-listen on an address of the network, or --enrol")
	}
	return a.Enrol, nil
}

// postEnrolToken makes a token with which hosts enrol. No other answer shows its text.
func (a *api) postEnrolToken(w http.ResponseWriter, r *http.Request, caller gozzard.Caller) error {
	registry, err := a.registry(caller)
	if err != nil {
		return err
	}
	req, err := readTokenRequest(w, r)
	if err != nil {
		return err
	}

	token, rec, err := registry.CreateToken(r.Context(), caller, req)
	if err != nil {
		return err
	}

	out := renderEnrolToken(&rec, time.Now())
	out.Token = token.String()
	return answer(w, http.StatusCreated, out)
}

// readTokenRequest reads a client.EnrolTokenRequest. The registry checks the ranges.
func readTokenRequest(w http.ResponseWriter, r *http.Request) (req enrol.TokenRequest, err error) {
	err = readFields[client.EnrolTokenRequest](w, r, maxShortBody, func(root *strictjson.Value) {
		ttl, uses, cloud := root.Get("ttl"), root.Get("uses"), root.Get("cloud")
		cidrs, approve, agent := root.Get("cidrs"), root.Get("approve"), root.Get("agent")

		req = enrol.TokenRequest{TTL: enrol.DefaultTTL, Uses: int(uses.OptInt(1, math.MinInt32, math.MaxInt32)),
			Cloud:   int(cloud.OptInt(0, math.MinInt32, math.MaxInt32)),
			Approve: approve.OptBool(false), Agent: gozzard.AgentID(agent.OptStr())}
		if text := ttl.OptStr(); text != "" {
			d, err := time.ParseDuration(text)
			if err != nil {
				ttl.Fault("must be a duration such as 1h30m")
			}
			req.TTL = d
		}
		cidrs.OptList(maxList, func(e *strictjson.Value) {
			n, err := netip.ParsePrefix(e.Str())
			if err != nil {
				e.Fault("must be a network such as 10.0.0.0/8")
			}
			req.Nets = append(req.Nets, n)
		})
	})
	return req, err
}

// getEnrolTokens lists the tokens that the caller may make, newest first.
func (a *api) getEnrolTokens(w http.ResponseWriter, r *http.Request, caller gozzard.Caller) error {
	registry, err := a.registry(caller)
	if err != nil {
		return err
	}
	tokens, err := registry.Tokens(r.Context(), caller)
	if err != nil {
		return err
	}

	list := client.EnrolTokenList{Tokens: make([]client.EnrolToken, 0, len(tokens))}
	for i := range tokens {
		list.Tokens = append(list.Tokens, renderEnrolToken(&tokens[i], time.Now()))
	}
	return answer(w, http.StatusOK, list)
}

// deleteEnrolToken revokes a token.
func (a *api) deleteEnrolToken(w http.ResponseWriter, r *http.Request, caller gozzard.Caller) error {
	registry, err := a.registry(caller)
	if err != nil {
		return err
	}
	id := r.PathValue("id")
	if err := registry.RevokeToken(r.Context(), caller, id); err != nil {
		return err
	}
	return answer(w, http.StatusOK, client.RevokedEnrolToken{ID: id, State: "revoked"})
}

func renderEnrolToken(t *enrol.TokenRecord, now time.Time) client.EnrolToken {
	state := "valid"
	switch {
	case t.Revoked:
		state = "revoked"
	case t.Used >= t.Uses:
		state = "used"
	case !now.Before(t.Expires):
		state = "over"
	}
	return client.EnrolToken{ID: t.ID, State: state, Created: client.At(t.Created), Expires: client.At(t.Expires), Uses: t.Uses,
		Used: t.Used, Cloud: t.Cloud, CIDRs: words(t.Nets), Approve: t.Approve, Agent: t.Agent, CreatedBy: t.CreatedBy}
}

// getMembers lists the enrolled agents that the caller may see.
func (a *api) getMembers(w http.ResponseWriter, _ *http.Request, caller gozzard.Caller) error {
	list := client.MemberList{Agents: []client.Member{}}
	if a.Enrol == nil {
		return answer(w, http.StatusOK, list)
	}

	for _, m := range a.Enrol.Agents() {
		if caller.Rights.SeesHost(memberRef(&m)) {
			list.Agents = append(list.Agents, renderMember(&m))
		}
	}

	return answer(w, http.StatusOK, list)
}

// putMember approves, revokes or removes an enrolled agent.
func (a *api) putMember(w http.ResponseWriter, r *http.Request, caller gozzard.Caller) error {
	registry, err := a.registryFor(caller, enrol.ErrMemberNeedsAdmin())
	if err != nil {
		return err
	}
	var in client.MemberChange
	if err := readValue(w, r, maxShortBody, &in); err != nil {
		return err
	}
	agent, err := memberOf(r)
	if err != nil {
		return err
	}

	m, err := registry.SetState(r.Context(), caller, agent, enrol.State(in.State))
	if err != nil {
		return err
	}
	if m.State == enrol.StateRemoved {
		if err := a.forgetMember(r.Context(), caller, memberRef(&m)); err != nil {
			return err
		}
	}
	return answer(w, http.StatusOK, renderMember(&m))
}

// putMemberAddrs changes the addresses of an enrolled agent.
func (a *api) putMemberAddrs(w http.ResponseWriter, r *http.Request, caller gozzard.Caller) error {
	registry, err := a.registryFor(caller, gozzard.Errorf(gozzard.ErrUserForbidden,
		"this needs the role admin on all addresses of the host"))
	if err != nil {
		return err
	}
	agent, err := memberOf(r)
	if err != nil {
		return err
	}

	var add, remove []netip.Addr
	err = readFields[client.MemberAddrsChange](w, r, maxShortBody, func(root *strictjson.Value) {
		added, removed := root.Get("add"), root.Get("remove")
		add, remove = readIPs(&added), readIPs(&removed)
	})
	if err != nil {
		return err
	}

	m, err := registry.ChangeAddrs(r.Context(), caller, agent, add, remove)
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, renderMember(&m))
}

func readIPs(v *strictjson.Value) (list []netip.Addr) {
	v.OptList(gozzard.MaxHostAddrs, func(e *strictjson.Value) {
		ip, err := gozzard.ParseIP(e.Str())
		if err != nil {
			e.Fault("must be the IP address of one host")
			return
		}
		list = append(list, ip)
	})
	return list
}

// memberOf is the agent in the path of a request.
func memberOf(r *http.Request) (gozzard.AgentID, error) {
	agent := gozzard.AgentID(r.PathValue("agent"))
	if agent.Validate() != nil {
		return "", &gozzard.Error{Kind: gozzard.ErrInvalid, Message: "the path has no valid agent id",
			Cause: errors.New("malformed")}
	}
	return agent, nil
}

func renderMember(m *enrol.AgentRecord) client.Member {
	return client.Member{Agent: m.Agent, Cloud: m.Cloud, IPs: words(m.IPs), Hostname: m.Hostname,
		State: string(m.State), Reason: m.Reason, NotAfter: client.At(m.NotAfter), Enrolled: client.At(m.Enrolled),
		Token: m.Token}
}
