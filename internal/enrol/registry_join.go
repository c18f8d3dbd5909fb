package enrol

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/signing"
)

// JoinRequest is the request of a host to become a member.
type JoinRequest struct {
	Token    string          `json:"token"` // id.secret
	Agent    gozzard.AgentID `json:"agent"`
	IPs      []netip.Addr    `json:"ips"`
	Machine  string          `json:"machine,omitempty"`
	Hostname string          `json:"hostname,omitempty"`
	CSR      string          `json:"csr"` // PEM

	// Moves says that the host can have several authorities, so that it moves to the next one. It is a header of the
	// request, because servers before it reject unknown fields.
	Moves bool `json:"-"`

	// Trusts is the key of the server that the host has obeyed so far, "" if there is none. It is a header, too. A host
	// that would reject the key of this server is refused before its token is used.
	Trusts string `json:"-"`
}

// RenewRequest is the request of a member for a new certificate.
type RenewRequest struct {
	Machine string `json:"machine,omitempty"`
	CSR     string `json:"csr"` // PEM

	Moves bool `json:"-"` // as in JoinRequest
}

// Answer is the server's answer to both requests.
type Answer struct {
	Agent       gozzard.AgentID `json:"agent"`
	Cloud       int             `json:"cloud"`
	State       State           `json:"state"`
	Certificate string          `json:"certificate"` // PEM
	Authority   string          `json:"authority"`   // PEM
	Address     string          `json:"address"`     // of the fabric
	Key         string          `json:"key"`         // with which the server signs commands
	IPs         []netip.Addr    `json:"ips"`         // the addresses of the host; older servers do not send them

	// Authorities are all authorities that are valid now, in PEM, for a host that can have several.
	Authorities string `json:"authorities,omitempty"`

	// Servers are all servers that the host may use. None: there is no other than this one.
	Servers []gozzard.ServerAddress `json:"servers,omitempty"`
}

// Join makes a host a member if its token is valid. from is the address that the request came from.
func (r *Registry) Join(ctx context.Context, from netip.Addr, req JoinRequest) (Answer, error) {
	// Check the request.
	id, secret, csr, err := r.readJoin(&req)
	if err != nil {
		return Answer{}, r.reject("join", req.Agent, from, err)
	}
	serial, err := newSerial()
	if err != nil {
		return Answer{}, err
	}

	// Check the token and store the member.
	r.enrolling.Lock()
	defer r.enrolling.Unlock()
	now := r.o.Now()
	decide := func(t TokenRecord, known AgentRecord) (AgentRecord, error) {
		if err := t.check(secret, from, req.Agent, now); err != nil {
			return AgentRecord{}, err
		}
		if !carries(ctx, t.Cloud) || known.Agent != "" && !carries(ctx, known.Cloud) {
			return AgentRecord{}, errToken("of a cloud area that the relay on the way does not serve")
		}
		if err := r.checkReturn(&t, &known); err != nil {
			return AgentRecord{}, err
		}
		if err := r.checkJoin(&t, &known, &req); err != nil {
			return AgentRecord{}, err
		}
		if err := r.checkTrusts(req.Trusts); err != nil {
			return AgentRecord{}, err
		}
		return r.joined(&t, &known, &req, serialText(serial), now), nil
	}
	rec, err := r.o.Store.Enrol(ctx, id, req.Agent, decide, AuditEntry{
		At: now, What: auditJoin + string(req.Agent),
		Caller: gozzard.Caller{App: "enrolment", User: "token " + id},
	})
	if err != nil {
		return Answer{}, r.reject("join", req.Agent, from, err)
	}

	// Disconnect the agent: a client that still uses an old certificate of it loses its connection.
	r.mu.Lock()
	r.put(rec)
	delete(r.quarantines, rec.Agent)
	delete(r.certificates, rec.Agent)
	cut := r.cut
	r.mu.Unlock()
	cut(rec.Agent, rec.Cloud)

	r.o.Log.Info("host enrolled", "agent", rec.Agent, "cloud", rec.Cloud, "state", string(rec.State),
		"token", id, "from", from.String())
	return r.answer(ctx, rec, csr, serial, req.Moves)
}

// checkTrusts returns why a host that obeys a key would reject the key of this server, nil if it would not.
func (r *Registry) checkTrusts(text string) error {
	if text == "" {
		return nil
	}
	have, err := signing.ParseKey(text)
	if err != nil {
		return invalid("trusts", "the key that this host obeys cannot be read: "+err.Error())
	}
	if err := have.Follows(r.o.Key()); err != nil {
		return gozzard.Errorf(gozzard.ErrConflict, "%v. The token was not used. To change the server of this host, remove "+
			"server.key in its state folder", err)
	}
	return nil
}

