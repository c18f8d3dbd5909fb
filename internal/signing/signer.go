package signing

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/atomicfile"
)

// SignerFile is the name of the server's signing key in its data folder.
const SignerFile = "signing.key"

// introduceFor is how long after a rotation every command contains the hand-over to the new key. Within this time each
// agent with an open session gets many commands. An agent that comes back later opens a new session, and the commands
// that open one contain all hand-overs.
const introduceFor = 24 * time.Hour

// Signer signs commands. It is safe for concurrent use.
type Signer struct {
	o    SignerOptions
	path string

	rotating sync.Mutex
	state    atomic.Pointer[signerState]
}

// SignerOptions say where the keys of a Signer are. Dir is required.
type SignerOptions struct {
	Dir string           // the data folder, which must exist
	Now func() time.Time // nil except in tests

	// Outside has keys that are not in the data folder. nil: there are none.
	Outside Outside
	// MakeOutside says that new keys are those of Outside. A key in the data folder stays in use until a rotation.
	MakeOutside bool
}

// signerState is what a Signer signs with between two rotations.
type signerState struct {
	sign      signFunc
	key       Key
	id        KeyID
	handOvers []byte
	history   []DatedKey

	since  uint64       // agents with an open session know the key of this epoch, or a newer one
	until  time.Time    // every command introduces the keys after that epoch until then
	before *signerState // has the key before, for commands that were begun with it; nil: none
}

// DatedKey is a key of a server's history, with the time of its creation.
type DatedKey struct {
	Key Key
	At  time.Time
}

// OpenSigner reads the signing key of a data folder and creates the first one if there is none. The folder must exist.
// now is nil except in tests.
func OpenSigner(dir string, now func() time.Time) (*Signer, error) {
	return NewSigner(SignerOptions{Dir: dir, Now: now})
}

// NewSigner is OpenSigner for keys that may be outside of the data folder.
func NewSigner(o SignerOptions) (*Signer, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	s := &Signer{o: o, path: filepath.Join(o.Dir, SignerFile)}

	// Read the key, or make the first one.
	f, err := readSigner(s.path)
	if errors.Is(err, fs.ErrNotExist) {
		f, err = s.first()
	}
	if err != nil {
		return nil, err
	}

	// Find its secret part.
	sign, err := f.signWith(o.Outside)
	if err != nil {
		return nil, fmt.Errorf("cannot use the signing key in %s: %w", s.path, err)
	}
	s.state.Store(f.state(sign))
	return s, nil
}

// first makes the first key of a data folder. Another program may do the same at this time: then its key counts.
func (s *Signer) first() (signerFile, error) {
	f, err := signerFile{}.next(s.o.outside(), s.o.Now())
	if err != nil {
		return f, fmt.Errorf("cannot make the signing key: %w", err)
	}
	if err := atomicfile.Create(s.path, f.encode()); err != nil && !errors.Is(err, fs.ErrExist) {
		return f, fmt.Errorf("cannot save the signing key: %w", err)
	}
	return readSigner(s.path)
}

// outside is where new keys come from; nil: the data folder.
func (o *SignerOptions) outside() Outside {
	if o.MakeOutside {
		return o.Outside
	}
	return nil
}

// Key is the key that signs.
func (s *Signer) Key() Key { return s.state.Load().key }

// History lists the stored keys, from the oldest to the one that signs.
func (s *Signer) History() []DatedKey { return append([]DatedKey(nil), s.state.Load().history...) }

// IsOutside reports whether the key that signs is not in the data folder.
func (s *Signer) IsOutside() (bool, error) {
	f, err := readSigner(s.path)
	return f.Outside != "", err
}

// Append appends a signed envelope for one agent. write appends the command. It appends nothing if the key cannot sign.
func (s *Signer) Append(b []byte, to gozzard.AgentID, kind gozzard.CommandKind, write func([]byte) []byte) []byte {
	body := s.Begin(nil, to, kind, write)
	s.Sign([]*[]byte{&body})
	return append(b, body...)
}

// Begin appends an envelope without its proof, which Sign appends later. Commands that can be the first ones of a
// session also contain the hand-overs. After a rotation all commands contain the newest ones for a time.
func (s *Signer) Begin(b []byte, to gozzard.AgentID, kind gozzard.CommandKind, write func([]byte) []byte) []byte {
	if len(to) > math.MaxUint8 {
		panic("agent id of an envelope is too long") // AgentID.Validate allows much less
	}

	st, now := s.state.Load(), s.o.Now()
	var handOvers []byte
	switch {
	case kind == gozzard.CommandWelcome || kind == gozzard.CommandGreet:
		handOvers = st.handOvers
	case now.Before(st.until):
		handOvers = st.newest()
	}

	var salt [saltBytes]byte
	_, _ = rand.Read(salt[:]) // never fails

	b = appendHead(b, st.id, st.key.Epoch, now.Add(Life).Unix(), to, handOvers, salt[:])
	at := len(b)
	b = write(append(b, 0, 0, 0, 0))
	binary.BigEndian.PutUint32(b[at:], uint32(len(b)-at-4))
	return b
}

