package enrol

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdh"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"errors"
)

// joinLabel begins everything that is signed or derived when a server joins, so that nothing of it has another use.
const joinLabel = "gozzard server join 1"

// joinKey is derived from the secret of a server token. The secret itself never leaves the machine that has the token.
type joinKey [sha256.Size]byte

func newJoinKey(t Token) joinKey {
	return joinKey(derive([]byte(t.Secret), []byte(t.ID), "token"))
}

// derive makes a key of 32 bytes for one use.
func derive(secret, salt []byte, use string) []byte {
	key, err := hkdf.Key(sha256.New, secret, salt, joinLabel+" "+use, sha256.Size)
	if err != nil {
		panic(err) // only a length that is too large fails
	}
	return key
}

// proof shows that the one who sent a public key has the token.
func (k joinKey) proof(id string, public []byte) []byte {
	mac := hmac.New(sha256.New, derive(k[:], nil, "proof"))
	mac.Write([]byte(id + " "))
	mac.Write(public)
	return mac.Sum(nil)
}

// seal encrypts a text for the owner of a public key that has the token, too. It returns the public key of this end.
func (k joinKey) seal(id string, theirs, text []byte) (ours, sealed []byte, err error) {
	key, err := ecdh.X25519().GenerateKey(rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	ours = key.PublicKey().Bytes()
	box, about, err := k.box(id, key, theirs, theirs, ours)
	if err != nil {
		return nil, nil, err
	}
	return ours, box.Seal(nil, make([]byte, box.NonceSize()), text, about), nil
}

// open decrypts what seal made for the public key of mine.
func (k joinKey) open(id string, mine *ecdh.PrivateKey, theirs, sealed []byte) ([]byte, error) {
	box, about, err := k.box(id, mine, theirs, mine.PublicKey().Bytes(), theirs)
	if err != nil {
		return nil, err
	}
	text, err := box.Open(nil, make([]byte, box.NonceSize()), sealed, about)
	if err != nil {
		return nil, errors.New("the keys in the answer were not sealed with this token")
	}
	return text, nil
}

// box is the cipher of one answer, and what the answer is bound to. Its key is used once, so its nonce may be zero.
func (k joinKey) box(id string, mine *ecdh.PrivateKey, theirs, asker, giver []byte) (cipher.AEAD, []byte, error) {
	public, err := ecdh.X25519().NewPublicKey(theirs)
	if err != nil {
		return nil, nil, err
	}
	shared, err := mine.ECDH(public)
	if err != nil {
		return nil, nil, err
	}

	about := sha256.Sum256([]byte(joinLabel + " " + id + " " + string(asker) + string(giver)))
	block, err := aes.NewCipher(derive(append(shared, k[:]...), about[:], "keys"))
	if err != nil {
		return nil, nil, err
	}
	box, err := cipher.NewGCM(block)
	return box, about[:], err
}

// SealForPeer encrypts a text for a server of the installation that has sent a public key. Only servers reach each other, so
// the key needs no further proof. It returns the public key of this end.
func SealForPeer(about string, theirs, text []byte) (ours, sealed []byte, err error) {
	return joinKey{}.seal("peer "+about, theirs, text)
}

// OpenFromPeer decrypts what SealForPeer made for the public key of mine.
func OpenFromPeer(about string, mine *ecdh.PrivateKey, theirs, sealed []byte) ([]byte, error) {
	text, err := joinKey{}.open("peer "+about, mine, theirs, sealed)
	if err != nil {
		return nil, errors.New("it was not sealed for this server")
	}
	return text, nil
}
