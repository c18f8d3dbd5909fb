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
	history   []DatedKey
	now       func() time.Time
}

// DatedKey is a key of a server's history, with the time of its creation.
type DatedKey struct {
	Key Key
	At  time.Time
}

// OpenSigner reads the signing key of a data folder and creates the first one if there is none. The folder must exist.
// now is nil except in tests.
func OpenSigner(dir string, now func() time.Time) (*Signer, error) {
	if now == nil {
		now = time.Now
	}

	path := filepath.Join(dir, SignerFile)
	f, err := readSigner(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err := atomicfile.Create(path, firstKey(now()).encode()); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, fmt.Errorf("cannot save the signing key: %w", err)
		}
		f, err = readSigner(path)
	}
	if err != nil {
		return nil, err
	}

	return f.signer(now), nil
}

// Key is the key that signs.
func (s *Signer) Key() Key { return s.key }

// History lists the stored keys, from the oldest to the one that signs.
func (s *Signer) History() []DatedKey { return append([]DatedKey(nil), s.history...) }

// Append appends a signed envelope for one agent. write appends the command.
func (s *Signer) Append(b []byte, to gozzard.AgentID, kind gozzard.CommandKind, write func([]byte) []byte) []byte {
	body := s.Begin(nil, to, kind, write)
	s.Sign([]*[]byte{&body})
	return append(b, body...)
}

// Begin appends an envelope without its proof, which Sign appends later. Commands that can be the first ones of a
// session also contain the hand-overs.
func (s *Signer) Begin(b []byte, to gozzard.AgentID, kind gozzard.CommandKind, write func([]byte) []byte) []byte {
	if len(to) > math.MaxUint8 {
		panic("agent id of an envelope is too long") // AgentID.Validate allows much less
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

// Sign appends the proofs to envelopes of Begin, with one signature for up to MaxBatch of them. Each envelope must be
// in a separate slice.
func (s *Signer) Sign(begun []*[]byte) {
	for len(begun) > 0 {
		n := min(len(begun), MaxBatch)
		appendProofs(begun[:n], func(text []byte) []byte { return ed25519.Sign(s.private, text) })
		begun = begun[n:]
	}
}

// Rotate creates the next key of a data folder. The current key signs the hand-over, and its secret part is deleted. A
// running server uses the old key until it is restarted.
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

// Keys lists the keys of a data folder, oldest first. It creates none.
func Keys(dir string) ([]DatedKey, error) {
	f, err := readSigner(filepath.Join(dir, SignerFile))
	if err != nil {
		return nil, err
	}
	return f.signer(time.Now).history, nil
}
