package enrol

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/signing"
)

// Where the server answers members and those who want to be.
const (
	JoinPath  = "/api/v1/enrol"
	RenewPath = "/api/v1/enrol/renew"
)

const (
	callTimeout = 30 * time.Second
	maxAnswer   = 1 << 20
)

// JoinOptions says who joins what.
type JoinOptions struct {
	Server   string // https://host:port of the API
	Token    Token
	Dir      string // state folder of the agent
	Agent    gozzard.AgentID
	IPs      []netip.Addr // none: the address by which this host reaches the server
	Hostname string
	Machine  string
}

// Join makes this host a member and keeps the membership in the state folder. Nothing of the token is sent before
// the server has proven, by TLS 1.3, that it has a certificate of the authority whose pin is in the token.
func Join(ctx context.Context, o JoinOptions) (*Membership, error) {
	base, err := serverURL(o.Server)
	if err != nil {
		return nil, err
	}

	ring, err := signing.OpenKeyRing(o.Dir, nil)
	if err != nil {
		return nil, err
	}

	key, csr, err := newKey()
	if err != nil {
		return nil, err
	}

	if len(o.IPs) == 0 {
		ip, err := ownAddress(ctx, base.Host)
		if err != nil {
			return nil, err
		}
		o.IPs = []netip.Addr{ip}
	}

	var authority *x509.Certificate
	req := JoinRequest{Token: o.Token.ID + "." + o.Token.Secret, Agent: o.Agent, IPs: o.IPs, Machine: o.Machine,
		Hostname: o.Hostname, CSR: csr}
	answer, err := post(ctx, pinned(o.Token.Pin, &authority), base, JoinPath, req)
	if err != nil {
		return nil, fmt.Errorf("cannot join %s: %w", base.Host, err)
	}

	m := &Membership{Server: base.String(), IPs: o.IPs, Authority: string(certPEM(authority.Raw)),
		path: filepath.Join(o.Dir, membershipFile)}
	if err := m.take(answer, base, key); err != nil {
		return nil, fmt.Errorf("cannot join %s: %w", base.Host, err)
	}
	if m.Agent != o.Agent {
		return nil, fmt.Errorf("cannot join %s: it answers agent %s for agent %s", base.Host, m.Agent, o.Agent)
	}

	k, err := signing.ParseKey(answer.Key)
	if err != nil {
		return nil, fmt.Errorf("cannot join %s: %w", base.Host, err)
	}
	if err := ring.Trust(k); err != nil {
		return nil, err
	}

	return m, m.save()
}

// take puts an answer into the membership. The authority stays the one that was pinned.
func (m *Membership) take(a Answer, base *url.URL, key *ecdsa.PrivateKey) error {
	block, _ := pem.Decode([]byte(a.Certificate))
	if block == nil {
		return errors.New("the answer has no certificate")
	}

	pair, err := encodePair(block.Bytes, key)
	if err != nil {
		return err
	}

	host, port, err := net.SplitHostPort(a.Address)
	if err != nil {
		return fmt.Errorf("the answer has no address for agents: %w", err)
	}
	if host == "" {
		host = base.Hostname()
	}

	next := *m
	next.Address, next.Agent, next.Cloud, next.Identity, next.state = net.JoinHostPort(host, port), a.Agent, a.Cloud,
		string(pair), a.State
	if err := next.parse(); err != nil {
		return err
	}

	*m = next
	return nil
}

func serverURL(s string) (*url.URL, error) {
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil || u.Path != "" && u.Path != "/" ||
		u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("%q is not the address of a server, such as https://10.0.0.1:8443", s)
	}
	u.Path = ""
	if u.Port() == "" {
		u.Host = net.JoinHostPort(u.Hostname(), "443")
	}
	return u, nil
}

