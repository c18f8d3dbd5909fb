package auth

import (
	"crypto/hmac"
	"crypto/sha1"
	"encoding/base64"
	"sync"
	"time"

	"github.com/gozzard/gozzard"
)

// Signature is how an app proves itself without sending its secret. Callers use SHA-1; it is safe as a keyed hash.
type Signature struct {
	Value string // base64 of the HMAC
	Text  string // what was signed: method, path, sorted parameters and the body
	Nonce string
	At    time.Time
}

// Sign gives the value of a signature.
func Sign(key, text string) string {
	h := hmac.New(sha1.New, []byte(key))
	h.Write([]byte(text))
	return base64.StdEncoding.EncodeToString(h.Sum(nil))
}

// signatureWindow is how far the time of a signature may be from ours.
const signatureWindow = 300 * time.Second

const maxNonceBytes = 64

// checkSignature proves an app that signs. An app that does not is refused like one that does not exist.
func (b *Directory) checkSignature(e *entry, c *Credentials) (App, error) {
	s, names := c.Signature, c.names()
	now := b.o.Now()
	switch age := now.Sub(s.At); {
	case s.Nonce == "" || len(s.Nonce) > maxNonceBytes:
		return App{}, b.refuse("signature", gozzard.ErrUnauthenticated, "%s: required, at most %d bytes",
			names.Nonce, maxNonceBytes)
	case age > signatureWindow || age < -signatureWindow:
		return App{}, b.refuse("signature_time", gozzard.ErrUnauthenticated,
			"%s is more than %d s away from the server's time",
			names.Time, int(signatureWindow.Seconds()))
	case s.At.Before(b.started.Truncate(time.Second)): // which nonces were used before is not known any more
		return App{}, b.refuse("signature_time", gozzard.ErrUnauthenticated,
			"%s is from before the server's start: sign again", names.Time)
	}

	match := false
	for i := range maxSecrets { // an app without keys costs the same
		key := ""
		if i < len(e.signKeys) {
			key = e.signKeys[i]
		}
		if b.compare([]byte(Sign(key, s.Text)), []byte(s.Value)) == 1 && key != "" {
			match = true
		}
	}

	if !match {
		return App{}, b.refuse("signature", gozzard.ErrUnauthenticated, "%s or %s is wrong", names.App,
			names.Signature)
	}

	switch fresh, full := b.nonces.use(c.App+"\x00"+s.Nonce, now); {
	case full:
		return App{}, b.refuse("signature_flood", gozzard.ErrRateLimited,
			"too many signed requests: send the secret, or fewer of them")
	case !fresh:
		return App{}, b.refuse("signature_replay", gozzard.ErrUnauthenticated, "%s was used before", names.Nonce)
	}

	return e.app, nil
}

// nonces remembers what was used while its signature could still be valid.
type nonces struct {
	mu   sync.Mutex
	used map[string]time.Time // until when it must be remembered
}

// maxNonces is 300 signed requests a second.
const maxNonces = 2 * 300 * 300

func (n *nonces) use(key string, now time.Time) (fresh, full bool) {
	n.mu.Lock()
	defer n.mu.Unlock()

	if n.used == nil {
		n.used = map[string]time.Time{}
	}
	if until, ok := n.used[key]; ok && now.Before(until) {
		return false, false
	}

	if len(n.used) >= maxNonces {
		for k, until := range n.used {
			if !now.Before(until) {
				delete(n.used, k)
			}
		}
		if len(n.used) >= maxNonces {
			return false, true
		}
	}

	n.used[key] = now.Add(2 * signatureWindow) // a time ahead of ours stays valid that much longer
	return true, false
}
