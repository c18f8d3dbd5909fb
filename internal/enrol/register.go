package enrol

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"net/netip"
	"time"

	"github.com/gozzard/gozzard"
)

// JoinRequest is what a host says to become a member.
type JoinRequest struct {
	Token    string          `json:"token"` // id.secret
	Agent    gozzard.AgentID `json:"agent"`
	IPs      []netip.Addr    `json:"ips"`
	Machine  string          `json:"machine,omitempty"`
	Hostname string          `json:"hostname,omitempty"`
	CSR      string          `json:"csr"` // PEM
}

// RenewRequest is what a member says to get a new certificate.
type RenewRequest struct {
	Machine string `json:"machine,omitempty"`
	CSR     string `json:"csr"` // PEM
}

// Answer is what a host needs to be a member.
type Answer struct {
	Agent       gozzard.AgentID `json:"agent"`
	Cloud       int             `json:"cloud"`
	State       State           `json:"state"`
	Certificate string          `json:"certificate"` // PEM
	Authority   string          `json:"authority"`   // PEM
	Address     string          `json:"address"`     // of the fabric
	Key         string          `json:"key"`         // which the server signs commands with
}

// TokenRequest is a token as somebody wants it.
type TokenRequest struct {
	TTL     time.Duration
	Uses    int
	Cloud   int
	Nets    []netip.Prefix
	Approve bool
	Agent   gozzard.AgentID
}

// CreateToken makes a token. Its text is told this once.
func (d *Registry) CreateToken(ctx context.Context, caller gozzard.Caller, w TokenRequest) (Token, TokenRecord, error) {
	e := &gozzard.Error{Kind: gozzard.ErrInvalid}
	fault := func(bad bool, path, text string) {
		if bad {
			e.Faults = append(e.Faults, gozzard.Fault{Path: path, Text: text})
		}
	}

	fault(w.TTL <= 0 || w.TTL > MaxTTL, "ttl", "must be above 0 and at most 30 days")
	fault(w.Uses < 1 || w.Uses > MaxUses, "uses", "must be from 1 to 100000")
	fault(w.Cloud < 0, "cloud", "must be 0 or more")
	fault(len(w.Nets) > maxNets, "cidr", "at most 64 are allowed")
	fault(w.Agent != "" && w.Uses != 1, "uses", "a token for one agent is used once")

	if w.Agent != "" {
		m, ok := d.member(w.Agent)
		fault(!ok || m.State == StateRemoved, "agent", "no such agent is enrolled")
		w.Cloud = m.Cloud
	}

	if len(e.Faults) > 0 {
		return Token{}, TokenRecord{}, e
	}
	if !MayEnrol(caller.Rights, w.Cloud, w.Nets) {
		return Token{}, TokenRecord{}, gozzard.Errorf(gozzard.ErrUserForbidden,
			"making enrolment tokens for these hosts is not permitted")
	}

	now := d.o.Now()
	t := newToken(d.o.Authority.Pin())
	rec := TokenRecord{ID: t.ID, Digest: sha256.Sum256([]byte(t.Secret)), Created: now, Expires: now.Add(w.TTL),
		Uses: w.Uses, Cloud: w.Cloud, Nets: w.Nets,
		Approve: w.Approve, Agent: w.Agent, CreatedBy: caller.App + "/" + caller.User}
	if err := d.o.Store.AddEnrolToken(ctx, rec, AuditEntry{At: now, Caller: caller,
		What: "enrol:token:" + t.ID}); err != nil {
		return Token{}, TokenRecord{}, err
	}

	return t, rec, nil
}

// Tokens lists those that a caller may make, newest first.
func (d *Registry) Tokens(ctx context.Context, caller gozzard.Caller) ([]TokenRecord, error) {
	list, err := d.o.Store.EnrolTokens(ctx)
	if err != nil {
		return nil, err
	}
	kept := list[:0]
	for _, t := range list {
		if MayEnrol(caller.Rights, t.Cloud, t.Nets) {
			kept = append(kept, t)
		}
	}
	return kept, nil
}

// RevokeToken makes a token worthless. Hosts that it brought in stay members.
func (d *Registry) RevokeToken(ctx context.Context, caller gozzard.Caller, id string) error {
	list, err := d.Tokens(ctx, caller)
	if err != nil {
		return err
	}
	for _, t := range list {
		if t.ID == id {
			return d.o.Store.RevokeEnrolToken(ctx, id,
				AuditEntry{At: d.o.Now(), Caller: caller, What: "enrol:untoken:" + id})
		}
	}
	return gozzard.Errorf(gozzard.ErrNotFound, "there is no such token")
}

