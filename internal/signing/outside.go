package signing

import (
	"crypto"
	"crypto/ed25519"
	"errors"
	"fmt"
	"strconv"
)

// Outside has private keys that never enter this program, such as those of a hardware token. A key has a name.
type Outside interface {
	// Public is the public key of a name.
	Public(name string) (crypto.PublicKey, error)
	// Sign signs a text with the key of a name. The algorithm is one word, such as AlgorithmEd25519.
	Sign(name, algorithm string, text []byte) ([]byte, error)
}

// AlgorithmEd25519 is Ed25519 of the whole text.
const AlgorithmEd25519 = "ed25519"

// ErrOutside says that a key is not in the data folder, and that nothing is there that has it.
var ErrOutside = errors.New("the key is in an external signer: start the server with --signer-command, " +
	"and use: gozzard key rotate signing")

// signFunc signs a text with one Ed25519 key.
type signFunc func(text []byte) ([]byte, error)

// outsideName is the name of the signing key of an epoch.
func outsideName(epoch uint64) string { return "signing-" + strconv.FormatUint(epoch, 10) }

// outsideKey asks for the key of an epoch.
func outsideKey(o Outside, epoch uint64) (Key, error) {
	name := outsideName(epoch)
	public, err := o.Public(name)
	if err != nil {
		return Key{}, fmt.Errorf("the external signer does not give the public key of %s: %w", name, err)
	}
	k, ok := public.(ed25519.PublicKey)
	if !ok || len(k) != ed25519.PublicKeySize {
		return Key{}, fmt.Errorf("key %s of the external signer is not an Ed25519 key; agents verify no other kind", name)
	}
	return Key{Epoch: epoch, Public: [ed25519.PublicKeySize]byte(k)}, nil
}

// outsideSign signs with a key and checks the signature: a wrong one would be found only by the agents.
func outsideSign(o Outside, name string, key Key) signFunc {
	return func(text []byte) ([]byte, error) {
		signature, err := o.Sign(name, AlgorithmEd25519, text)
		if err != nil {
			return nil, fmt.Errorf("the external signer does not sign with %s: %w", name, err)
		}
		if len(signature) != ed25519.SignatureSize || !key.verify(text, signature) {
			return nil, fmt.Errorf("the external signer returned a signature that is not of key %s", name)
		}
		return signature, nil
	}
}
