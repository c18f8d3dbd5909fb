package server

import (
	"context"
	"encoding/base64"
	"errors"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/enrol"
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
			k.handle(ctx, n.From, n.Key)
		}
	}
}

// handle does what follows of a message.
func (k *keySync) handle(ctx context.Context, from string, m *gozzard.PeerKey) {
	kind := k.kindOf(m.Key)
	if err := kind.check(m.Key); err != nil {
		k.s.options.Log.Warn("another server speaks of a key that is none", "server", from, "err", err)
		return
	}
	switch m.What {
	case gozzard.PeerKeyOffer:
		k.consider(from, m.Key, kind)
	case gozzard.PeerKeyAsk:
		k.give(ctx, from, m, kind)
	case gozzard.PeerKeyGive:
		k.take(from, m, kind)
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
func (k *keySync) consider(from, key string, kind keyKind) {
	has, err := kind.has(key)
	if has || err != nil {
		k.kept(from, key, kind, err)
		return
	}
	k.ask(from, key)
}

// kept says that this server has stored a key, or why not.
func (k *keySync) kept(to, key string, kind keyKind, err error) {
	m := &gozzard.PeerKey{What: gozzard.PeerKeyKept, Key: key}
	if err != nil {
		m.Fault = err.Error()
		k.s.options.Log.Warn("cannot use the "+kind.name()+" of another server", "server", to, "err", err)
	}
	k.tell(to, m)
}

// tell sends a message about a key to a server, or to all others with "".
func (k *keySync) tell(to string, m *gozzard.PeerKey) {
	if err := k.s.cluster.Tell(to, &gozzard.PeerNews{From: k.s.id, Key: m}); err != nil {
		k.s.options.Log.Debug("cannot send to the other servers", "to", to, "err", err)
	}
}

// ask asks a server for a key, or all others with "". Nobody answers before the row of this server is written.
func (k *keySync) ask(from, key string) {
	k.mu.Lock()
	if len(k.asked) >= mostAsked { // they were replaced since
		clear(k.asked)
	}
	k.asked[key] = true
	k.mu.Unlock()
	if k.listed.Load() {
		k.tell(from, &gozzard.PeerKey{What: gozzard.PeerKeyAsk, Key: key, Public: k.private.PublicKey().Bytes()})
	}
}

// give sends a key to a server that asked for it: the present one, or the one that this server offers.
func (k *keySync) give(ctx context.Context, to string, m *gozzard.PeerKey, kind keyKind) {
	k.mu.Lock()
	var file []byte
	if k.offered == m.Key {
		file = k.file
	}
	k.mu.Unlock()
	var err error
	if file == nil {
		file, err = kind.file(m.Key)
	}
	if err == nil && file != nil {
		err = k.checkMember(ctx, to, m.Public)
	}
	if err != nil {
		k.s.options.Log.Warn("cannot give the "+kind.name()+" to another server", "server", to, "err", err)
		return
	}
	if file == nil {
		return
	}

	public, sealed, err := enrol.SealForPeer(m.Key, m.Public, file)
	if err != nil {
		k.s.options.Log.Warn("another server asked for a key with a public key that is none", "server", to, "err", err)
		return
	}
	k.s.options.Log.Info("another server gets the "+kind.name(), "server", to)
	k.tell(to, &gozzard.PeerKey{What: gozzard.PeerKeyGive, Key: m.Key, Public: public, Sealed: sealed})
}

// checkMember returns an error unless the record has a server that runs, and the public key of its run. So the key of an
// authority alone is worth nothing here: one that was stolen with it, or a server that was removed, cannot write into the record.
func (k *keySync) checkMember(ctx context.Context, id string, public []byte) error {
	list, err := k.servers(ctx)
	if err != nil {
		return err
	}
	for i := range list {
		v := &list[i]
		switch {
		case v.ID != id || !runs(v):
		case v.Seal == "":
			return errors.New("it has an older version, which cannot get keys: upgrade it")
		case v.Seal == base64.StdEncoding.EncodeToString(public):
			return nil
		default:
			return errors.New("it asked with another public key than that in the record")
		}
	}
	return errors.New("the record has no server with this id that runs")
}

// take stores a key that this server asked for. Nobody can make it take another one.
func (k *keySync) take(from string, m *gozzard.PeerKey, kind keyKind) {
	k.mu.Lock()
	asked := k.asked[m.Key]
	k.mu.Unlock()
	if !asked {
		return
	}

	file, err := enrol.OpenFromPeer(m.Key, k.private, m.Public, m.Sealed)
	if err == nil {
		err = kind.keep(m.Key, file)
	}
	k.kept(from, m.Key, kind, err)
	if err != nil {
		return
	}
	k.mu.Lock()
	delete(k.asked, m.Key)
	k.mu.Unlock()
	signal(k.wake) // it may be the key of the record
}
