package server

import (
	"context"
	"crypto/ecdh"
	"crypto/rand"
	"fmt"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/enrol"
	"github.com/gozzard/gozzard/internal/signing"
)

// mostAsked is how many keys a server asks for at the same time. There are two if two servers rotate at once.
const mostAsked = 8

// hear takes in a message of another server about a key. What does not fit in is said again.
func (k *keySync) hear(n *gozzard.PeerNews) {
	select {
	case k.inbox <- n:
	default:
	}
}

// listen answers other servers until ctx ends.
func (k *keySync) listen(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case n := <-k.inbox:
			k.handle(n.From, n.Key)
		}
	}
}

// handle does what follows of a message.
func (k *keySync) handle(from string, m *gozzard.PeerKey) {
	key, err := signing.ParseKey(m.Key)
	if err != nil {
		k.s.options.Log.Warn("another server speaks of a signing key that is none", "server", from, "err", err)
		return
	}
	switch m.What {
	case gozzard.PeerKeyOffer:
		k.consider(from, key)
	case gozzard.PeerKeyAsk:
		k.give(from, m)
	case gozzard.PeerKeyGive:
		k.take(from, key, m)
	case gozzard.PeerKeyKept:
		k.mu.Lock()
		if k.offered == m.Key {
			k.answers[from] = m.Fault
		}
		k.mu.Unlock()
		signal(k.answer)
	}
}

// consider answers the offer of a key.
func (k *keySync) consider(from string, key signing.Key) {
	own := k.s.signer.Key()
	switch {
	case own == key:
		k.kept(from, key, nil)
	case own.Epoch >= key.Epoch:
		k.kept(from, key, fmt.Errorf("it signs with key %s of epoch %d already", own.ID(), own.Epoch))
	default:
		k.ask(from, key.String())
	}
}

// kept says that this server has stored a key, or why not.
func (k *keySync) kept(to string, key signing.Key, err error) {
	m := &gozzard.PeerKey{What: gozzard.PeerKeyKept, Key: key.String()}
	if err != nil {
		m.Fault = err.Error()
		k.s.options.Log.Warn("cannot use the signing key of another server", "server", to, "key", key.ID().String(), "err", err)
	}
	k.tell(to, m)
}

// tell sends a message about a key to a server, or to all others with "".
func (k *keySync) tell(to string, m *gozzard.PeerKey) {
	if err := k.s.cluster.Tell(to, &gozzard.PeerNews{From: k.s.id, Key: m}); err != nil {
		k.s.options.Log.Debug("cannot send to the other servers", "to", to, "err", err)
	}
}

// ask asks a server for a key, or all others with "".
func (k *keySync) ask(from, key string) {
	k.mu.Lock()
	mine := k.mine[key]
	if mine == nil {
		var err error
		if mine, err = ecdh.X25519().GenerateKey(rand.Reader); err != nil {
			panic(err) // the system's randomness does not fail: it ends the program instead
		}
		if len(k.mine) >= mostAsked { // they were replaced since
			clear(k.mine)
		}
		k.mine[key] = mine
	}
	k.mu.Unlock()
	k.tell(from, &gozzard.PeerKey{What: gozzard.PeerKeyAsk, Key: key, Public: mine.PublicKey().Bytes()})
}

// give sends a key to a server that asked for it: the present one, or the one that this server offers.
func (k *keySync) give(to string, m *gozzard.PeerKey) {
	k.mu.Lock()
	var file []byte
	if k.offered == m.Key {
		file = k.file
	}
	k.mu.Unlock()
	if file == nil && k.s.signer.Key().String() == m.Key {
		var err error
		if file, err = k.s.signer.File(); err != nil {
			k.s.options.Log.Error("cannot give the signing key to another server", "server", to, "err", err)
			return
		}
	}
	if file == nil {
		return
	}

	public, sealed, err := enrol.SealForPeer(m.Key, m.Public, file)
	if err != nil {
		k.s.options.Log.Warn("another server asked for the signing key with a public key that is none", "server", to, "err", err)
		return
	}
	k.s.options.Log.Info("another server gets the signing key", "server", to)
	k.tell(to, &gozzard.PeerKey{What: gozzard.PeerKeyGive, Key: m.Key, Public: public, Sealed: sealed})
}

// take stores a key that this server asked for. Nobody can make it take another one.
func (k *keySync) take(from string, key signing.Key, m *gozzard.PeerKey) {
	k.mu.Lock()
	mine := k.mine[m.Key]
	k.mu.Unlock()
	if mine == nil {
		return
	}

	file, err := enrol.OpenFromPeer(m.Key, mine, m.Public, m.Sealed)
	if err == nil {
		err = k.s.signer.Keep(key, file)
	}
	k.kept(from, key, err)
	if err != nil {
		return
	}
	k.mu.Lock()
	delete(k.mine, m.Key)
	k.mu.Unlock()
	signal(k.wake) // it may be the key of the record
}