// pinned trusts only a server whose chain ends in the authority of the pin. The library's own check is replaced,
// not left out: it has no way to trust a key that is not known yet.
func pinned(pin string, found **x509.Certificate) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13, ServerName: ServerName, InsecureSkipVerify: true,
		VerifyConnection: func(cs tls.ConnectionState) error {
			for _, c := range cs.PeerCertificates[1:] {
				if pinOf(c) != pin || !c.IsCA {
					continue
				}
				roots := x509.NewCertPool()
				roots.AddCert(c)
				_, err := cs.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: roots, DNSName: ServerName,
					KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
				if err != nil {
					return err
				}
				*found = c
				return nil
			}
			return errors.New("the server is not the one that the token is for: its certificate is of another authority; nothing was sent to it")
		},
	}
}

// newKey makes a key that never leaves this host, and asks for a certificate of it.
func newKey() (*ecdsa.PrivateKey, string, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, "", fmt.Errorf("cannot make a key: %w", err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, new(x509.CertificateRequest), key)
	if err != nil {
		return nil, "", fmt.Errorf("cannot make a request for a certificate: %w", err)
	}
	return key, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})), nil
}

// ownAddress is the address of this host on the way to the server. Nothing is sent.
func ownAddress(ctx context.Context, server string) (netip.Addr, error) {
	c, err := new(net.Dialer).DialContext(ctx, "udp", server)
	if err != nil {
		return netip.Addr{}, fmt.Errorf("cannot find this host's address: %w", err)
	}
	defer c.Close()
	at, err := netip.ParseAddrPort(c.LocalAddr().String())
	if err != nil {
		return netip.Addr{}, fmt.Errorf("cannot find this host's address: %w", err)
	}
	return at.Addr().Unmap().WithZone(""), nil
}

// post sends one request on a connection of its own and reads the answer.
func post(ctx context.Context, c *tls.Config, base *url.URL, path string, in any) (out Answer, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	body, err := json.Marshal(in)
	if err != nil {
		return out, fmt.Errorf("cannot encode the request: %w", err)
	}

	req, err := http.NewRequestWithContext(ctx, http.MethodPost, base.String()+path, bytes.NewReader(body))
	if err != nil {
		return out, err
	}

	req.Header.Set("Content-Type", "application/json")
	transport := &http.Transport{TLSClientConfig: c, DisableKeepAlives: true, TLSHandshakeTimeout: callTimeout}
	defer transport.CloseIdleConnections()

	// A redirect is not followed: the token is for one server.
	web := &http.Client{Transport: transport, CheckRedirect: func(*http.Request,
		[]*http.Request) error {
		return http.ErrUseLastResponse
	}}

	res, err := web.Do(req)
	if err != nil {
		var u *url.Error
		if errors.As(err, &u) {
			err = u.Err
		}
		return out, err
	}

	defer res.Body.Close()
	b, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil {
		return out, fmt.Errorf("cannot read the answer: %w", err)
	}
	if res.StatusCode != http.StatusOK {
		return out, refusal(res.StatusCode, b)
	}
	if err := json.Unmarshal(b, &out); err != nil {
		return out, fmt.Errorf("cannot read the answer: %w", err)
	}

	return out, nil
}

// refusal makes an error of what the server answers.
func refusal(status int, b []byte) error {
	var body struct {
		Error struct {
			Kind    gozzard.ErrorKind `json:"kind"`
			Message string            `json:"message"`
			Faults  []gozzard.Fault   `json:"faults"`
		} `json:"error"`
	}
	if err := json.Unmarshal(b, &body); err != nil || body.Error.Message == "" {
		return fmt.Errorf("the server answers %d %s", status, http.StatusText(status))
	}
	return &gozzard.Error{Kind: body.Error.Kind, Message: body.Error.Message, Faults: body.Error.Faults}
}

// Machine is a digest of this machine's own id, "" when it has none. A copy of the state folder on another machine
// is known by it.
func Machine() string {
	b, err := os.ReadFile("/etc/machine-id")
	if id := bytes.TrimSpace(b); err == nil && len(id) >= 16 {
		return digest("gozzard machine " + string(id))
	}
	return ""
}
