package auth

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"golang.org/x/crypto/argon2"

	"github.com/gozzard/gozzard"
)

// The cost of hashing a new password: 19 MiB, two passes, some 40 ms. Each hash contains its cost, so these numbers
// can be raised.
const (
	argonMemory = 19 * 1024 // KiB
	argonTime   = 2
	argonLanes  = 1
	argonSalt   = 16
	argonKey    = 32
)

// The highest cost of a stored hash. Without a limit, one row in the record could stop the server.
const (
	maxArgonMemory = 256 * 1024
	maxArgonTime   = 10
)

// The length of a password.
const (
	MinPassword = 12  // characters
	MaxPassword = 256 // bytes
)

// password is a stored hash.
type password struct {
	memory, time uint32
	lanes        uint8
	salt, key    []byte
}

// parsePassword reads $argon2id$v=19$m=…,t=…,p=…$salt$key.
func parsePassword(s string) (password, error) {
	var p password
	var version int
	parts := strings.Split(s, "$")
	bad := fmt.Errorf("is not an argon2id hash")

	if len(parts) != 6 || parts[0] != "" || parts[1] != "argon2id" {
		return p, bad
	}
	if n, err := fmt.Sscanf(parts[2], "v=%d", &version); n != 1 || err != nil || version != argon2.Version {
		return p, bad
	}
	if n, err := fmt.Sscanf(parts[3], "m=%d,t=%d,p=%d", &p.memory, &p.time, &p.lanes); n != 3 || err != nil {
		return p, bad
	}

	var err, err2 error
	p.salt, err = base64.RawStdEncoding.DecodeString(parts[4])
	p.key, err2 = base64.RawStdEncoding.DecodeString(parts[5])
	if err != nil || err2 != nil || len(p.salt) < 8 || len(p.key) != argonKey {
		return p, bad
	}
	if p.time < 1 || p.time > maxArgonTime || p.lanes < 1 || p.memory < 8*uint32(p.lanes) || p.memory > maxArgonMemory {
		return p, fmt.Errorf("is an argon2id hash of a cost that is not accepted")
	}

	return p, nil
}

func (p *password) matches(text string) bool {
	key := argon2.IDKey([]byte(text), p.salt, p.time, p.memory, p.lanes, uint32(len(p.key)))
	return subtle.ConstantTimeCompare(key, p.key) == 1
}

func newPassword(text string) string {
	salt := make([]byte, argonSalt)
	_, _ = rand.Read(salt) // never fails since Go 1.24: it ends the program instead
	key := argon2.IDKey([]byte(text), salt, argonTime, argonMemory, argonLanes, argonKey)
	b64 := base64.RawStdEncoding.EncodeToString
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, argonMemory, argonTime, argonLanes,
		b64(salt), b64(key))
}

// hash makes the hash of a new password. Only callers that the server knows get here.
func (a *Accounts) hash(ctx context.Context, text string) (string, error) {
	if n := utf8.RuneCountInString(text); n < MinPassword || len(text) > MaxPassword || !utf8.ValidString(text) {
		return "", gozzard.Errorf(gozzard.ErrInvalid, "a password has at least %d characters and at most %d bytes",
			MinPassword, MaxPassword)
	}
	var hashed string
	w := &waiter{from: sourceOf(ctx), claim: claimUsual, identified: true}
	err := a.hasher.lanes.use(ctx, w, func() { hashed = newPassword(text) })
	return hashed, err
}

// hasher hashes two passwords at a time, so that thousands of guesses use neither all memory nor all processors.
type hasher struct {
	lanes  *lanes
	usual  *usual
	absent password      // is checked for users without a password, so that all take the same time
	took   *atomic.Int64 // nanoseconds of the last check
}

func newHasher(u *usual) hasher {
	h := hasher{lanes: &lanes{}, usual: u,
		absent: password{memory: argonMemory, time: argonTime, lanes: argonLanes, salt: make([]byte, argonSalt),
			key: make([]byte, argonKey)}, took: new(atomic.Int64)}
	_, _ = rand.Read(h.absent.key)
	return h
}

// check compares a password with the stored hash of a user; "" is the hash of a user without a password, and of a name
// that no user has. The caller waits in the lane of its network.
func (h *hasher) check(ctx context.Context, name, recorded, text string) (ok bool, err error) {
	// Read the stored hash.
	p := h.absent
	if recorded != "" {
		if p, err = parsePassword(recorded); err != nil {
			return false, fmt.Errorf("cannot read a stored password: %w", err)
		}
	}
	if len(text) > MaxPassword {
		text = ""
	}

	// Compare.
	from := sourceOf(ctx)
	w := &waiter{from: from, claim: h.usual.claim(name, from.network)}
	err = h.lanes.use(ctx, w, func() {
		began := time.Now()
		ok = p.matches(text)
		h.took.Store(int64(time.Since(began)))
	})

	return ok && recorded != "", err
}

// failed takes note of a wrong password, or of a name that no user has.
func (h *hasher) failed(ctx context.Context) {
	network := sourceOf(ctx).network
	h.usual.fail(network)
	h.lanes.failed(network)
}
