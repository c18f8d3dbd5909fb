package enrol

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/url"
	"path/filepath"
	"sync"
	"time"
)

const (
	firstRetry   = 10 * time.Second
	slowestRetry = 10 * time.Minute
	longestSleep = 15 * time.Minute
)

func digest(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:16])
}

// Renewer renews the certificate of a member.
type Renewer struct {
	log     *slog.Logger
	now     func() time.Time
	machine string
	tickets ticketCache

	mu     sync.Mutex
	m      *Membership
	others []string // URLs of the API of other servers, besides that of the membership
}

// SetServers sets the URLs of the API of the servers that this host may use if it cannot reach the one that it joined.
func (k *Renewer) SetServers(urls []string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.others = urls
}

// bases are the URLs of the API of all servers, that of the membership first.
func (k *Renewer) bases() ([]*url.URL, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return serverURLs(append([]string{k.m.Server}, k.others...))
}

// NewRenewer returns a Renewer of a membership; Run renews.
func NewRenewer(m *Membership, machine string, log *slog.Logger) *Renewer {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Renewer{m: m, machine: machine, log: log, now: time.Now}
}

// TLS is the configuration of connections to the fabric. Each connection uses the current certificate, or the ticket of
// the last connection that was made with it.
func (k *Renewer) TLS() *tls.Config {
	c := k.callTLS()
	c.ClientSessionCache = rereadFirst{k}
	return c
}

// rereadFirst is the cache of tickets. The library asks it at the beginning of every connection.
type rereadFirst struct{ k *Renewer }

// Get implements tls.ClientSessionCache.
func (c rereadFirst) Get(server string) (*tls.ClientSessionState, bool) {
	c.k.reread()
	return c.k.tickets.Get(server)
}

// Put implements tls.ClientSessionCache.
func (c rereadFirst) Put(server string, s *tls.ClientSessionState) { c.k.tickets.Put(server, s) }

// reread takes over the membership in the state folder when the host has joined again while the agent runs. The server
// takes the replaced certificate for a copy of the host, and would put the host in quarantine.
func (k *Renewer) reread() {
	k.mu.Lock()
	now := k.m
	k.mu.Unlock()
	m, err := LoadMembership(filepath.Dir(now.path))
	if err != nil { // left, or damaged: what is in memory was good
		return
	}
	if m.Identity == now.Identity || m.Agent != now.Agent || m.Cloud != now.Cloud {
		return
	}

	k.mu.Lock()
	defer k.mu.Unlock()
	if k.m != now { // it was renewed meanwhile
		return
	}
	k.m = m
	k.tickets.clear()
	k.log.Info("this host has joined again: using its new certificate", "expires", m.NotAfter())
}

// callTLS is the configuration of connections to the API. Each connection uses the current certificate and the current
// authorities. The check replaces that of the library, which would use the authorities of the time of this call.
func (k *Renewer) callTLS() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13, ServerName: ServerName, InsecureSkipVerify: true,
		VerifyConnection: func(cs tls.ConnectionState) error {
			_, err := k.verify(&cs)
			return err
		},
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			k.mu.Lock()
			defer k.mu.Unlock()
			return k.m.pair, nil
		},
	}
}

// provenTLS is callTLS, and stores the authority of the server in shown.
func (k *Renewer) provenTLS(shown **x509.Certificate) *tls.Config {
	c := k.callTLS()
	c.VerifyConnection = func(cs tls.ConnectionState) (err error) {
		*shown, err = k.verify(&cs)
		return err
	}
	return c
}

// verify checks that a connection is to a server with a certificate of a current authority, and returns the authority.
func (k *Renewer) verify(cs *tls.ConnectionState) (*x509.Certificate, error) {
	if len(cs.PeerCertificates) == 0 {
		return nil, errors.New("the server has shown no certificate")
	}
	k.mu.Lock()
	roots := k.m.roots
	k.mu.Unlock()

	chains, err := cs.PeerCertificates[0].Verify(x509.VerifyOptions{
		Roots: roots, DNSName: ServerName, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
	if err != nil {
		return nil, err
	}
	return chains[0][len(chains[0])-1], nil
}

// NotAfter is when the current certificate expires.
func (k *Renewer) NotAfter() time.Time {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.m.NotAfter()
}

// Run renews the certificate whenever two thirds of its life are over, until ctx ends. It does not touch the connection
// to the fabric: the next connection uses the new certificate.
func (k *Renewer) Run(ctx context.Context) error {
	failures := 0
	// A random delay: a fleet that was enrolled in one minute must not renew in one minute.
	k.mu.Lock()
	spread := rand.N(max(k.m.life()/24, 1))
	k.mu.Unlock()
	var notBefore time.Time // after a failure
	for {
		k.mu.Lock()
		due := k.m.renewAt().Add(spread)
		k.mu.Unlock()
		if due.Before(notBefore) {
			due = notBefore
		}

		// Wait in steps: the timer of a suspended host does not count the time of the suspension.
		if wait := due.Sub(k.now()); wait > 0 {
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(min(wait, longestSleep)):
			}
			continue
		}

		if err := k.Renew(ctx); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			failures++
			pause := min(firstRetry<<min(failures-1, 10), slowestRetry)
			notBefore = k.now().Add(pause/2 + rand.N(pause/2))
			k.log.Warn("cannot renew the certificate of this host, trying again", "err", err, "expires", k.NotAfter())
			continue
		}
		failures = 0
		k.log.Info("certificate of this host renewed", "expires", k.NotAfter())
	}
}

// Renew requests a certificate for a new key, authenticated by the current one, and saves it. A host that gets its first
// certificate of another authority renews once more: the second request proves to the server that it has moved.
func (k *Renewer) Renew(ctx context.Context) error {
	moved, err := k.renew(ctx)
	if err != nil || !moved {
		return err
	}

	k.log.Info("this host moved to the next authority of its server")
	if _, err := k.renew(ctx); err != nil { // the next renewal or connection proves it, too
		k.log.Warn("cannot prove the move to the server, which shows this host as waiting until it connects", "err", err)
	}
	return nil
}

// renew is one renewal. moved reports that the new certificate is of another authority than the one before.
func (k *Renewer) renew(ctx context.Context) (moved bool, err error) {
	// Create a key.
	k.reread()
	k.mu.Lock()
	m := *k.m
	k.mu.Unlock()
	bases, err := k.bases()
	if err != nil {
		return false, err
	}

	key, csr, err := newKey()
	if err != nil {
		return false, err
	}

	// Ask the servers, one after the other.
	var shown *x509.Certificate
	var base *url.URL
	answer, err := firstOf(bases, notAnswered, func(at *url.URL) (Answer, error) {
		base = at
		return call(ctx, k.provenTLS(&shown), at, RenewPath, RenewRequest{Machine: k.machine, CSR: csr})
	})
	if err != nil {
		return false, fmt.Errorf("cannot renew at %s: %w", base.Host, err)
	}
	if answer.Agent != m.Agent || answer.Cloud != m.Cloud {
		return false, fmt.Errorf("cannot renew at %s: it answered with agent %s", base.Host, answer.Agent)
	}

	// Save the answer and use it from now on.
	before := m.pair.Leaf
	if err := m.apply(answer, base, key, shown); err != nil {
		return false, fmt.Errorf("cannot renew at %s: %w", base.Host, err)
	}
	if err := m.save(); err != nil {
		return false, err
	}

	moved = !bytes.Equal(before.RawIssuer, m.pair.Leaf.RawIssuer)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.m = &m
	k.tickets.clear()
	return moved, nil
}