// Join makes a host a member if its token lets it in. from is where the request came from.
func (d *Registry) Join(ctx context.Context, from netip.Addr, r JoinRequest) (Answer, error) {
	id, secret, csr, err := d.readJoin(&r)
	if err != nil {
		return Answer{}, d.refuse("join", r.Agent, err)
	}

	serial, err := newSerial()
	if err != nil {
		return Answer{}, err
	}

	d.enrolling.Lock()
	defer d.enrolling.Unlock()
	now := d.o.Now()
	act := AuditEntry{At: now, What: "enrol:join:" + string(r.Agent),
		Caller: gozzard.Caller{App: "enrolment", User: "token " + id}}
	rec, err := d.o.Store.Enrol(ctx, id, r.Agent, func(t TokenRecord, known AgentRecord) (AgentRecord, error) {
		if err := t.admits(secret, from, r.Agent, known.Agent != "", now); err != nil {
			return AgentRecord{}, err
		}
		if known.State == StateRemoved {
			return AgentRecord{}, gozzard.Errorf(gozzard.ErrConflict,
				"agent %s was removed for ever; give the host a new state folder", r.Agent)
		}

		if err := d.addressesFree(r.Agent, t.Cloud, r.IPs); err != nil {
			return AgentRecord{}, err
		}

		a := AgentRecord{Agent: r.Agent, Cloud: t.Cloud, IPs: r.IPs, Machine: r.Machine, Hostname: r.Hostname,
			State: StateActive, Serial: serialText(serial),
			NotAfter: now.Add(CertLife), Enrolled: now, Changed: now, Token: id}

		if t.Approve {
			a.State = StatePending
		}

		return a, nil
	}, act)

	if err != nil {
		return Answer{}, d.refuse("join", r.Agent, err)
	}

	d.mu.Lock()
	d.take(rec)
	delete(d.clones, rec.Agent)
	delete(d.heard, rec.Agent)
	cut := d.cut
	d.mu.Unlock()
	cut(rec.Agent, rec.Cloud) // who enrols again starts afresh; whoever had the old certificate is out
	d.o.Log.Info("a host was enrolled", "agent", rec.Agent, "cloud", rec.Cloud, "state", string(rec.State), "token",
		id, "from", from.String())
	return d.answer(rec, csr, serial)
}

func (d *Registry) readJoin(r *JoinRequest) (id, secret string, csr *x509.CertificateRequest, err error) {
	t, err := ParseToken(tokenVersion + "." + r.Token + "." + d.o.Authority.Pin())
	if err != nil {
		return "", "", nil, errToken("not a token")
	}

	invalid := func(path, text string) error {
		return &gozzard.Error{Kind: gozzard.ErrInvalid, Faults: []gozzard.Fault{{Path: path, Text: text}}}
	}

	if err := r.Agent.Validate(); err != nil {
		return "", "", nil, invalid("agent", err.Error())
	}
	if len(r.IPs) == 0 || len(r.IPs) > maxIPs {
		return "", "", nil, invalid("ips", "one to 16 addresses are needed")
	}

	for i, ip := range r.IPs {
		if r.IPs[i], err = gozzard.ParseIP(ip.String()); err != nil {
			return "", "", nil, invalid("ips", err.Error())
		}
	}

	if len(r.Machine) > maxMachine || len(r.Hostname) > maxHostname {
		return "", "", nil, invalid("machine", "is too long")
	}
	if csr, err = readCSR(r.CSR); err != nil {
		return "", "", nil, invalid("csr", err.Error())
	}

	return t.ID, t.Secret, csr, nil
}

// addressesFree: operations are asked for by address, so a host must not take that of another.
func (d *Registry) addressesFree(agent gozzard.AgentID, cloud int, ips []netip.Addr) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, ip := range ips {
		at := gozzard.HostAddr{Cloud: cloud, IP: ip}
		if owner, taken := d.owners[at]; taken && owner != agent {
			return gozzard.Errorf(gozzard.ErrConflict,
				"address %s belongs to another agent; an admin can free it with: gozzard hosts revoke %s", at, owner)
		}
	}
	return nil
}

// Renew gives a member that has proven its present key a certificate for a new one.
func (d *Registry) Renew(ctx context.Context, cs *tls.ConnectionState, r RenewRequest) (Answer, error) {
	denied := gozzard.Errorf(gozzard.ErrUnauthenticated, "this host is not a member of the fleet, or not any more")
	id, err := d.o.Authority.identify(cs, renewGrace)
	if err != nil {
		_ = d.refuse("certificate", "", err)
		return Answer{}, denied
	}

	csr, err := readCSR(r.CSR)
	if err != nil {
		return Answer{}, &gozzard.Error{Kind: gozzard.ErrInvalid,
			Faults: []gozzard.Fault{{Path: "csr", Text: err.Error()}}}
	}

	serial, err := newSerial()
	if err != nil {
		return Answer{}, err
	}

	d.enrolling.Lock()
	defer d.enrolling.Unlock()
	d.mu.Lock()
	rule, err := d.standing(id, r.Machine)
	d.mu.Unlock()

	if err != nil {
		_ = d.refuse(rule, id.agent, err)
		return Answer{}, denied
	}

	rec, err := d.o.Store.ChangeMember(ctx, id.agent, func(a AgentRecord) (AgentRecord, error) {
		a.Previous, a.Serial, a.NotAfter, a.Restored = id.serial, serialText(serial), d.o.Now().Add(CertLife),
			time.Time{}
		return a, nil
	}, AuditEntry{})

	if err != nil {
		return Answer{}, err
	}

	d.mu.Lock()

	if m := d.members[rec.Agent]; m.State != rec.State { // put into quarantine meanwhile, which is not written down yet
		rec.State, rec.Reason = m.State, m.Reason
	}

	delete(d.heard, rec.Agent)
	d.take(rec)
	d.mu.Unlock()
	return d.answer(rec, csr, serial)
}

func (d *Registry) answer(rec AgentRecord, csr *x509.CertificateRequest, serial *big.Int) (Answer, error) {
	der, err := d.o.Authority.sign(csr, rec.Agent, rec.Cloud, serial)
	if err != nil {
		return Answer{}, err
	}
	return Answer{Agent: rec.Agent, Cloud: rec.Cloud, State: rec.State, Certificate: string(certPEM(der)),
		Authority: string(d.o.Authority.PEM()),
		Address:   d.o.Address(), Key: d.o.Key().String()}, nil
}

// readCSR reads a request for a certificate. Of it only the key counts; who it is for is decided here.
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
		return nil, errors.New("is not signed by its own key")
	}

	return csr, nil
}
