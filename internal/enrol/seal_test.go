package enrol

import (
	"bytes"
	"crypto/ecdh"
	"crypto/rand"
	"testing"
)

// TestTS19SealForPeer: what is sealed for a server is opened by that server only, as what it is, and unchanged.
func TestTS19SealForPeer(t *testing.T) {
	newKey := func() *ecdh.PrivateKey {
		t.Helper()
		key, err := ecdh.X25519().GenerateKey(rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		return key
	}
	mine, secret := newKey(), []byte("the secret part")
	public, sealed, err := SealForPeer("key 2", mine.PublicKey().Bytes(), secret)
	if err != nil || bytes.Contains(sealed, secret) {
		t.Fatalf("sealed %q, %v", sealed, err)
	}
	if got, err := OpenFromPeer("key 2", mine, public, sealed); err != nil || !bytes.Equal(got, secret) {
		t.Errorf("opened %q, %v", got, err)
	}

	changed := bytes.Clone(sealed)
	changed[0] ^= 1
	for name, open := range map[string]func() ([]byte, error){
		"another server": func() ([]byte, error) { return OpenFromPeer("key 2", newKey(), public, sealed) },
		"another key":    func() ([]byte, error) { return OpenFromPeer("key 3", mine, public, sealed) },
		"another sender": func() ([]byte, error) { return OpenFromPeer("key 2", mine, newKey().PublicKey().Bytes(), sealed) },
		"a changed text": func() ([]byte, error) { return OpenFromPeer("key 2", mine, public, changed) },
		"no sender":      func() ([]byte, error) { return OpenFromPeer("key 2", mine, nil, sealed) },
		"a server token": func() ([]byte, error) { return joinKey{}.open("key 2", mine, public, sealed) },
		"nothing at all": func() ([]byte, error) { return OpenFromPeer("key 2", mine, public, nil) },
	} {
		if got, err := open(); err == nil {
			t.Errorf("%s: opened %q", name, got)
		}
	}
	if _, _, err := SealForPeer("key 2", []byte("short"), secret); err == nil {
		t.Error("sealed for a key that is none")
	}
}
