package enrol

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"fmt"
	"log/slog"
	"math/rand/v2"
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

	mu sync.Mutex
	m  *Membership
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
	c.ClientSessionCache = &k.tickets
	return c
}

// callTLS is the configuration of connections to the API. Each connection uses the current certificate.
func (k *Renewer) callTLS() *tls.Config {
	k.mu.Lock()
	roots := k.m.roots
	k.mu.Unlock()
	return &tls.Config{
		MinVersion: tls.VersionTLS13, ServerName: ServerName, RootCAs: roots,
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			k.mu.Lock()
			defer k.mu.Unlock()
			return k.m.pair, nil
		},
	}
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
	spread := rand.N(CertLife / 24)
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

// Renew requests a certificate for a new key, authenticated by the current one, and saves it.
func (k *Renewer) Renew(ctx context.Context) error {
	// Create a key.
	k.mu.Lock()
	m := *k.m
	k.mu.Unlock()
	base, err := serverURL(m.Server)
	if err != nil {
		return err
	}

	key, csr, err := newKey()
	if err != nil {
		return err
	}

	// Ask the server.
	answer, err := call(ctx, k.callTLS(), base, RenewPath, RenewRequest{Machine: k.machine, CSR: csr})
	if err != nil {
		return fmt.Errorf("cannot renew at %s: %w", base.Host, err)
	}
	if answer.Agent != m.Agent || answer.Cloud != m.Cloud {
		return fmt.Errorf("cannot renew at %s: it answered with agent %s", base.Host, answer.Agent)
	}

	// Save the answer and use it from now on.
	if err := m.apply(answer, base, key); err != nil {
		return fmt.Errorf("cannot renew at %s: %w", base.Host, err)
	}
	if err := m.save(); err != nil {
		return err
	}

	k.mu.Lock()
	defer k.mu.Unlock()
	k.m = &m
	k.tickets.clear()
	return nil
}
