package signing

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gozzard/gozzard/internal/atomicfile"
)

// The names of the keys that a server will use when all servers of its installation have them. They are as secret as
// SignerFile. There are several if two servers rotate at the same time: one of them wins, and its key must be there.
const (
	nextPrefix = "signing-next-"
	nextSuffix = ".key"
)

// ErrNotKept says that a server does not have a key.
var ErrNotKept = errors.New("this server does not have the key")

// Next makes the key after the present one, and returns the content of SignerFile with it. It is not used before Keep and
// Use.
func (s *Signer) Next() (file []byte, key Key, err error) {
	s.rotating.Lock()
	defer s.rotating.Unlock()
	f, err := readSigner(s.path)
	if err != nil {
		return nil, Key{}, err
	}

	sign, err := f.signWith(s.o.Outside)
	if err == nil {
		f, err = f.rotate(sign, s.o.outside(), s.o.Now())
	}
	if err != nil {
		return nil, Key{}, fmt.Errorf("cannot make the next signing key: %w", err)
	}
	return f.encode(), f.newest(), nil
}

// File is the content of SignerFile with the present key, for another server of the same installation.
func (s *Signer) File() ([]byte, error) {
	s.rotating.Lock()
	defer s.rotating.Unlock()
	f, err := readSigner(s.path)
	if err != nil {
		return nil, err
	}
	if f.newest() != s.Key() {
		return nil, fmt.Errorf("%s was rotated beside the running server: restart this server", s.path)
	}
	return f.encode(), nil
}

// Keep stores the file of another server, or of Next, in which key is the newest one. Use uses it.
func (s *Signer) Keep(key Key, file []byte) error {
	s.rotating.Lock()
	defer s.rotating.Unlock()
	f, err := decodeSigner(file)
	if err == nil {
		err = f.check()
	}
	if err == nil && f.newest() != key {
		err = fmt.Errorf("it is %s in place of %s", f.newest().ID(), key.ID())
	}
	if err != nil {
		return fmt.Errorf("cannot use the signing key of another server: %w", err)
	}

	// It must be one that the agents of this server will accept. A server that missed more rotations than a file has cannot
	// tell: Use is called with the key of the record only.
	own := s.Key()
	if key == own {
		return nil
	}
	isOwn := func(k signerKey) bool { return k.parsed == own }
	if key.Epoch <= own.Epoch || !slices.ContainsFunc(f.Keys, isOwn) && own.Epoch >= f.Keys[0].parsed.Epoch {
		return fmt.Errorf("signing key %s of epoch %d does not follow key %s of epoch %d, which this server uses", key.ID(),
			key.Epoch, own.ID(), own.Epoch)
	}

	// This server must be able to sign with it.
	if _, err := f.signWith(s.o.Outside); err != nil {
		return err
	}
	if err := atomicfile.Write(s.next(key), f.encode()); err != nil {
		return fmt.Errorf("cannot save the next signing key: %w", err)
	}
	return nil
}

// next is the path of a key that is kept.
func (s *Signer) next(key Key) string {
	return filepath.Join(filepath.Dir(s.path), nextPrefix+key.ID().String()+nextSuffix)
}

// Use signs with a key that was kept, from now on. The secret part of the one before is deleted. It returns ErrNotKept for a
// key that was not kept. Forget should follow.
func (s *Signer) Use(key Key) error {
	s.rotating.Lock()
	defer s.rotating.Unlock()
	if s.Key() == key {
		return nil
	}
	f, err := readSigner(s.next(key))
	if errors.Is(err, fs.ErrNotExist) || err == nil && f.newest() != key {
		return ErrNotKept
	}
	if err != nil {
		return err
	}
	sign, err := f.signWith(s.o.Outside)
	if err != nil {
		return err
	}

	if err := atomicfile.Write(s.path, f.encode()); err != nil {
		return fmt.Errorf("cannot save the signing key: %w", err)
	}
	s.change(&f, sign)
	return nil
}

// Forget deletes the keys that were kept and cannot follow the present one any more. A key of a later epoch stays: this
// server has said that it has it.
func (s *Signer) Forget() error {
	s.rotating.Lock()
	defer s.rotating.Unlock()
	dir := filepath.Dir(s.path)
	list, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("cannot look for copies of signing keys: %w", err)
	}

	var failed []error
	for _, e := range list {
		if !strings.HasPrefix(e.Name(), nextPrefix) || !strings.HasSuffix(e.Name(), nextSuffix) {
			continue
		}
		path := filepath.Join(dir, e.Name())
		f, err := readSigner(path)
		if err == nil && f.newest().Epoch <= s.Key().Epoch {
			err = os.Remove(path)
		}
		failed = append(failed, err)
	}
	if err := errors.Join(failed...); err != nil {
		return fmt.Errorf("cannot remove a copy of a signing key: %w", err)
	}
	return nil
}
