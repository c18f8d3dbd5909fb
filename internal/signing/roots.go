package signing

import (
	"crypto/ed25519"
	"sync"
)

// maxRoots bounds what is remembered. Envelopes of a batch arrive within moments of each other.
const maxRoots = 4096

// verifiedRoots remembers signed roots that were verified.
type verifiedRoots struct {
	mu    sync.Mutex
	known map[verifiedRoot]struct{}
}

// verifiedRoot is everything that a verification depends on, so one that has succeeded succeeds again.
type verifiedRoot struct {
	key       [ed25519.PublicKeySize]byte
	root      hash
	signature [ed25519.SignatureSize]byte
}

// ShareRoots makes the ring verify the signature of a batch once, and not again for each envelope of the batch. It is for
// many simulated agents that share a ring: each still checks that its own envelope belongs to the signed root. The ring of
// one agent meets each root once and gains nothing. Call it before the first Open.
func (r *KeyRing) ShareRoots() { r.roots = &verifiedRoots{known: map[verifiedRoot]struct{}{}} }

// signed reports whether the path of an envelope leads to a root that the key signed.
func (r *KeyRing) signed(e *envelope, k Key) bool {
	p := e.proof()
	if r.roots == nil {
		return p.SignedBy(k)
	}

	root, ok := p.root()
	if !ok || len(p.Signature) != ed25519.SignatureSize {
		return false
	}
	v := verifiedRoot{key: k.Public, root: root, signature: [ed25519.SignatureSize]byte(p.Signature)}
	if r.roots.has(v) {
		return true
	}
	if !k.verify(rootText(&root), p.Signature) {
		return false
	}
	r.roots.add(v)
	return true
}

func (r *verifiedRoots) has(v verifiedRoot) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, known := r.known[v]
	return known
}

func (r *verifiedRoots) add(v verifiedRoot) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.known) >= maxRoots {
		clear(r.known)
	}
	r.known[v] = struct{}{}
}
