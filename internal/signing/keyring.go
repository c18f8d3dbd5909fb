package signing

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/atomicfile"
)

// RingFile is the name of the trusted key in an agent's state folder.
const RingFile = "server.key"

// ErrNoKey says that a key ring has no key yet.
var ErrNoKey = errors.New("no key of a server is trusted yet")

// KeyRing holds the newest key of an agent's server. The key is on the disk before a command that it signed is
// accepted. Older keys are rejected for ever. It is safe for concurrent use.
type KeyRing struct {
	path string
	now  func() time.Time

	mu  sync.Mutex // held while the key changes
	key atomic.Pointer[trusted]

	roots *verifiedRoots // nil: every signature is verified when it is met
}

// trusted is a key with its id, which is computed once.
type trusted struct {
	Key
	id KeyID
}

// OpenKeyRing reads the trusted key of a state folder. The folder must exist; it has no key before the first Trust.
// now is nil except in tests.
func OpenKeyRing(dir string, now func() time.Time) (*KeyRing, error) {
	if now == nil {
		now = time.Now
	}

	r := &KeyRing{path: filepath.Join(dir, RingFile), now: now}
	b, err := os.ReadFile(r.path)
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the server's key: %w", err)
	}
	if err := atomicfile.Check(r.path); err != nil {
		return nil, err
	}

	k, err := ParseKey(strings.TrimSpace(string(b)))
	if err != nil {
		return nil, fmt.Errorf("cannot use the server's key in %s: %w", r.path, err)
	}

	r.set(k)
	return r, nil
}

// Key is the trusted key, the zero Key if there is none.
func (r *KeyRing) Key() Key {
	if t := r.key.Load(); t != nil {
		return t.Key
	}
	return Key{}
}

// Trust accepts a key that the operator of this host has given. It never goes back: a key of an older epoch belongs to
// an old copy of the server, and another key of the same epoch belongs to another server. An operator that wants that
// removes the file first.
func (r *KeyRing) Trust(k Key) error {
	if k.Epoch == 0 {
		return errors.New("cannot trust a key without an epoch")
	}

	r.mu.Lock()
	defer r.mu.Unlock()

	have := r.Key()
	if have == k {
		return nil
	}
	if err := have.Follows(k); err != nil {
		return fmt.Errorf("%w; to change the server remove %s", err, r.path)
	}

	return r.save(k)
}

// Follows returns why a host that obeys k does not accept the key next from its operator, nil if it does. The zero Key
// accepts every key.
func (k Key) Follows(next Key) error {
	switch {
	case k == next:
		return nil
	case next.Epoch < k.Epoch:
		return fmt.Errorf("server key %s is of epoch %d, but this host has already obeyed epoch %d (%s): "+
			"the server or the key is an old copy", next.ID(), next.Epoch, k.Epoch, k.ID())
	case next.Epoch == k.Epoch:
		return fmt.Errorf("server key %s is not the one this host obeys (%s): it is another server", next.ID(), k.ID())
	}
	return nil
}

// save makes a key durable, then trusts it. mu is held.
func (r *KeyRing) save(k Key) error {
	if err := atomicfile.Write(r.path, []byte(k.String()+"\n")); err != nil {
		return fmt.Errorf("cannot save the server's key: %w", err)
	}
	r.set(k)
	return nil
}

func (r *KeyRing) set(k Key) { r.key.Store(&trusted{Key: k, id: k.ID()}) }

// Open returns the command of an envelope for this agent. For anything else it returns a *Refusal. The command is a
// slice of b.
func (r *KeyRing) Open(me gozzard.AgentID, b []byte) ([]byte, error) {
	e, err := parse(b)
	if err != nil {
		return nil, &Refusal{Rule: RuleForm, Err: err}
	}

	have := r.key.Load()
	if have == nil {
		return nil, &Refusal{Rule: RuleKey, Err: ErrNoKey}
	}

	// Find the key of the envelope: the trusted one, or a newer one by its hand-overs.
	key, id := have.Key, have.id
	switch {
	case e.epoch < key.Epoch:
		return nil, reject(RuleEpoch, "command of epoch %d, this host obeys epoch %d: the server is an old copy",
			e.epoch, key.Epoch)
	case e.epoch > key.Epoch:
		if key, err = newerKey(key, &e); err != nil {
			return nil, &Refusal{Rule: RuleKey, Err: err}
		}
		id = key.ID()
	}

	// Check the signature, the agent and the time.
	switch {
	case e.key != id:
		return nil, reject(RuleKey, "command of key %s in epoch %d, this host obeys key %s: it is another server",
			e.key, e.epoch, id)
	case !r.signed(&e, key):
		return nil, reject(RuleSignature, "command was not signed by key %s", id)
	case e.agent != me:
		return nil, reject(RuleAgent, "command is for agent %s", e.agent)
	case e.notAfter < r.now().Unix():
		return nil, reject(RuleExpired, "command was valid until %s, which has passed by this host's clock",
			time.Unix(e.notAfter, 0).UTC().Format(time.RFC3339))
	}

	// Save a newer key before the command is accepted.
	if key.Epoch > have.Epoch {
		if err := r.adopt(key); err != nil {
			return nil, &Refusal{Rule: RuleKeep, Err: err}
		}
	}

	return e.payload, nil
}

// adopt saves a key that the previous one introduced, unless a newer one was saved meanwhile.
func (r *KeyRing) adopt(k Key) error {
	r.mu.Lock()
	defer r.mu.Unlock()

	have := r.Key()
	switch {
	case have.Epoch < k.Epoch:
		return r.save(k)
	case have != k:
		return fmt.Errorf("key %s of epoch %d came too late: %s of epoch %d is trusted",
			k.ID(), k.Epoch, have.ID(), have.Epoch)
	}
	return nil
}

// newerKey follows the hand-overs of an envelope from the trusted key to the one that signed it.
func newerKey(key Key, e *envelope) (Key, error) {
	for b := e.handOvers; len(b) > 0 && key.Epoch < e.epoch; b = b[handOverBytes:] {
		h := readHandOver(b)
		if h.to.Epoch <= key.Epoch {
			continue
		}
		next, err := h.follow(key)
		if err != nil {
			return Key{}, err
		}
		key = next
	}

	if key.Epoch != e.epoch {
		return Key{}, fmt.Errorf("command of epoch %d, this host obeys epoch %d and nothing introduces the newer key",
			e.epoch, key.Epoch)
	}

	return key, nil
}
