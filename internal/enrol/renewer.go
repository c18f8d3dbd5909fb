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

// Renewer keeps the certificate of a member fresh.
type Renewer struct {
	log     *slog.Logger
	now     func() time.Time
	machine string
	tickets ticketCache

	mu sync.Mutex
	m  *Membership
}

// NewRenewer keeps a membership.
func NewRenewer(m *Membership, machine string, log *slog.Logger) *Renewer {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Renewer{m: m, machine: machine, log: log, now: time.Now}
}

// TLS is how the fabric is reached: with the certificate as it is at that moment, or by the ticket of the last
// connection that was made with it.
func (k *Renewer) TLS() *tls.Config {
	c := k.callTLS()
	c.ClientSessionCache = &k.tickets
	return c
}

// callTLS is how the API is reached: with the certificate as it is at that moment.
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

// NotAfter is when the present certificate is over.
func (k *Renewer) NotAfter() time.Time {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.m.NotAfter()
}

// Run renews the certificate at two thirds of its life, again and again, until ctx ends. The connection to the
// fabric is not touched: the next one has the new certificate.
func (k *Renewer) Run(ctx context.Context) error {
	failures := 0
	// Spread: a fleet that was enrolled in one minute does not renew in one minute.
	spread := rand.N(CertLife / 24)
	var notBefore time.Time // after a failure
	for {
		k.mu.Lock()
		due := k.m.renewAt().Add(spread)
		k.mu.Unlock()
		if due.Before(notBefore) {
			due = notBefore
		}
		// In steps: a host that was suspended must not sleep on as if no time had passed.
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
			k.log.Warn("cannot renew this host's certificate, trying again", "err", err, "over", k.NotAfter())
			continue
		}
		failures = 0
		k.log.Info("this host's certificate was renewed", "over", k.NotAfter())
	}
}

// Renew asks for a certificate of a new key, with the present one, and keeps it.
func (k *Renewer) Renew(ctx context.Context) error {
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

	answer, err := post(ctx, k.callTLS(), base, RenewPath, RenewRequest{Machine: k.machine, CSR: csr})
	if err != nil {
		return fmt.Errorf("cannot renew at %s: %w", base.Host, err)
	}
	if answer.Agent != m.Agent || answer.Cloud != m.Cloud {
		return fmt.Errorf("cannot renew at %s: it answers for agent %s", base.Host, answer.Agent)
	}
	if err := m.take(answer, base, key); err != nil {
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
