package signing

import (
	"crypto/ed25519"
)

// Proof proves that the server signed an envelope with a certain digest. It is small, so it can be kept where there is
// no room for the envelope.
type Proof struct {
	Digest    [32]byte // of everything in the envelope before the proof
	Steps     []byte   // from the digest to the signed root
	Signature []byte
}

// ProofOf is the proof in an envelope. It is not verified.
func ProofOf(b []byte) (Proof, error) {
	e, err := parse(b)
	if err != nil {
		return Proof{}, &Refusal{Rule: RuleForm, Err: err}
	}
	return e.proof(), nil
}

func (e *envelope) proof() Proof {
	return Proof{Digest: leafHash(e.signed), Steps: e.steps, Signature: e.signature}
}

// SignedBy reports whether the steps lead from the digest to a root that the key signed.
func (p *Proof) SignedBy(k Key) bool {
	root, ok := p.root()
	return ok && ed25519.Verify(k.Public[:], rootText(&root), p.Signature)
}

// root is where the steps lead to.
func (p *Proof) root() (sum hash, ok bool) {
	if len(p.Steps)%stepBytes != 0 || len(p.Steps) > maxSteps*stepBytes {
		return sum, false
	}
	sum = p.Digest
	for steps := p.Steps; len(steps) > 0; steps = steps[stepBytes:] {
		other := hash(steps[1:stepBytes])
		if steps[0] == 1 { // the other hash is on the right
			sum = nodeHash(&sum, &other)
		} else {
			sum = nodeHash(&other, &sum)
		}
	}
	return sum, true
}
