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

// ErrNoKey says that a ring trusts nobody yet.
var ErrNoKey = errors.New("no key of a server is trusted yet")

// KeyRing is what an agent knows of its server's keys: the newest one, which is on the disk before anything signed
// by it is believed. Older ones are refused for ever. It is safe for concurrent use.
type KeyRing struct {
	path string
	now  func() time.Time

	mu  sync.Mutex // of changes
	key atomic.Pointer[trusted]
}

type trusted struct {
	Key
	id KeyID
}

// OpenKeyRing reads the trusted key of a state folder, which must exist; there is none before the first Trust. now
// is nil but in tests.
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

// Key is the trusted one, the zero Key when there is none.
func (r *KeyRing) Key() Key {
	if t := r.key.Load(); t != nil {
		return t.Key
	}
	return Key{}
}

// Trust takes a key on the word of whoever operates this host. It never goes back: a key of an older epoch is a
// server from the past, and another key of the same epoch is another server. Who means that removes the file.
func (r *KeyRing) Trust(k Key) error {
	if k.Epoch == 0 {
		return errors.New("cannot trust a key without an epoch")
	}

	r.mu.Lock()
	defer r.mu.Unlock()
	have := r.Key()
	switch {
	case have == k:
		return nil
	case k.Epoch < have.Epoch:
		return fmt.Errorf("server key %s is of epoch %d, but this host has already obeyed epoch %d (%s): the server is an old copy, or the key is; "+
			"to obey it all the same remove %s", k.ID(), k.Epoch, have.Epoch, have.ID(), r.path)
	case k.Epoch == have.Epoch:
		return fmt.Errorf("server key %s is not the one this host obeys (%s): it is another server; to change over remove %s", k.ID(), have.ID(), r.path)
	}

	return r.keep(k)
}

// keep makes a key durable, then trusts it. mu is held.
func (r *KeyRing) keep(k Key) error {
	if err := atomicfile.Write(r.path, []byte(k.String()+"\n")); err != nil {
		return fmt.Errorf("cannot keep the server's key: %w", err)
	}
	r.set(k)
	return nil
}

func (r *KeyRing) set(k Key) { r.key.Store(&trusted{Key: k, id: k.ID()}) }

// Open gives the command of an envelope for an agent. Of anything else it gives a *Refusal. The command is a part of b.
func (r *KeyRing) Open(me gozzard.AgentID, b []byte) ([]byte, error) {
	e, err := parse(b)
	if err != nil {
		return nil, &Refusal{Rule: RuleForm, Err: err}
	}

	have := r.key.Load()
	if have == nil {
		return nil, &Refusal{Rule: RuleKey, Err: ErrNoKey}
	}

	key, id := have.Key, have.id
	switch {
	case e.epoch < key.Epoch:
		return nil, refuse(RuleEpoch, "command of epoch %d, this host obeys epoch %d: the server is an old copy",
			e.epoch, key.Epoch)
	case e.epoch > key.Epoch:
		if key, err = follow(key, &e); err != nil {
			return nil, &Refusal{Rule: RuleKey, Err: err}
		}
		id = key.ID()
	}

	switch {
	case e.key != id:
		return nil, refuse(RuleKey, "command of key %s in epoch %d, this host obeys key %s: it is another server",
			e.key, e.epoch, id)
	case !e.proven(key):
		return nil, refuse(RuleSignature, "command was not signed by key %s", id)
	case e.agent != me:
		return nil, refuse(RuleAgent, "command is for agent %s", e.agent)
	case e.notAfter < r.now().Unix():
		return nil, refuse(RuleExpired, "command was good until %s, which is over by this host's clock",
			time.Unix(e.notAfter, 0).UTC().Format(time.RFC3339))
	}

	if key.Epoch > have.Epoch {
		if err := r.adopt(key); err != nil {
			return nil, &Refusal{Rule: RuleKeep, Err: err}
		}
	}

	return e.payload, nil
}

// adopt keeps a key that the one before it introduced, unless a newer one came meanwhile.
func (r *KeyRing) adopt(k Key) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	have := r.Key()
	switch {
	case have.Epoch < k.Epoch:
		return r.keep(k)
	case have != k:
		return fmt.Errorf("key %s of epoch %d came too late: %s of epoch %d is trusted", k.ID(), k.Epoch, have.ID(),
			have.Epoch)
	}
	return nil
}

// follow goes from the trusted key to the one of an envelope, hand-over by hand-over.
func follow(key Key, e *envelope) (Key, error) {
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
