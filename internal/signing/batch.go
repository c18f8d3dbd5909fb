package signing

import (
	"crypto/ed25519"
	"crypto/sha256"
)

// One signature covers a whole batch of envelopes: each is a leaf of a binary hash tree, and the root is what is
// signed. An envelope carries the way from its own leaf to the root, so that it is proven alone, without the
// others, as if it had a signature of its own.
const (
	rootMagic = "GZR1"

	// MaxBatch is how many envelopes one signature covers at most. More would cost each of them another step, which
	// are bytes on the wire, and save next to nothing.
	MaxBatch = 64

	stepBytes = 1 + sha256.Size // on which side the other hash is, and the hash
	maxSteps  = 6               // of a tree with MaxBatch leaves
)

type hash = [sha256.Size]byte

// A leaf and an inner node begin differently, so that none can be shown for the other.
func leafHash(body []byte) (sum hash) {
	h := sha256.New()
	h.Write([]byte{0})
	h.Write(body)
	h.Sum(sum[:0])
	return sum
}

func nodeHash(left, right *hash) hash {
	var b [1 + 2*sha256.Size]byte
	b[0] = 1
	copy(b[1:], left[:])
	copy(b[1+sha256.Size:], right[:])
	return sha256.Sum256(b[:])
}

func rootText(root *hash) []byte { return append([]byte(rootMagic), root[:]...) }

// proofs appends to each body its way to the root, and the signature of the root.
func proofs(bodies []*[]byte, sign func([]byte) []byte) {
	level := make([]hash, len(bodies))
	at := make([]int, len(bodies)) // of each body in the present level
	counts := make([]int, len(bodies))
	for i, b := range bodies {
		level[i], at[i], counts[i] = leafHash(*b), i, len(*b)
		*b = append(*b, 0) // how many steps follow
	}

	for len(level) > 1 {
		for i, b := range bodies {
			if other := at[i] ^ 1; other < len(level) { // the last of an odd number goes up as it is
				*b = append(*b, byte(other&1))
				*b = append(*b, level[other][:]...)
				(*b)[counts[i]]++
			}
			at[i] /= 2
		}
		up := level[:0]
		for i := 0; i < len(level); i += 2 {
			if i+1 == len(level) {
				up = append(up, level[i])
				continue
			}
			up = append(up, nodeHash(&level[i], &level[i+1]))
		}
		level = up
	}

	signature := sign(rootText(&level[0]))
	for _, b := range bodies {
		*b = append(*b, signature...)
	}
}

// proven reports whether the way of an envelope leads to a root that a key signed.
func (e *envelope) proven(k Key) bool {
	sum := leafHash(e.signed)
	for steps := e.steps; len(steps) > 0; steps = steps[stepBytes:] {
		other := hash(steps[1:stepBytes])
		if steps[0] == 1 { // the other is on the right
			sum = nodeHash(&sum, &other)
		} else {
			sum = nodeHash(&other, &sum)
		}
	}
	return ed25519.Verify(k.Public[:], rootText(&sum), e.signature)
}
