package server

import (
	"context"
	"crypto/ecdh"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/enrol"
	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/signing"
)

const (
	keyEvery    = 2 * time.Second  // between two looks while this server has not the newest key
	keyLook     = 15 * time.Second // between two looks otherwise; a change makes it look at once
	keyPatience = 30 * time.Second // without the newest key this server ends after this time: agents reject what it signs
)

// keySync keeps the keys of this server those of all servers: the signing key and the authority. The record has the public part
// of the newest ones. The secret part goes from server to server, sealed for each receiver, over their connection with mutual TLS.
//
// A new key is first stored by every server that runs, and then recorded. So from the moment at which it counts, no death of a
// server can take it away. From then on each server uses it.
type keySync struct {
	s     *Server
	wake  chan struct{} // capacity 1
	inbox chan *gozzard.PeerNews

	private *ecdh.PrivateKey // of this run: the row of this server has the public part
	listed  atomic.Bool      // the row is written
	servers func(context.Context) ([]record.Server, error)

	// behind and outdated say that agents know a newer signing key, or authority, than this server has.
	behind, outdated atomic.Bool

	// turn is held while this server compares its keys with the record, or makes a new one.
	turn  sync.Mutex
	noted string // the authority that the row of this server has

	mu      sync.Mutex
	asked   map[string]bool   // keys that this server asked for
	offered string            // the public part of the key that this server offers
	file    []byte            // of that key
	answers map[string]string // of the servers that stored it, or why one did not
	answer  chan struct{}     // capacity 1
}

func newKeySync(s *Server) *keySync {
	private, err := ecdh.X25519().GenerateKey(rand.Reader)
	if err != nil {
		panic(err) // the system's randomness does not fail: it ends the program instead
	}
	return &keySync{s: s, wake: make(chan struct{}, 1), inbox: make(chan *gozzard.PeerNews, 256), private: private,
		servers: func(ctx context.Context) ([]record.Server, error) { return s.store.Servers(ctx) },
		asked:   map[string]bool{}, answer: make(chan struct{}, 1)}
}

// public is the key for which other servers seal, as the record has it.
func (k *keySync) public() string {
	return base64.StdEncoding.EncodeToString(k.private.PublicKey().Bytes())
}

// open finds out before the first agent is served whether the record has newer keys.
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

	authority, err := k.s.store.Authority(ctx)
	if err != nil || authority.Current == "" {
		return err
	}
	pin, err := enrol.CertificatePin(authority.Current)
	if err != nil {
		return fmt.Errorf("the record has a damaged authority: %w", err)
	}
	k.outdated.Store(!k.s.trust.authority.Has(pin))
	return nil
}

// isBehind reports whether agents know newer keys than this server has.
func (k *keySync) isBehind() bool { return k != nil && (k.behind.Load() || k.outdated.Load()) }

// changed is called when another server recorded a new key.
func (k *keySync) changed(context.Context) error {
	signal(k.wake)
	return nil
}

// isListed is called when the row of this server is written: from then on others give keys to it.
func (k *keySync) isListed() {
	if !k.listed.Swap(true) {
		signal(k.wake)
	}
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// What keeps a server from using the keys of the record.
var (
	errBehind    = errors.New("this server does not have the newest signing key")
	errOutdated  = errors.New("this server does not have the key of the present authority")
	errNextAway  = errors.New("this server does not have the key of the next authority")
	errOtherKey  = errors.New("the signing key in the data folder is not that of the installation")
	errOtherNext = errors.New("the next authority in the data folder is not that of the installation")
)

// Run follows the keys of the record until ctx ends. It fails if this server cannot get one that it needs: agents that know it
// reject this server, and would stay connected to it for nothing.
func (k *keySync) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // also when it fails: listen must end
	wg.Go(func() { k.listen(ctx) })

	kinds := []*keyWatch{{k: k, compare: k.compare, file: signing.SignerFile}, {k: k, compare: k.compareAuthority, file: enrol.KeyFile}}
	for {
		pause := keyLook
		for _, w := range kinds {
			soon, err := w.look(ctx)
			if ctx.Err() != nil {
				return nil
			}
			if err != nil {
				return err
			}
			if soon {
				pause = keyEvery
			}
		}

		select {
		case <-ctx.Done():
			return nil
		case <-k.wake:
		case <-time.After(pause):
		}
	}
}

// keyWatch follows one kind of key.
type keyWatch struct {
	k       *keySync
	compare func(context.Context) error
	file    string    // of the key, for people
	since   time.Time // when it was missed first; zero: it is not
}

// look compares the key of this server with that of the record, and does what follows. soon says that it is not done. The error
// is for good.
func (w *keyWatch) look(ctx context.Context) (soon bool, err error) {
	w.k.turn.Lock()
	err = w.compare(ctx)
	w.k.turn.Unlock()
	log := w.k.s.options.Log
	switch {
	case ctx.Err() != nil:
		return false, nil
	case err == nil:
		w.since = time.Time{}
		return false, nil
	case errors.Is(err, errOtherKey), errors.Is(err, errOtherNext):
		return false, err
	case !errors.Is(err, errBehind) && !errors.Is(err, errOutdated) && !errors.Is(err, errNextAway):
		log.Warn("cannot compare the keys of this server with the record; the server tries again soon", "err", err)
	case w.since.IsZero():
		w.since = time.Now()
		log.Warn("the record has a newer key than this server; it asks the other servers for the key", "err", err)
	case time.Since(w.since) > keyPatience && !errors.Is(err, errNextAway): // hosts that have not moved need this server
		return false, fmt.Errorf("%w, and did not get it within %s: agents would reject this server. Start it while a server with the key "+
			"runs, and check that the two reach each other at their cluster addresses; or copy %s from the data folder of that server",
			err, keyPatience, w.file)
	}
	return true, nil
}

// compare compares the signing key of this server with that of the record, and does what follows. turn is held.
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
	if err := k.spread(ctx, own.String(), file, k.overtaken(from)); err != nil {
		return err
	}
	return k.s.store.SetSigningKey(ctx, from.String(), own.String(), enrol.AuditEntry{})
}
