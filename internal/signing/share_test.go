package signing_test

import (
	"bytes"
	"crypto"
	"crypto/ed25519"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/signing"
)

// twin is a data folder with the key of another one.
func twin(t *testing.T, dir string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, signing.SignerFile))
	if err != nil {
		t.Fatal(err)
	}
	other := t.TempDir()
	if err := os.WriteFile(filepath.Join(other, signing.SignerFile), b, 0o600); err != nil {
		t.Fatal(err)
	}
	return other
}

// after makes the key that follows the present one.
func after(t *testing.T, s *signing.Signer) (signing.Key, []byte) {
	t.Helper()
	file, key, err := s.Next()
	if err != nil || key.Epoch != s.Key().Epoch+1 {
		t.Fatalf("got %v, %v", key, err)
	}
	return key, file
}

// files are the names in a folder.
func files(t *testing.T, dir string) (names []string) {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		names = append(names, e.Name())
	}
	return names
}

// uses makes a signer use a key and forget what it kept.
func uses(t *testing.T, s *signing.Signer, key signing.Key) {
	t.Helper()
	if err := errors.Join(s.Use(key), s.Forget()); err != nil || s.Key() != key {
		t.Fatalf("it signs with %v: %v", s.Key(), err)
	}
}

// TestSharedRotation: two servers store the next key and then use it. Agents accept it from both, and the secret part of the
// old key is nowhere any more.
func TestSharedRotation(t *testing.T) {
	dir := t.TempDir()
	a := signer(t, dir)
	other := twin(t, dir)
	b := signer(t, other)
	agent := ring(t, t.TempDir(), a.Key())
	old := a.Key()

	// Nothing is used before it is said.
	next, file := after(t, a)
	if err := b.Use(next); !errors.Is(err, signing.ErrNotKept) {
		t.Errorf("a key that was not kept: %v", err)
	}
	for _, s := range []*signing.Signer{a, b} {
		if err := s.Keep(next, file); err != nil || s.Key() != old {
			t.Fatalf("kept: %v; it signs with %v", err, s.Key())
		}
	}
	wants(t, agent, "a", sealed(b, "a", gozzard.CommandAck, command()), "")

	// The one uses it, then the other.
	uses(t, a, next)
	wants(t, agent, "a", sealed(a, "a", gozzard.CommandAck, command()), "")
	wants(t, agent, "a", sealed(b, "a", gozzard.CommandAck, command()), signing.RuleEpoch)
	uses(t, b, next)
	wants(t, agent, "a", sealed(b, "a", gozzard.CommandAck, command()), "")
	for _, folder := range []string{dir, other} {
		if got := files(t, folder); !slices.Equal(got, []string{signing.SignerFile}) {
			t.Errorf("%s has %v", folder, got)
		}
		got, err := os.ReadFile(filepath.Join(folder, signing.SignerFile))
		if err != nil || !bytes.Equal(got, file) {
			t.Errorf("%s has another file: %v", folder, err)
		}
	}
	if s := signer(t, other); s.Key() != next {
		t.Errorf("after a restart it signs with %v", s.Key())
	}
}