// checkJoin returns why a valid token does not enrol this host, nil if it does. known is the zero record for a new
// agent. The creator of the token needs the right at this moment: the state of the agent and the rights of the creator
// may have changed since.
func (r *Registry) checkJoin(t *TokenRecord, known *AgentRecord, req *JoinRequest) error {
	// The token.
	rights := r.o.Rights(t.creator())
	switch {
	case !mayCreate(rights, t.Cloud, t.Nets, t.Agent, known):
		return errToken("its creator may not enrol this host now")
	case t.Agent == "" && known.Agent != "":
		return gozzard.Errorf(gozzard.ErrConflict, "this agent is already enrolled; if it lost its key, an admin can "+
			"enrol it again with a token for it alone: gozzard token create --agent ID")
	case known.State == StateRemoved:
		return gozzard.Errorf(gozzard.ErrConflict,
			"this agent was removed for ever; give the host a new state folder")
	case known.Agent == "":
		if err := r.checkNewID(req.Agent); err != nil {
			return err
		}
	}

	// The addresses. A known agent keeps those that it has.
	for _, ip := range req.IPs {
		if !t.isInside(ip) {
			return invalid("ips", ip.String()+" is outside of the networks of this token: join with an address inside "+
				"of them (--ip), or use a token for this network")
		}
	}
	if known.Agent != "" {
		return r.checkAddressesFree(rights, known.Agent, known.Cloud, known.IPs)
	}
	return r.checkAddressesFree(rights, req.Agent, t.Cloud, req.IPs)
}

// checkNewID returns why a new agent cannot have an id. Members keep the ids that they have.
func (r *Registry) checkNewID(id gozzard.AgentID) error {
	const remedy = ": remove agent-id and agent-id.sha256 from the state folder and join again, then the agent makes an id; " +
		"or write another id into agent-id and run there: sha256sum agent-id > agent-id.sha256"
	if err := id.CheckNew(); err != nil {
		return invalid("agent", err.Error()+remedy)
	}

	r.mu.Lock()
	other := r.folded[strings.ToLower(string(id))]
	r.mu.Unlock()
	if other != "" {
		return gozzard.Errorf(gozzard.ErrConflict, "agent id %q differs from the id of an enrolled agent only by capital and "+
			"small letters%s", string(id), remedy)
	}
	return nil
}

// joined is the record of an agent that joins. The addresses of a known agent do not change.
func (r *Registry) joined(t *TokenRecord, known *AgentRecord, req *JoinRequest, serial string, now time.Time) AgentRecord {
	a := AgentRecord{
		Agent: req.Agent, Cloud: t.Cloud, IPs: req.IPs, Machine: req.Machine, Hostname: req.Hostname,
		State: StateActive, Serial: serial, NotAfter: now.Add(r.o.Authority.o.Life),
		Enrolled: now, Changed: now, Token: t.ID,
	}
	if known.Agent != "" {
		a.Cloud, a.IPs = known.Cloud, known.IPs
	}
	if t.Approve {
		a.State = StatePending
	}
	return a
}

func invalid(path, text string) error {
	return &gozzard.Error{Kind: gozzard.ErrInvalid, Faults: []gozzard.Fault{{Path: path, Text: text}}}
}

// readJoin checks the form of a request and returns the parts of its token and the certificate request.
func (r *Registry) readJoin(req *JoinRequest) (id, secret string, csr *x509.CertificateRequest, err error) {
	// The token. The host sends it without the pin.
	t, err := ParseToken(tokenVersion + "." + req.Token + "." + r.o.Authority.Pin())
	if err != nil {
		return "", "", nil, errToken("not a token")
	}

	// The agent and its addresses.
	if err := req.Agent.Validate(); err != nil {
		return "", "", nil, invalid("agent", err.Error())
	}
	if len(req.IPs) == 0 || len(req.IPs) > gozzard.MaxHostAddrs {
		return "", "", nil, invalid("ips", "must have 1 to 16 addresses")
	}

	for i, ip := range req.IPs {
		if req.IPs[i], err = gozzard.ParseIP(ip.String()); err != nil {
			return "", "", nil, invalid("ips", err.Error())
		}
		if slices.Contains(req.IPs[:i], req.IPs[i]) {
			return "", "", nil, invalid("ips", req.IPs[i].String()+" is in the list twice")
		}
	}

	// The machine and its key.
	if len(req.Machine) > maxMachine || len(req.Hostname) > maxHostname {
		return "", "", nil, invalid("machine", "is too long")
	}
	if csr, err = readCSR(req.CSR); err != nil {
		return "", "", nil, invalid("csr", err.Error())
	}

	return t.ID, t.Secret, csr, nil
}

