package auth

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"strings"
	"unicode/utf8"

	"golang.org/x/crypto/argon2"

	"github.com/gozzard/gozzard"
)

// The cost of a password, for new ones: 19 MiB twice over, some 40 ms. What is recorded says its own cost, so this
// can be raised.
const (
	argonMemory = 19 * 1024 // KiB
	argonTime   = 2
	argonLanes  = 1
	argonSalt   = 16
	argonKey    = 32
)

// What a recorded password may cost at most, so that nobody who can write the record can stop the server with it.
const (
	maxArgonMemory = 256 * 1024
	maxArgonTime   = 10
)

// The sizes of passwords.
const (
	MinPassword = 12 // characters
	MaxPassword = 256
)

// password is a recorded one.
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

// hash makes the recorded form of a new password.
func (a *Accounts) hash(ctx context.Context, text string) (string, error) {
	if n := utf8.RuneCountInString(text); n < MinPassword || len(text) > MaxPassword || !utf8.ValidString(text) {
		return "", gozzard.Errorf(gozzard.ErrInvalid, "a password has at least %d characters and at most %d bytes",
			MinPassword, MaxPassword)
	}
	var hashed string
	err := a.kiln.use(ctx, func() { hashed = newPassword(text) })
	return hashed, err
}

// kiln is where passwords are hashed: a few at a time, so that guesses by the thousand take neither all memory nor
// all processors.
type kiln struct {
	places chan struct{}
	queue  chan struct{}
	absent password // stands in for people without a password, so that all cost the same
}

const (
	kilnPlaces = 2
	kilnQueue  = 16
)

func newKiln() kiln {
	k := kiln{places: make(chan struct{}, kilnPlaces), queue: make(chan struct{}, kilnQueue),
		absent: password{memory: argonMemory, time: argonTime, lanes: argonLanes, salt: make([]byte, argonSalt),
			key: make([]byte, argonKey)}}
	_, _ = rand.Read(k.absent.key)
	return k
}

// use waits for a place. Who finds the queue full is sent away.
func (k *kiln) use(ctx context.Context, f func()) error {
	select {
	case k.queue <- struct{}{}:
		defer func() { <-k.queue }()
	default:
		return gozzard.Errorf(gozzard.ErrRateLimited, "too many people are logging in: try again in a moment")
	}

	select {
	case k.places <- struct{}{}:
		defer func() { <-k.places }()
	case <-ctx.Done():
		return ctx.Err()
	}

	f()
	return nil
}

// check compares a password with its recorded form; "" stands for a person who has none.
func (k *kiln) check(ctx context.Context, recorded, text string) (ok bool, err error) {
	p := k.absent
	if recorded != "" {
		if p, err = parsePassword(recorded); err != nil {
			return false, fmt.Errorf("cannot read a recorded password: %w", err)
		}
	}
	if len(text) > MaxPassword {
		text = ""
	}
	err = k.use(ctx, func() { ok = p.matches(text) })
	return ok && recorded != "", err
}
