package enrol

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"math/big"
	"net"
	"slices"
	"time"

	"github.com/gozzard/gozzard"
)

// RelayJoinPath is the API path that a new relay calls.
const RelayJoinPath = "/api/v1/relays/join"

// The paths at the port for relays. Hello says that a relay is there, Renew renews its certificate, and the two others
// carry the bytes of one connection of a host each.
const (
	RelayHelloPath  = "/relay/v1/hello"
	RelayRenewPath  = "/relay/v1/renew"
	RelayAgentsPath = "/relay/v1/agents"
	RelayAPIPath    = "/relay/v1/api"
)

// RelayFromHeader has the address of the host whose connection a relay carries.
const RelayFromHeader = "X-Gozzard-From"

// MaxRelayTTL limits tokens for relays.
const MaxRelayTTL = 7 * 24 * time.Hour

const (
	maxRelayAreas = 256
	maxRelayName  = 64
)

// RelayState is the state of a relay.
type RelayState string

// The states. A relay that is removed has no row.
const (
	RelayInvited RelayState = "invited" // it has a token and did not join yet
	RelayActive  RelayState = "active"
)

// RelayRecord is the stored state of one relay.
type RelayRecord struct {
	ID        string
	Name      string
	Areas     []int // cloud areas of the hosts behind it
	State     RelayState
	Digest    [sha256.Size]byte // of the secret of its token
	Created   time.Time
	Expires   time.Time // of its token
	CreatedBy string    // app/user

	Serial   string // of the newest certificate
	Previous string // of the certificate before: still valid, because the answer with the newest may have been lost
	NotAfter time.Time

	// How hosts reach it, as it says itself. Without a host it is the one that they joined with.
	Agents string // HOST:PORT
	API    string // HOST:PORT

	// Where it was last, for people.
	Server string // id
	Hosts  int    // whose connections it carries
	Seen   time.Time
	Ago    time.Duration // since Seen, by the clock of the record; set by the store
}

// Serves reports whether the relay is for hosts of a cloud area.
func (r *RelayRecord) Serves(cloud int) bool { return slices.Contains(r.Areas, cloud) }

// RelayStore stores relays. A change is durable when its call returns, and its audit entry is in the same transaction.
type RelayStore interface {
	AddRelay(ctx context.Context, r RelayRecord, act AuditEntry) error

	// ChangeRelay reads a relay, calls change and stores the result, in one transaction. It returns ErrNotFound if there is
	// no such relay. An entry with an empty What is not written.
	ChangeRelay(ctx context.Context, id string, change func(RelayRecord) (RelayRecord, error), act AuditEntry) (RelayRecord,
		error)

	// SeeRelay notes where a relay is. Servers need not read it again.
	SeeRelay(ctx context.Context, id, server string, hosts int) error

	// RemoveRelay removes a relay; ErrNotFound if there is none.
	RemoveRelay(ctx context.Context, id string, act AuditEntry) error

	// Relays lists all relays by name.
	Relays(ctx context.Context) ([]RelayRecord, error)
}

// RelayJoinRequest is the request of a new relay for its certificate.
type RelayJoinRequest struct {
	Token string `json:"token"` // id.secret
	CSR   string `json:"csr"`   // PEM
}

// RelayRenewRequest is the request of a relay for a new certificate.
type RelayRenewRequest struct {
	CSR     string `json:"csr"`     // PEM
	Current string `json:"current"` // serial number of the certificate that it has
}

// RelayAnswer is the server's answer to both requests.
type RelayAnswer struct {
	ID          string   `json:"id"`
	Name        string   `json:"name"`
	Areas       []int    `json:"areas"`       // cloud areas of the hosts behind it
	Certificate string   `json:"certificate"` // PEM
	Authorities string   `json:"authorities"` // PEM: all authorities that are valid now
	Servers     []string `json:"servers"`     // HOST:PORT for relays; without a host it is the one that the relay joined with
}

