package enrol

import (
	"crypto/hkdf"
	"crypto/sha256"
	"crypto/tls"
	"fmt"
	"strconv"
	"sync"
	"time"
)

// ticketDay is how long a key encrypts tickets. It decrypts them for one more day.
const ticketDay = 24 * time.Hour

// tickets encrypts and decrypts TLS session tickets. With a ticket an agent resumes a connection without a full
// handshake, which is most of the cost when a fleet reconnects at once. The keys are derived from the authority's key,
// so a restarted server accepts the tickets of its previous run. With a key in an external signer it does not. A ticket only names the certificate that was shown.
// The Registry decides about every connection, resumed or not, and an expired certificate is not resumed.
type tickets struct {
	authority *Authority

	mu   sync.Mutex
	day  int64
	of   *authorityKey
	keys *tls.Config // used for its ticket keys only
}

func (t *tickets) wrap(cs tls.ConnectionState, s *tls.SessionState) ([]byte, error) {
	keys, err := t.current()
	if err != nil {
		return nil, err
	}
	return keys.EncryptTicket(cs, s)
}

func (t *tickets) unwrap(ticket []byte, cs tls.ConnectionState) (*tls.SessionState, error) {
	keys, err := t.current()
	if err != nil {
		return nil, err
	}
	return keys.DecryptTicket(ticket, cs)
}

// current returns the keys of today and yesterday.
func (t *tickets) current() (*tls.Config, error) {
	day := t.authority.now().Unix() / int64(ticketDay.Seconds())
	of, _ := t.authority.keys()
	t.mu.Lock()
	defer t.mu.Unlock()

	if t.keys != nil && t.day == day && t.of == of {
		return t.keys, nil
	}

	// Derive the keys at the first call of each day.
	today, err := of.ticketKey(day)
	if err != nil {
		return nil, err
	}

	yesterday, err := of.ticketKey(day - 1)
	if err != nil {
		return nil, err
	}

	keys := new(tls.Config)
	keys.SetSessionTicketKeys([][32]byte{today, yesterday})
	t.keys, t.day, t.of = keys, day, of
	return keys, nil
}

// ticketKey derives the key of one day.
func (k *authorityKey) ticketKey(day int64) (key [32]byte, err error) {
	b, err := hkdf.Key(sha256.New, k.secret, nil, "gozzard fabric tickets "+strconv.FormatInt(day, 10), len(key))
	if err != nil {
		return key, fmt.Errorf("cannot derive a key for tickets: %w", err)
	}
	copy(key[:], b)
	return key, nil
}

// ticketCache holds the newest ticket of a member, in memory. A ticket belongs to one certificate, so the cache is
// cleared when the certificate is renewed.
type ticketCache struct {
	mu    sync.Mutex
	cache tls.ClientSessionCache
}

// Get implements tls.ClientSessionCache.
func (c *ticketCache) Get(server string) (*tls.ClientSessionState, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cache == nil {
		return nil, false
	}
	return c.cache.Get(server)
}

// Put implements tls.ClientSessionCache.
func (c *ticketCache) Put(server string, s *tls.ClientSessionState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cache == nil {
		c.cache = tls.NewLRUClientSessionCache(1)
	}
	c.cache.Put(server, s)
}

func (c *ticketCache) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cache = nil
}
