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
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/signing"
)

// The API paths that hosts call to join the fleet and to renew their certificates.
const (
	JoinPath  = "/api/v1/enrol"
	RenewPath = "/api/v1/enrol/renew"
)

const (
	callTimeout = 30 * time.Second
	maxAnswer   = 1 << 20
)

// JoinOptions says which host joins which server.
type JoinOptions struct {
	Server   string // https://host:port of the API; several with commas between them: the first that can be reached
	Token    Token
	Dir      string // state folder of the agent
	Agent    gozzard.AgentID
	IPs      []netip.Addr // none: the local address of this host's connections to the server
	Hostname string
	Machine  string // as the function Machine returns it
}

// Join makes this host a member and saves the membership in the state folder. It sends the token only after the server
// has proven, by TLS 1.3, that it has a certificate of the authority that is pinned in the token.
func Join(ctx context.Context, o JoinOptions) (*Membership, error) {
	// Prepare the key.
	bases, err := serverURLs(strings.Split(o.Server, ","))
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

	// Ask the servers, one after the other.
	var authority *x509.Certificate
	var base *url.URL
	req := JoinRequest{
		Trusts: keyText(ring.Key()), Token: o.Token.ID + "." + o.Token.Secret, Agent: o.Agent, Machine: o.Machine,
		Hostname: o.Hostname, CSR: csr,
	}
	answer, err := firstOf(bases, notReached, func(at *url.URL) (Answer, error) {
		base, req.IPs = at, o.IPs
		if len(o.IPs) == 0 {
			ip, err := localAddress(ctx, at.Host)
			if err != nil {
				return Answer{}, err
			}
			req.IPs = []netip.Addr{ip}
		}
		return callAs(ctx, pinned(o.Token.Pin, &authority), at, JoinPath, req, req.Trusts)
	})
	if err != nil {
		return nil, fmt.Errorf("cannot join %s: %w", base.Host, err)
	}

	// Check the answer.
	m := &Membership{
		Server: base.String(), IPs: req.IPs, Authority: string(certPEM(authority.Raw)),
		path: filepath.Join(o.Dir, membershipFile),
	}
	if err := m.apply(answer, base, key, authority); err != nil {
		return nil, fmt.Errorf("cannot join %s: %w", base.Host, err)
	}
	if m.Agent != o.Agent {
		return nil, fmt.Errorf("cannot join %s: it answered with agent %s, not %s", base.Host, m.Agent, o.Agent)
	}

	// Trust the server's signing key and save the membership.
	k, err := signing.ParseKey(answer.Key)
	if err != nil {
		return nil, fmt.Errorf("cannot join %s: %w", base.Host, err)
	}
	if err := ring.Trust(k); err != nil {
		return nil, err
	}

	return m, m.save()
}

// apply puts an answer into the membership. shown is the authority with which the server has proven itself: it stays
// trusted. The server adds the next authority to it, and leaves out the one before it.
func (m *Membership) apply(a Answer, base *url.URL, key *ecdsa.PrivateKey, shown *x509.Certificate) error {
	// The certificate.
	block, _ := pem.Decode([]byte(a.Certificate))
	if block == nil {
		return errors.New("the answer has no certificate")
	}

	pair, err := encodePair(block.Bytes, key)
	if err != nil {
		return err
	}

	// The address of the fabric. Without a host it is that of the server's API.
	host, port, err := net.SplitHostPort(a.Address)
	if err != nil {
		return fmt.Errorf("the answer has no address for agents: %w", err)
	}
	if host == "" {
		host = base.Hostname()
	}

	// Change the membership only if the result is valid.
	next := *m
	next.Address = net.JoinHostPort(host, port)
	next.Agent, next.Cloud, next.Identity, next.state = a.Agent, a.Cloud, string(pair), a.State
	if len(a.IPs) > 0 {
		next.IPs = a.IPs
	}
	next.Servers = slices.DeleteFunc(a.Servers, func(s gozzard.ServerAddress) bool { return s.Validate() != nil })
	if a.Authorities != "" {
		if !bundleHas(a.Authorities, shown) {
			return errors.New("the answer leaves out the authority that the server has shown")
		}
		next.Authority = a.Authorities
	}
	if err := next.parse(); err != nil {
		return err
	}

	*m = next
	return nil
}

// maxAuthorities limits what a server can make a host trust: it has the present authority and the next one.
const maxAuthorities = 2