// Renew issues a certificate for a new key to a member that has authenticated with its current certificate. from is the
// address that the request came from.
func (r *Registry) Renew(
	ctx context.Context, from netip.Addr, cs *tls.ConnectionState, req RenewRequest,
) (Answer, error) {
	// Check the request.
	denied := gozzard.Errorf(gozzard.ErrUnauthenticated, "this host is not a member of the fleet, or not any more")
	id, err := r.o.Authority.identify(cs, renewGrace)
	if err != nil {
		_ = r.reject("certificate", "", from, err)
		return Answer{}, denied
	}
	if !carries(ctx, id.cloud) {
		_ = r.reject(RuleRelayArea, id.agent, from, errRelayArea)
		return Answer{}, denied
	}
	csr, err := readCSR(req.CSR)
	if err != nil {
		return Answer{}, invalid("csr", err.Error())
	}
	serial, err := newSerial()
	if err != nil {
		return Answer{}, err
	}

	// Check the member.
	r.enrolling.Lock()
	defer r.enrolling.Unlock()
	r.mu.Lock()
	rule, err := r.checkMember(id, req.Machine)
	r.mu.Unlock()
	if err != nil {
		_ = r.reject(rule, id.agent, from, err)
		return Answer{}, denied
	}

	// Store the new certificate.
	rec, err := r.o.Store.ChangeMember(ctx, id.agent, func(a AgentRecord) (AgentRecord, error) {
		a.Previous, a.Serial = id.serial, serialText(serial)
		a.NotAfter, a.Restored = r.o.Now().Add(r.o.Authority.o.Life), time.Time{}
		return a, nil
	}, AuditEntry{At: r.o.Now(), What: auditRenew + string(id.agent), Caller: gozzard.Caller{App: "enrolment"}})
	if err != nil {
		return Answer{}, err
	}

	// Use it from now on. A quarantine of the meantime, which is not stored yet, stays in force.
	r.mu.Lock()
	if m := r.members[rec.Agent]; m.State != rec.State {
		rec.State, rec.Reason = m.State, m.Reason
	}
	delete(r.certificates, rec.Agent)
	r.put(rec)
	r.noteAuthority(id)
	r.mu.Unlock()
	return r.answer(ctx, rec, csr, serial, req.Moves)
}

// answer issues the certificate. A host behind a relay gets the address of the relay.
func (r *Registry) answer(ctx context.Context, rec AgentRecord, csr *x509.CertificateRequest, serial *big.Int, moves bool) (Answer,
	error) {
	der, err := r.o.Authority.sign(csr, rec.Agent, rec.Cloud, serial, moves)
	if err != nil {
		return Answer{}, err
	}
	out := Answer{
		Agent: rec.Agent, Cloud: rec.Cloud, State: rec.State,
		Certificate: string(certPEM(der)), Authority: string(r.o.Authority.PEM()),
		Address: r.o.Address(), Key: r.o.Key().String(), IPs: rec.IPs,
	}
	if relay := relayOf(ctx); relay != nil {
		out.Address = relay.Agents
	}
	if moves {
		out.Authorities = string(r.o.Authority.Bundle())
	}
	if r.o.Servers != nil {
		out.Servers = r.o.Servers(rec.Cloud)
	}
	return out, nil
}

// readCSR parses a certificate request. Only its key is used; the server decides about the identity.
func readCSR(text string) (*x509.CertificateRequest, error) {
	block, rest := pem.Decode([]byte(text))
	if block == nil || block.Type != "CERTIFICATE REQUEST" || len(rest) > 0 {
		return nil, errors.New("must be one certificate request in PEM")
	}

	csr, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return nil, errors.New("cannot be read")
	}
	if key, ok := csr.PublicKey.(*ecdsa.PublicKey); !ok || key.Curve != elliptic.P256() {
		return nil, errors.New("must be for a key on P-256")
	}
	if csr.CheckSignature() != nil {
		return nil, errors.New("is not signed with the key that it is for")
	}

	return csr, nil
}
