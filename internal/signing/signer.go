package signing

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/atomicfile"
)

// SignerFile is the name of the server's signing key in its data folder.
const SignerFile = "signing.key"

// Signer signs commands. It is safe for concurrent use.
type Signer struct {
	private   ed25519.PrivateKey
	key       Key
	id        KeyID
	handOvers []byte
	history   []Made
	now       func() time.Time
}

// Made is a key of a server's history.
type Made struct {
	Key Key
	At  time.Time
}

// OpenSigner reads the signing key of a data folder, which must exist, and makes the first one. now is nil but in
// tests.
func OpenSigner(dir string, now func() time.Time) (*Signer, error) {
	if now == nil {
		now = time.Now
	}

	path := filepath.Join(dir, SignerFile)
	f, err := readSigner(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err := atomicfile.Create(path, firstKey(now()).encode()); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, fmt.Errorf("cannot keep the signing key: %w", err)
		}
		f, err = readSigner(path)
	}

	if err != nil {
		return nil, err
	}

	return f.signer(now), nil
}

// Key is the one that signs.
func (s *Signer) Key() Key { return s.key }

// History lists the keys from the oldest kept to the one that signs.
func (s *Signer) History() []Made { return append([]Made(nil), s.history...) }

// Append adds an envelope for one agent around what write appends.
func (s *Signer) Append(b []byte, to gozzard.AgentID, kind gozzard.CommandKind, write func([]byte) []byte) []byte {
	body := s.Begin(nil, to, kind, write)
	s.Sign([]*[]byte{&body})
	return append(b, body...)
}

// Begin adds an envelope that lacks its end, which Sign gives it. What may be the first thing that an agent hears
// in a session also introduces the key.
func (s *Signer) Begin(b []byte, to gozzard.AgentID, kind gozzard.CommandKind, write func([]byte) []byte) []byte {
	if len(to) > math.MaxUint8 {
		panic("agent id of an envelope is too long") // Validate of the root allows far less
	}

	var handOvers []byte

	if kind == gozzard.CommandWelcome || kind == gozzard.CommandGreet {
		handOvers = s.handOvers
	}

	var salt [saltBytes]byte
	_, _ = rand.Read(salt[:]) // never fails
	b = appendHead(b, s.id, s.key.Epoch, s.now().Add(Life).Unix(), to, handOvers, salt[:])
	at := len(b)
	b = write(append(b, 0, 0, 0, 0))
	binary.BigEndian.PutUint32(b[at:], uint32(len(b)-at-4))
	return b
}

// Sign ends envelopes that were begun, each in a slice of its own, with one signature for up to MaxBatch of them.
func (s *Signer) Sign(begun []*[]byte) {
	for len(begun) > 0 {
		n := min(len(begun), MaxBatch)
		proofs(begun[:n], func(text []byte) []byte { return ed25519.Sign(s.private, text) })
		begun = begun[n:]
	}
}

// Rotate makes the next key of a data folder and has the present one introduce it; the present one is forgotten. A
// server that runs goes on with the old key until it is started again.
func Rotate(dir string, now func() time.Time) (old, next Key, err error) {
	if now == nil {
		now = time.Now
	}

	path := filepath.Join(dir, SignerFile)
	err = atomicfile.Replace(path, func() ([]byte, error) {
		f, err := readSigner(path)
		if err != nil {
			return nil, err
		}
		old = f.newest()
		f, err = f.rotate(now())
		next = f.newest()
		return f.encode(), err
	})

	if err != nil {
		return Key{}, Key{}, fmt.Errorf("cannot rotate the signing key: %w", err)
	}

	return old, next, nil
}

// Keys lists the keys of a data folder, oldest first, without making any.
func Keys(dir string) ([]Made, error) {
	f, err := readSigner(filepath.Join(dir, SignerFile))
	if err != nil {
		return nil, err
	}
	return f.signer(time.Now).history, nil
}