// RelayHello is what a relay says of itself, again and again.
type RelayHello struct {
	Agents string `json:"agents"` // HOST:PORT for agents; the host may be missing
	API    string `json:"api"`    // HOST:PORT for enrolment; the host may be missing
	Hosts  int    `json:"hosts"`  // whose connections it carries
}

// RelayWelcome is the answer to RelayHello.
type RelayWelcome struct {
	Areas       []int    `json:"areas"`
	Authorities string   `json:"authorities"` // PEM; a relay with others renews its certificate
	Servers     []string `json:"servers"`     // as in RelayAnswer
}

// signRelay creates the certificate of a relay. While the authority is rotated, it is of the next one.
func (a *Authority) signRelay(csr *x509.CertificateRequest, id string, serial *big.Int) ([]byte, error) {
	der, err := a.signClient(csr, "relay", relayKind+id, serial, true)
	if err != nil {
		return nil, fmt.Errorf("cannot sign the certificate of relay %s: %w", id, err)
	}
	return der, nil
}

// relayIdentity is the content of a relay's certificate.
type relayIdentity struct {
	id      string
	serial  string
	expired bool
}

// identifyRelay checks the certificate of a connection and reads which relay it is. It may have expired for up to
// renewGrace.
func (a *Authority) identifyRelay(cs *tls.ConnectionState) (relayIdentity, error) {
	cert, _, err := a.verifyClient(cs, renewGrace)
	if err != nil {
		return relayIdentity{}, err
	}
	id, isRelay := clientName(cert, relayKind)
	if !isRelay || id == "" {
		return relayIdentity{}, errors.New("the certificate is not that of a relay")
	}
	return relayIdentity{id: id, serial: serialText(cert.SerialNumber), expired: a.now().After(cert.NotAfter)}, nil
}

// RelayTLS is the TLS configuration of the port for relays. A client without the certificate of a relay does not get
// past the handshake.
func (a *Authority) RelayTLS() *tls.Config {
	own := a.certificateFor(nil)
	return &tls.Config{
		MinVersion: tls.VersionTLS13, ClientAuth: tls.RequireAnyClientCert, SessionTicketsDisabled: true,
		NextProtos:     []string{"h2"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return own.get() },

		// It replaces the check of the library, which would use the authorities of the time of this call.
		VerifyConnection: func(cs tls.ConnectionState) error {
			_, err := a.identifyRelay(&cs)
			return err
		},
	}
}

type relayKey struct{}

// ThroughRelay marks the requests of a host that come through a relay.
func ThroughRelay(ctx context.Context, r RelayRecord) context.Context {
	return context.WithValue(ctx, relayKey{}, &r)
}

// relayOf is the relay that a request came through, nil if there is none.
func relayOf(ctx context.Context) *RelayRecord {
	r, _ := ctx.Value(relayKey{}).(*RelayRecord)
	return r
}

// RuleRelayArea is the rule that rejects hosts which come through a relay of other cloud areas, as the metrics count it.
const RuleRelayArea = "relay_area"

var errRelayArea = errors.New("the relay on the way is for other cloud areas")

// carries reports whether a request may be about a host of a cloud area: always without a relay.
func carries(ctx context.Context, cloud int) bool {
	r := relayOf(ctx)
	return r == nil || r.Serves(cloud)
}

// relayAddress is where hosts reach a relay as servers know it; "" when its host is not known.
func relayAddress(hostPort string) string {
	host, port, err := net.SplitHostPort(hostPort)
	if err != nil || host == "" || port == "" {
		return ""
	}
	return net.JoinHostPort(host, port)
}

// AsServer is the relay as hosts know servers; ok is false while it is not known where they reach it.
func (r *RelayRecord) AsServer() (a gozzard.ServerAddress, ok bool) {
	a.Agents = relayAddress(r.Agents)
	if api := relayAddress(r.API); api != "" {
		a.API = "https://" + api
	}
	return a, a.Agents != "" && a.Validate() == nil
}
