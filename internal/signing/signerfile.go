package signing

import (
	"bytes"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/gozzard/gozzard/internal/atomicfile"
)

// The versions of the file. Programs that know only the first one reject a key that is not in the file.
const (
	signerVersion  = 1
	outsideVersion = 2
)

// signerFile is the content of the server's key file: its public keys in the order of their epochs, and the secret of
// the last one, or its name where the secret is not in this file.
type signerFile struct {
	Version int         `json:"version"`
	Keys    []signerKey `json:"keys"`
	Seed    []byte      `json:"seed,omitempty"`
	Outside string      `json:"outside,omitempty"`
}

// signerKey is one public key in the file.
type signerKey struct {
	Key      string    `json:"key"`
	Made     time.Time `json:"made"`
	HandOver []byte    `json:"hand_over,omitempty"` // signature of the previous key; the oldest stored key has none

	parsed Key
}

func newSeed() ed25519.PrivateKey {
	_, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		panic(err) // the system's randomness does not fail: it ends the program instead
	}
	return private
}

func publicOf(private ed25519.PrivateKey, epoch uint64) Key {
	return Key{Epoch: epoch, Public: [ed25519.PublicKeySize]byte(private[ed25519.SeedSize:])}
}

// next adds a key without a hand-over: one of makes, or without it a new one.
func (f signerFile) next(makes Outside, now time.Time) (signerFile, error) {
	epoch := f.newest().Epoch + 1
	var k Key
	if makes != nil {
		var err error
		if k, err = outsideKey(makes, epoch); err != nil {
			return f, err
		}
		f.Version, f.Seed, f.Outside = outsideVersion, nil, outsideName(epoch)
	} else {
		private := newSeed()
		k = publicOf(private, epoch)
		f.Version, f.Seed, f.Outside = signerVersion, private.Seed(), ""
	}

	f.Keys = append(slices.Clone(f.Keys), signerKey{Key: k.String(), Made: now.UTC().Truncate(time.Second), parsed: k})
	return f, nil
}

// signWith returns the function that signs with the newest key.
func (f signerFile) signWith(have Outside) (signFunc, error) {
	if f.Outside == "" {
		private := ed25519.NewKeyFromSeed(f.Seed)
		return func(text []byte) ([]byte, error) { return ed25519.Sign(private, text), nil }, nil
	}
	if have == nil {
		return nil, ErrOutside
	}

	k, err := outsideKey(have, f.newest().Epoch)
	if err != nil {
		return nil, err
	}
	if k != f.newest() {
		return nil, fmt.Errorf("key %s of the external signer is %s, but the agents know %s", f.Outside, k.ID(),
			f.newest().ID())
	}
	return outsideSign(have, f.Outside, k), nil
}

func (f signerFile) newest() Key {
	if len(f.Keys) == 0 {
		return Key{}
	}
	return f.Keys[len(f.Keys)-1].parsed
}

// rotate adds a new key with its hand-over and drops the oldest keys. sign is that of the newest key.
func (f signerFile) rotate(sign signFunc, makes Outside, now time.Time) (signerFile, error) {
	old := f.newest()
	next, err := f.next(makes, now)
	if err != nil {
		return f, err
	}
	h, err := signHandOver(sign, old.ID(), next.newest())
	if err != nil {
		return f, err
	}

	next.Keys[len(next.Keys)-1].HandOver = h.signature[:]
	if extra := len(next.Keys) - maxHandOvers - 1; extra > 0 {
		next.Keys = next.Keys[extra:]
		next.Keys[0].HandOver = nil
	}
	return next, next.check()
}

func (f signerFile) state(sign signFunc) *signerState {
	s := &signerState{sign: sign, key: f.newest(), id: f.newest().ID(), since: f.newest().Epoch}
	for i, k := range f.Keys {
		s.history = append(s.history, DatedKey{Key: k.parsed, At: k.Made})
		if i > 0 {
			h := handOver{to: k.parsed, signature: [ed25519.SignatureSize]byte(k.HandOver)}
			s.handOvers = h.append(s.handOvers)
		}
	}
	return s
}

func (f signerFile) encode() []byte {
	b, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		panic(err) // its fields can always be encoded
	}
	return append(b, '\n')
}

// readSigner rejects an incomplete file: with a part of the history the server could not introduce its key to all
// agents.
func readSigner(path string) (signerFile, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return signerFile{}, fmt.Errorf("cannot read the signing key: %w", err)
	}
	if err := atomicfile.Check(path); err != nil {
		return signerFile{}, err
	}

	f, err := decodeSigner(b)
	if err != nil {
		return signerFile{}, fmt.Errorf("cannot read the signing key in %s: %w", path, err)
	}
	if err := f.check(); err != nil {
		return signerFile{}, fmt.Errorf("cannot use the signing key in %s: %w", path, err)
	}

	return f, nil
}

// decodeSigner reads the content of a file. check must follow.
func decodeSigner(b []byte) (f signerFile, err error) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	err = d.Decode(&f)
	return f, err
}

// check verifies the hand-overs and parses the keys.
func (f signerFile) check() error {
	if f.Version != signerVersion && f.Version != outsideVersion {
		return fmt.Errorf("its version is %d, this program supports %d and %d", f.Version, signerVersion, outsideVersion)
	}
	isOutside := f.Version == outsideVersion
	if len(f.Keys) == 0 || len(f.Keys) > maxHandOvers+1 || isOutside != (f.Outside != "") ||
		isOutside != (len(f.Seed) == 0) || !isOutside && len(f.Seed) != ed25519.SeedSize {
		return errors.New("it is incomplete")
	}

	// Each key must follow the previous one.
	for i := range f.Keys {
		k := &f.Keys[i]
		var err error
		if k.parsed, err = ParseKey(k.Key); err != nil {
			return err
		}
		if i == 0 {
			continue
		}

		if len(k.HandOver) != ed25519.SignatureSize {
			return fmt.Errorf("nothing introduces epoch %d", k.parsed.Epoch)
		}
		h := handOver{to: k.parsed, signature: [ed25519.SignatureSize]byte(k.HandOver)}
		if _, err := h.follow(f.Keys[i-1].parsed); err != nil {
			return err
		}
	}

	// The secret must be that of the newest key.
	if isOutside && f.Outside != outsideName(f.newest().Epoch) {
		return errors.New("it names another key than its newest one")
	}
	if !isOutside && publicOf(ed25519.NewKeyFromSeed(f.Seed), f.newest().Epoch) != f.newest() {
		return errors.New("its secret does not belong to its newest key")
	}

	return nil
}
