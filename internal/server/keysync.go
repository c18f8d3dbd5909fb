package server

import (
	"context"
	"crypto/ecdh"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/enrol"
	"github.com/gozzard/gozzard/internal/signing"
)

const (
	keyEvery    = 2 * time.Second  // between two looks while this server has not the newest key
	keyLook     = 15 * time.Second // between two looks otherwise; a change makes it look at once
	keyPatience = 30 * time.Second // without the newest key this server ends after this time: agents reject what it signs
)

// keySync keeps the signing key of this server the one of all servers. The record has the public part of the newest key. The
// secret part goes from server to server, sealed for each receiver, over their connection with mutual TLS.
//
// A new key is first stored by every server that runs, and then recorded. So from the moment at which it counts, no death of a
// server can take it away. From then on each server signs with it.
type keySync struct {
	s      *Server
	wake   chan struct{} // capacity 1
	inbox  chan *gozzard.PeerNews
	behind atomic.Bool

	// turn is held while this server compares its key with the record, or makes a new one.
	turn sync.Mutex

	mu      sync.Mutex
	mine    map[string]*ecdh.PrivateKey // for keys that this server asked for
	offered string                      // the public part of the key that this server offers
	file    []byte                      // of that key
	answers map[string]string           // of the servers that stored it, or why one did not
	answer  chan struct{}               // capacity 1
}

func newKeySync(s *Server) *keySync {
	return &keySync{s: s, wake: make(chan struct{}, 1), inbox: make(chan *gozzard.PeerNews, 256),
		mine: map[string]*ecdh.PrivateKey{}, answer: make(chan struct{}, 1)}
}

// open finds out before the first agent is served whether the record has a newer key.
func (k *keySync) open(ctx context.Context) error {
	if k == nil {
		return nil
	}
	recorded, err := k.recorded(ctx)
	if err != nil {
		return err
	}
	k.behind.Store(recorded.Epoch > k.s.signer.Key().Epoch)
	k.forget() // what a crash left
	return nil
}

// isBehind reports whether the installation has a newer key than this server.
func (k *keySync) isBehind() bool { return k != nil && k.behind.Load() }

// changed is called when another server recorded a new key.
func (k *keySync) changed(context.Context) error {
	signal(k.wake)
	return nil
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// errBehind says that this server waits for the newest key.
var errBehind = errors.New("this server does not have the newest signing key")

// Run follows the key of the record until ctx ends. It fails if this server cannot get it: agents that know it reject what
// this server signs, and would stay connected to it for nothing.
func (k *keySync) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // also when it fails: listen must end
	wg.Go(func() { k.listen(ctx) })

	var since time.Time
	for {
		pause := keyEvery
		err := k.look(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err == nil:
			since, pause = time.Time{}, keyLook
		case errors.Is(err, errOtherKey):
			return err
		case !errors.Is(err, errBehind):
			k.s.options.Log.Warn("cannot compare the signing key with the record; the server tries again soon", "err", err)
		case since.IsZero():
			since = time.Now()
			k.s.options.Log.Warn("the record has a newer signing key than this server; it asks the other servers for the key", "err", err)
		case time.Since(since) > keyPatience:
			return fmt.Errorf("%w, and did not get it within %s: agents would reject its commands. Start it while a server with the key runs, and "+
				"check that the two reach each other at their cluster addresses; or copy %s from the data folder of that server",
				err, keyPatience, signing.SignerFile)
		}

		select {
		case <-ctx.Done():
			return nil
		case <-k.wake:
		case <-time.After(pause):
		}
	}
}

// errOtherKey says that this server has a key which does not belong to the installation.
var errOtherKey = errors.New("the signing key in the data folder is not that of the installation")

// look compares the key of this server with that of the record, and does what follows.
func (k *keySync) look(ctx context.Context) error {
	k.turn.Lock()
	defer k.turn.Unlock()
	return k.compare(ctx)
}

// compare is look for callers that have the turn.
func (k *keySync) compare(ctx context.Context) error {
	recorded, err := k.recorded(ctx)
	if err != nil {
		return err
	}

	own := k.s.signer.Key()
	switch {
	case recorded == own:
		k.behind.Store(false)
		return nil
	case own.Epoch < recorded.Epoch:
		return k.follow(recorded)
	case recorded == signing.Key{}: // the first server of the installation
		return k.s.store.SetSigningKey(ctx, "", own.String(), enrol.AuditEntry{})
	case own.Epoch == recorded.Epoch || !k.had(recorded):
		return fmt.Errorf("%w: it is %s of epoch %d, and the servers use %s of epoch %d. Copy %s from the data folder of another server",
			errOtherKey, own.ID(), own.Epoch, recorded.ID(), recorded.Epoch, signing.SignerFile)
	}
	return k.publish(ctx, recorded) // it was rotated in the data folder, while the server was stopped
}

// recorded is the key that the record has; the zero Key: none.
func (k *keySync) recorded(ctx context.Context) (key signing.Key, err error) {
	text, err := k.s.store.SigningKey(ctx)
	if err != nil || text == "" {
		return key, err
	}
	if key, err = signing.ParseKey(text); err != nil {
		return key, fmt.Errorf("the record has a damaged signing key: %w", err)
	}
	return key, nil
}

// had reports whether a key is one of the earlier keys of this server, or older than all that it remembers.
func (k *keySync) had(key signing.Key) bool {
	history := k.s.signer.History()
	return key.Epoch < history[0].Key.Epoch || slices.ContainsFunc(history, func(d signing.DatedKey) bool { return d.Key == key })
}

// follow uses the key of the record. A server that has not stored it asks for it.
func (k *keySync) follow(recorded signing.Key) error {
	err := k.s.signer.Use(recorded)
	if err == nil {
		k.behind.Store(false)
		k.s.options.Log.Info("this server signs with the new signing key", "key", recorded.ID().String(), "epoch", recorded.Epoch)
		k.forget()
		return nil
	}

	k.behind.Store(true)
	if !errors.Is(err, signing.ErrNotKept) {
		return fmt.Errorf("%w: %w", errBehind, err)
	}
	k.ask("", recorded.String())
	return errBehind
}

// forget deletes keys that do not count any more.
func (k *keySync) forget() {
	if err := k.s.signer.Forget(); err != nil {
		k.s.options.Log.Warn("a signing key that is not used any more stays in the data folder", "err", err)
	}
}

// publish makes the key of this server that of the installation, in place of an earlier one.
func (k *keySync) publish(ctx context.Context, from signing.Key) error {
	file, err := k.s.signer.File()
	if err != nil {
		return err
	}
	own := k.s.signer.Key()
	if err := k.spread(ctx, from, own, file); err != nil {
		return err
	}
	return k.s.store.SetSigningKey(ctx, from.String(), own.String(), enrol.AuditEntry{})
}
