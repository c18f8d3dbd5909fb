package signing

import (
	"crypto/sha256"
)

// One signature covers a batch of envelopes. Each envelope is a leaf of a binary hash tree, and the server signs the
// root. An envelope contains the path from its leaf to the root, so it can be verified without the others.
const (
	rootMagic = "GZR1"

	// MaxBatch is the largest number of envelopes that one signature covers. A larger batch would add a step to each
	// envelope and save almost nothing.
	MaxBatch = 64

	stepBytes = 1 + sha256.Size // the side of the other hash, and the hash
	maxSteps  = 6               // in a tree with MaxBatch leaves
)

// hash is a node of the hash tree.
type hash = [sha256.Size]byte

// leafHash and nodeHash begin with different bytes, so that an attacker cannot present a node as a leaf.
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

// appendProofs appends to each body its path to the root and the signature of the root.
func appendProofs(bodies []*[]byte, sign signFunc) error {
	// Compute the leaves.
	level := make([]hash, len(bodies))
	at := make([]int, len(bodies))     // index of each body in the current level
	counts := make([]int, len(bodies)) // where each body has its number of steps
	for i, b := range bodies {
		level[i], at[i], counts[i] = leafHash(*b), i, len(*b)
		*b = append(*b, 0) // the number of steps
	}

	// Go up level by level. Each body gets the hash beside its own as a step.
	for len(level) > 1 {
		for i, b := range bodies {
			if other := at[i] ^ 1; other < len(level) { // the last of an odd number has none beside it
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

	// Sign the root.
	signature, err := sign(rootText(&level[0]))
	if err != nil {
		return err
	}
	for _, b := range bodies {
		*b = append(*b, signature...)
	}
	return nil
}