// TestKeptKeys: a key that counts next is there, whatever was kept before and since.
func TestKeptKeys(t *testing.T) {
	dir := t.TempDir()
	a := signer(t, dir)
	other := twin(t, dir)
	b := signer(t, other)

	// Two servers rotate at the same time.
	loser, lost := after(t, a)
	winner, file := after(t, b)
	for key, text := range map[signing.Key][]byte{loser: lost, winner: file} {
		if err := a.Keep(key, text); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Keep(winner, file); err != nil {
		t.Fatal(err)
	}

	// The winner rotates again before the other one has used its first key.
	uses(t, b, winner)
	third, file := after(t, b)
	if err := a.Keep(third, file); err != nil {
		t.Fatal(err)
	}
	if got := files(t, dir); len(got) != 4 {
		t.Errorf("it has %v", got)
	}
	uses(t, a, winner)
	if got := files(t, dir); len(got) != 2 {
		t.Errorf("it has %v", got)
	}

	// It ends, and uses the third one after its start.
	a = signer(t, dir)
	uses(t, a, third)
	if got := files(t, dir); !slices.Equal(got, []string{signing.SignerFile}) {
		t.Errorf("it has %v", got)
	}

	// What the loser has made does not count any more.
	if err := a.Keep(loser, lost); err == nil || !strings.Contains(err.Error(), "does not follow") {
		t.Errorf("a key that was not used: %v", err)
	}
	if err := a.Keep(third, file); err != nil || len(files(t, dir)) != 1 {
		t.Errorf("the present key: %v; %v", err, files(t, dir))
	}
}

// TestKeepRefusals: keys of other installations, damaged ones, others than they should be, and one that this server has not.
func TestKeepRefusals(t *testing.T) {
	s, stranger := signer(t, t.TempDir()), signer(t, t.TempDir())
	foreign, file := after(t, stranger)
	if err := s.Keep(foreign, file); err == nil || !strings.Contains(err.Error(), "does not follow") {
		t.Errorf("the key of another installation: %v", err)
	}
	next, own := after(t, s)
	if err := s.Keep(foreign, own); err == nil || !strings.Contains(err.Error(), "in place of") {
		t.Errorf("another key than it should be: %v", err)
	}

	// Some letters do not matter, such as those of a time.
	tries, rejected := 0, 0
	for i := 0; i < len(own); i += 7 {
		damaged := bytes.Clone(own)
		damaged[i] ^= 1
		tries++
		if s.Keep(next, damaged) != nil {
			rejected++
		}
	}
	if rejected < tries/2 {
		t.Errorf("of %d damaged files %d were rejected", tries, rejected)
	}
	if err := s.Keep(next, own); err != nil {
		t.Fatal(err)
	}
	if err := s.Use(s.Key()); err != nil {
		t.Errorf("the present key: %v", err)
	}
	other := next
	other.Public[0] ^= 1
	if err := s.Use(other); !errors.Is(err, signing.ErrNotKept) {
		t.Errorf("another key: %v", err)
	}
}

// vault has keys outside of the data folder, as an external signer does.
type vault map[string]ed25519.PrivateKey

func (v vault) Public(name string) (crypto.PublicKey, error) {
	if v[name] == nil {
		return nil, errors.New("no such key")
	}
	return v[name].Public(), nil
}

func (v vault) Sign(name, _ string, text []byte) ([]byte, error) {
	return ed25519.Sign(v[name], text), nil
}

// newVault has the keys of two epochs.
func newVault(t *testing.T) vault {
	t.Helper()
	v := vault{}
	for _, name := range []string{"signing-1", "signing-2"} {
		_, private, err := ed25519.GenerateKey(nil)
		if err != nil {
			t.Fatal(err)
		}
		v[name] = private
	}
	return v
}

// TestSharedRotationOutside: servers that use the same external signer rotate without a secret in a file. One without it, or
// with another one, cannot have the key, and says so.
func TestSharedRotationOutside(t *testing.T) {
	shared := newVault(t)
	open := func(dir string, o signing.Outside, makes bool) *signing.Signer {
		t.Helper()
		s, err := signing.NewSigner(signing.SignerOptions{Dir: dir, Now: now, Outside: o, MakeOutside: makes})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}

	// The first key is in the folder. The next one is outside.
	dir := t.TempDir()
	signer(t, dir)
	other, without, wrong := twin(t, dir), twin(t, dir), twin(t, dir)
	a, b := open(dir, shared, true), open(other, shared, false)
	next, file := after(t, a)
	if bytes.Contains(file, []byte("seed")) {
		t.Errorf("the file has a secret: %s", file)
	}
	for _, s := range []*signing.Signer{a, b} {
		if err := s.Keep(next, file); err != nil {
			t.Fatal(err)
		}
		uses(t, s, next)
	}
	agent := ring(t, t.TempDir(), signer(t, without).Key())
	wants(t, agent, "a", sealed(b, "a", gozzard.CommandWelcome, command()), "")

	if err := open(without, nil, false).Keep(next, file); !errors.Is(err, signing.ErrOutside) {
		t.Errorf("a server without the signer: %v", err)
	}
	if err := open(wrong, newVault(t), false).Keep(next, file); err == nil || !strings.Contains(err.Error(), "of the external signer is") {
		t.Errorf("a server with another signer: %v", err)
	}
}
