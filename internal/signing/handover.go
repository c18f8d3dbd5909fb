package signing

import (
	"crypto/ed25519"
	"encoding/binary"
	"fmt"
)

const handOverMagic = "GZH1"

// handOver introduces a new key; the previous key has signed it.
type handOver struct {
	to        Key
	signature [ed25519.SignatureSize]byte
}

const handOverBytes = 8 + ed25519.PublicKeySize + ed25519.SignatureSize

// maxHandOvers is the largest number of hand-overs in an envelope. An agent that missed more rotations needs a person
// to give it the key.
const maxHandOvers = 16

// handOverText is the signed text. It names the previous key, so that the hand-over is worthless to an agent that
// trusts another key.
func handOverText(from KeyID, to Key) []byte {
	b := append(make([]byte, 0, 64), handOverMagic...)
	b = append(b, from[:]...)
	b = binary.BigEndian.AppendUint64(b, to.Epoch)
	return append(b, to.Public[:]...)
}

// signHandOver introduces a key by the key before it.
func signHandOver(sign signFunc, id KeyID, to Key) (handOver, error) {
	signature, err := sign(handOverText(id, to))
	if err != nil {
		return handOver{}, fmt.Errorf("cannot sign the hand-over to epoch %d: %w", to.Epoch, err)
	}
	return handOver{to: to, signature: [ed25519.SignatureSize]byte(signature)}, nil
}

func (h *handOver) append(b []byte) []byte {
	b = binary.BigEndian.AppendUint64(b, h.to.Epoch)
	b = append(b, h.to.Public[:]...)
	return append(b, h.signature[:]...)
}

func readHandOver(b []byte) (h handOver) {
	h.to.Epoch = binary.BigEndian.Uint64(b)
	copy(h.to.Public[:], b[8:])
	copy(h.signature[:], b[8+len(h.to.Public):])
	return h
}

// follow returns the new key if the hand-over is from the given key.
func (h *handOver) follow(from Key) (Key, error) {
	if h.to.Epoch != from.Epoch+1 {
		return Key{}, fmt.Errorf("hand-over to epoch %d does not follow epoch %d", h.to.Epoch, from.Epoch)
	}
	if !from.verify(handOverText(from.ID(), h.to), h.signature[:]) {
		return Key{}, fmt.Errorf("hand-over to epoch %d was not signed by key %s", h.to.Epoch, from.ID())
	}
	return h.to, nil
}
