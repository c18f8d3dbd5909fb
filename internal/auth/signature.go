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
	Text  string // the signed text: method, path, sorted parameters and the body
	Nonce string
	At    time.Time
}

// Sign makes the value of a signature.
func Sign(key, text string) string {
	h := hmac.New(sha1.New, []byte(key))
	h.Write([]byte(text))
	return base64.StdEncoding.EncodeToString(h.Sum(nil))
}

// signatureWindow is the largest difference between the time of a signature and the server's time.
const signatureWindow = 300 * time.Second

const maxNonceBytes = 64

// checkSignature identifies an app by its signature. An app that does not sign is rejected like one that does not
// exist.
func (b *Directory) checkSignature(e *entry, c *Credentials) (App, error) {
	s, names := c.Signature, c.names()
	now := b.o.Now()

	// Reject what could not be recognised as a replay.
	switch age := now.Sub(s.At); {
	case s.Nonce == "" || len(s.Nonce) > maxNonceBytes:
		return App{}, b.refuse("signature", gozzard.ErrUnauthenticated, "%s: required, at most %d bytes",
			names.Nonce, maxNonceBytes)
	case age > signatureWindow || age < -signatureWindow:
		return App{}, b.refuse("signature_time", gozzard.ErrUnauthenticated,
			"%s is more than %d s away from the server's time",
			names.Time, int(signatureWindow.Seconds()))
	case s.At.Before(b.started.Truncate(time.Second)): // the used nonces of that time are forgotten
		return App{}, b.refuse("signature_time", gozzard.ErrUnauthenticated,
			"%s is from before the server's start: sign again", names.Time)
	}

	// Compare with every key. An app without keys takes the same time.
	match := false
	for i := range maxSecrets {
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

	// Accept each nonce once.
	switch fresh, full := b.nonces.use(c.App+"\x00"+s.Nonce, now); {
	case full:
		return App{}, b.refuse("signature_flood", gozzard.ErrRateLimited,
			"too many signed requests: send fewer, or send the secret instead")
	case !fresh:
		return App{}, b.refuse("signature_replay", gozzard.ErrUnauthenticated, "%s was used before", names.Nonce)
	}

	return e.app, nil
}

// nonces remembers a used nonce for as long as its signature is valid.
type nonces struct {
	mu   sync.Mutex
	used map[string]time.Time // until when it must be remembered
}

// maxNonces allows 300 signed requests a second.
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

	n.used[key] = now.Add(2 * signatureWindow) // a signature from a clock that is ahead stays valid longer
	return true, false
}
