package auth

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha1"
	"crypto/subtle"
	"encoding/base32"
	"encoding/binary"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
)

// The form of codes, which authenticator programs expect by default (RFC 6238).
const (
	totpPeriod  = 30 // seconds that a code is shown
	totpDigits  = 6
	totpModulus = 1_000_000
	totpSecret  = 20 // bytes
	totpDrift   = 1  // periods that a clock may be ahead or behind
)

// The recovery codes: 80 random bits each, so a plain hash of them is stored.
const (
	recoveryCodes = 10
	recoveryBytes = 10
)

// SecondFactor is the second factor of a password: codes of the time (TOTP) and recovery codes. The secret of the codes
// is stored as it is: a code cannot be checked with a digest.
type SecondFactor struct {
	Secret   []byte   `json:"secret,omitempty"`   // empty while the first one waits for its confirmation
	Last     int64    `json:"last,omitempty"`     // the period of the last code that was used: codes up to it are used up
	Recovery []Digest `json:"recovery,omitempty"` // of the recovery codes that were not used

	NextSecret   []byte   `json:"next_secret,omitempty"` // waits for its confirmation
	NextRecovery []Digest `json:"next_recovery,omitempty"`
}

// Enrolment is a new second factor. It is shown once.
type Enrolment struct {
	Secret   string   // in base32, to type it
	URI      string   // otpauth://, to show it as a QR code
	Recovery []string // each is accepted once in place of a code
}

// HasSecond reports whether logins of the user need a code.
func (u *User) HasSecond() bool { return u.Second != nil && len(u.Second.Secret) > 0 }

var base32Text = base32.StdEncoding.WithPadding(base32.NoPadding)

// newEnrolment makes a second factor that waits for its confirmation, beside the one that the user has.
func newEnrolment(name string, had *SecondFactor) (*SecondFactor, Enrolment) {
	next := &SecondFactor{NextSecret: make([]byte, totpSecret)}
	if had != nil {
		next.Secret, next.Last, next.Recovery = had.Secret, had.Last, had.Recovery
	}

	_, _ = rand.Read(next.NextSecret) // never fails since Go 1.24: it ends the program instead
	e := Enrolment{Secret: base32Text.EncodeToString(next.NextSecret)}
	e.URI = "otpauth://totp/" + url.PathEscape("gozzard:"+name) + "?" +
		url.Values{"secret": {e.Secret}, "issuer": {"gozzard"}}.Encode()

	for range recoveryCodes {
		var b [recoveryBytes]byte
		_, _ = rand.Read(b[:])
		text := strings.ToLower(base32Text.EncodeToString(b[:]))
		e.Recovery = append(e.Recovery, text[:4]+"-"+text[4:8]+"-"+text[8:12]+"-"+text[12:])
		next.NextRecovery = append(next.NextRecovery, recoveryDigest(text))
	}

	return next, e
}

// confirm makes the waiting factor the present one. The code proves that the user's device has its secret.
func (f *SecondFactor) confirm(code string, now time.Time) (*SecondFactor, bool) {
	period, ok := matchPeriod(f.NextSecret, code, now, 0)
	if !ok {
		return nil, false
	}
	return &SecondFactor{Secret: f.NextSecret, Last: period, Recovery: f.NextRecovery}, true
}

// use checks a code or a recovery code and uses it up.
func (f *SecondFactor) use(code string, now time.Time) (*SecondFactor, bool) {
	left := *f

	if period, ok := matchPeriod(f.Secret, code, now, f.Last); ok {
		left.Last = period
		return &left, true
	}

	d := recoveryDigest(code)
	i := slices.Index(f.Recovery, d)
	if i < 0 {
		return nil, false
	}
	left.Recovery = slices.Delete(slices.Clone(f.Recovery), i, i+1)
	return &left, true
}

// recoveryDigest is the digest of a recovery code, however it is written.
func recoveryDigest(code string) Digest {
	return Hash("recovery:" + strings.ToLower(strings.NewReplacer("-", "", " ", "").Replace(code)))
}

// matchPeriod finds the period of a code that is valid now and later than the last one that was used.
func matchPeriod(secret []byte, code string, now time.Time, last int64) (period int64, ok bool) {
	code = strings.ReplaceAll(code, " ", "")
	if len(secret) == 0 || len(code) != totpDigits {
		return 0, false
	}

	present := now.Unix() / totpPeriod
	for p := present - totpDrift; p <= present+totpDrift; p++ {
		if subtle.ConstantTimeCompare([]byte(totpCode(secret, p)), []byte(code)) == 1 && p > last {
			period, ok = p, true
		}
	}
	return period, ok
}

// totpCode is the code of a period. SHA-1 is what all authenticator programs know; it is safe as a keyed hash.
func totpCode(secret []byte, period int64) string {
	h := hmac.New(sha1.New, secret)
	_ = binary.Write(h, binary.BigEndian, period) // a hash never fails
	sum := h.Sum(nil)
	at := sum[len(sum)-1] & 0xf
	n := binary.BigEndian.Uint32(sum[at:]) & 0x7fffffff
	return fmt.Sprintf("%0*d", totpDigits, n%totpModulus)
}