// newest are the hand-overs that an agent with an open session may not have seen.
func (st *signerState) newest() []byte {
	missed := st.key.Epoch - st.since
	return st.handOvers[len(st.handOvers)-int(min(missed*handOverBytes, uint64(len(st.handOvers)))):]
}

// Sign appends the proofs to envelopes of Begin, with one signature for up to MaxBatch of them. Each envelope must be
// in a separate slice. It empties the envelopes that it cannot sign, and returns the reason.
func (s *Signer) Sign(begun []*[]byte) (err error) {
	for len(begun) > 0 {
		// Take those of one key: a rotation may have come between two of them.
		epoch, n := epochOf(*begun[0]), 1
		for n < min(len(begun), MaxBatch) && epochOf(*begun[n]) == epoch {
			n++
		}

		e := s.state.Load().signerOf(epoch, func(sign signFunc) error { return appendProofs(begun[:n], sign) })
		if e != nil {
			for _, b := range begun[:n] {
				*b = (*b)[:0]
			}
			err = errors.Join(err, fmt.Errorf("cannot sign %d commands: %w", n, e))
		}
		begun = begun[n:]
	}

	return err
}

// signerOf calls f with the key of an epoch: the present one or the one before.
func (st *signerState) signerOf(epoch uint64, f func(signFunc) error) error {
	for ; st != nil; st = st.before {
		if st.key.Epoch == epoch {
			return f(st.sign)
		}
	}
	return fmt.Errorf("the key of epoch %d was replaced", epoch)
}

// Rotate makes the next key. The present key signs the hand-over, and its secret part is deleted. Commands that are
// begun from now on are signed with the new key and introduce it to the agents. saved is called before the new key is
// used.
func (s *Signer) Rotate(saved func(Key) error) (old, next Key, err error) {
	s.rotating.Lock()
	defer s.rotating.Unlock()

	// Save the new key.
	f, old, err := rotateFile(s.path, s.o.Outside, s.o.outside(), s.o.Now())
	if err != nil {
		return Key{}, Key{}, err
	}
	sign, err := f.signWith(s.o.Outside)
	if err != nil {
		return Key{}, Key{}, fmt.Errorf("cannot use the new signing key: %w", err)
	}

	// Use it. Agents of this machine that start from now on must know it.
	err = saved(f.newest())
	s.change(&f, sign)
	return old, f.newest(), err
}

// change signs with the newest key of a file from now on. It keeps the one before in memory, for commands that were begun
// with it.
func (s *Signer) change(f *signerFile, sign signFunc) {
	have, now := s.state.Load(), s.o.Now()
	st := f.state(sign)
	st.since, st.until = have.key.Epoch, now.Add(introduceFor)
	if now.Before(have.until) {
		st.since = have.since
	}
	before := *have
	before.before = nil
	st.before = &before
	s.state.Store(st)
}

// Rotate creates the next key of a data folder. The current key signs the hand-over, and its secret part is deleted. A
// running server uses the old key until it is restarted. It returns ErrOutside for a key that is not in the folder.
func Rotate(dir string, now func() time.Time) (old, next Key, err error) {
	if now == nil {
		now = time.Now
	}
	f, old, err := rotateFile(filepath.Join(dir, SignerFile), nil, nil, now())
	return old, f.newest(), err
}

// rotateFile adds a key to the file of a signer. have has the present key, if it is outside; make has the new one.
func rotateFile(path string, have, makes Outside, now time.Time) (f signerFile, old Key, err error) {
	err = atomicfile.Replace(path, func() ([]byte, error) {
		f, err = readSigner(path)
		if err != nil {
			return nil, err
		}
		sign, err := f.signWith(have)
		if err != nil {
			return nil, err
		}

		old = f.newest()
		f, err = f.rotate(sign, makes, now)
		return f.encode(), err
	})
	if err != nil {
		return signerFile{}, Key{}, fmt.Errorf("cannot rotate the signing key: %w", err)
	}

	return f, old, nil
}

// Keys lists the keys of a data folder, oldest first. It creates none.
func Keys(dir string) ([]DatedKey, error) {
	f, err := readSigner(filepath.Join(dir, SignerFile))
	if err != nil {
		return nil, err
	}
	return f.state(nil).history, nil
}