// bundleHas reports whether a text has one or two authorities, and the given one is among them.
func bundleHas(text string, one *x509.Certificate) bool {
	n, found := 0, false
	rest := []byte(text)
	for {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return found && n <= maxAuthorities && len(bytes.TrimSpace(rest)) == 0
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if block.Type != "CERTIFICATE" || err != nil || !cert.IsCA {
			return false
		}
		n, found = n+1, found || cert.Equal(one)
	}
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

// pinned accepts only a server with a certificate chain that ends in the authority of the pin, and stores that
// authority in found. It replaces the check of the library, which cannot trust a key that is not known yet.
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
				_, err := cs.PeerCertificates[0].Verify(x509.VerifyOptions{
					Roots: roots, DNSName: ServerName, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
				})
				if err != nil {
					return err
				}
				*found = c
				return nil
			}
			return errors.New("the server is not the one that the token is for: its certificate is of another " +
				"authority; nothing was sent to it")
		},
	}
}

// newKey creates a key, which never leaves this host, and a request for its certificate.
func newKey() (*ecdsa.PrivateKey, string, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, "", fmt.Errorf("cannot create a key: %w", err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, new(x509.CertificateRequest), key)
	if err != nil {
		return nil, "", fmt.Errorf("cannot create a certificate request: %w", err)
	}
	return key, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})), nil
}

// localAddress is the address of this host from which it reaches the server. Nothing is sent.
func localAddress(ctx context.Context, server string) (netip.Addr, error) {
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

// TrustsHeader has the key of the server that the host has obeyed so far.
const TrustsHeader = "X-Gozzard-Trusts"

// keyText is a key as TrustsHeader has it, "" if there is none.
func keyText(k signing.Key) string {
	if k.Epoch == 0 {
		return ""
	}
	return k.String()
}

// MovesHeader says in requests of hosts that the host can have several authorities.
const MovesHeader = "X-Gozzard-Authorities"

// call sends one request on a new connection and reads the answer.
func call(ctx context.Context, c *tls.Config, base *url.URL, path string, in any) (out Answer, err error) {
	return callAs(ctx, c, base, path, in, "")
}

// callAs is call with the key that the host obeys, "" if it is not sent.
func callAs(ctx context.Context, c *tls.Config, base *url.URL, path string, in any, trusts string) (out Answer,
	err error) {
	err = post(ctx, c, base, path, in, trusts, &out)
	return out, err
}

// post sends one request on a new connection and reads the answer into out.
func post(ctx context.Context, c *tls.Config, base *url.URL, path string, in any, trusts string, out any) error {
	// Make the request.
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	body, err := json.Marshal(in)
	if err != nil {
		return fmt.Errorf("cannot encode the request: %w", err)
	}

	req, err := http.NewRequestWithContext(ctx, http.MethodPost, base.String()+path, bytes.NewReader(body))
	if err != nil {
		return err
	}

	req.Header.Set("Content-Type", "application/json")
	req.Header.Set(MovesHeader, strconv.Itoa(maxAuthorities))
	if trusts != "" {
		req.Header.Set(TrustsHeader, trusts)
	}

	// Send it. A redirect is not followed: the token is for one server.
	transport := &http.Transport{TLSClientConfig: c, DisableKeepAlives: true, TLSHandshakeTimeout: callTimeout}
	defer transport.CloseIdleConnections()
	web := &http.Client{Transport: transport, CheckRedirect: noRedirect}
	res, err := web.Do(req)
	if err != nil {
		var u *url.Error
		if errors.As(err, &u) {
			err = u.Err
		}
		return err
	}

	// Read the answer.
	defer res.Body.Close()
	b, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("cannot read the answer: %w", err)
	}
	if res.StatusCode != http.StatusOK {
		return answerError(res.StatusCode, b)
	}
	if err := json.Unmarshal(b, out); err != nil {
		return fmt.Errorf("cannot read the answer: %w", err)
	}

	return nil
}

func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// answerError turns an error answer of the server into an error.
func answerError(status int, b []byte) error {
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

// Machine is a digest of the id of this machine, "" if it has none. The server uses it to detect a copy of the state
// folder on another machine.
func Machine() string {
	b, err := os.ReadFile("/etc/machine-id")
	if id := bytes.TrimSpace(b); err == nil && len(id) >= 16 {
		return digest("gozzard machine " + string(id))
	}
	return ""
}
