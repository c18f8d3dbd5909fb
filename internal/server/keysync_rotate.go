package server

import (
	"context"
	"errors"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/internal/enrol"
	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/signing"
)

const (
	keyWait  = 10 * time.Second // for the other servers during a rotation
	keyOffer = time.Second      // between two offers
)

// rotate makes a new key, gives it to all servers that run, and records it. From then on all sign with it.
func (k *keySync) rotate(ctx context.Context, caller gozzard.Caller) (out client.RotatedKey, err error) {
	k.turn.Lock()
	defer k.turn.Unlock()

	// Begin with the key of the record: another server may have rotated just now.
	err = k.compare(ctx)
	if errors.Is(err, errBehind) {
		err = gozzard.Errorf(gozzard.ErrConflict, "this server waits for the newest signing key from another server: try again soon")
	}
	if err != nil {
		return out, shown(err)
	}

	// Give the next one to all.
	old := k.s.signer.Key()
	file, next, err := k.s.signer.Next()
	if err == nil {
		err = k.s.signer.Keep(next, file)
	}
	if err == nil {
		err = k.spread(ctx, next.String(), file, k.overtaken(old))
	}
	if err != nil {
		return out, shown(err)
	}

	// It counts as soon as it is recorded, also if the answer of the record is lost.
	act := enrol.AuditEntry{At: time.Now(), Caller: caller, What: "key:signing:rotate:" + next.ID().String()}
	err = k.s.store.SetSigningKey(ctx, old.String(), next.String(), act)
	after, cancel := context.WithTimeout(context.WithoutCancel(ctx), keyWait)
	defer cancel()
	if e := k.compare(after); err == nil {
		err = e
	}
	if err != nil {
		return out, shown(err)
	}
	k.s.options.Log.Info("signing key rotated: all servers have it, and hosts accept it with their next command", "key", next.ID().String(),
		"epoch", next.Epoch)
	return client.RotatedKey{Epoch: next.Epoch, ID: next.ID().String(), Replaces: old.ID().String()}, nil
}

// spread gives a key to all other servers that run, and waits until they have stored it. overtaken says whether another server was
// faster.
func (k *keySync) spread(ctx context.Context, key string, file []byte, overtaken func(context.Context) error) error {
	list, err := k.servers(ctx)
	if err != nil {
		return err
	}
	k.offer(key, file)
	defer k.offer("", nil)

	wait, cancel := context.WithTimeout(ctx, keyWait)
	defer cancel()
	for {
		k.tell("", &gozzard.PeerKey{What: gozzard.PeerKeyOffer, Key: key})
		for until := time.After(keyOffer); until != nil; {
			waits, err := k.missing(list)
			if err == nil && waits == "" {
				return nil
			}
			if err == nil && wait.Err() != nil {
				err = k.kindOf(key).notStored(waits)
			}
			if err != nil {
				if faster := overtaken(ctx); faster != nil {
					return faster
				}
				return err
			}

			select {
			case <-wait.Done():
			case <-k.answer:
			case <-until:
				until = nil
			}
		}
		if err := overtaken(ctx); err != nil {
			return err
		}
	}
}

// overtaken says whether another server has rotated the signing key since it was the given one.
func (k *keySync) overtaken(from signing.Key) func(context.Context) error {
	return func(ctx context.Context) error {
		if now, err := k.recorded(ctx); err == nil && now != from {
			return gozzard.Errorf(gozzard.ErrConflict, "another server has rotated the signing key at the same time: "+
				"\"gozzard key status\" shows the present one")
		}
		return nil
	}
}

// offer sets the key that other servers may ask for; "" for none but the present one.
func (k *keySync) offer(key string, file []byte) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.offered, k.file, k.answers = key, file, map[string]string{}
}

// missing is a server that runs and has not stored the key that is offered; "": there is none.
func (k *keySync) missing(list []record.Server) (waits string, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for i := range list {
		v := &list[i]
		if v.ID == k.s.id || !runs(v) {
			continue
		}
		fault, ok := k.answers[v.ID]
		switch {
		case ok && fault != "":
			return "", k.kindOf(k.offered).notUsable(v.ID, fault)
		case !ok:
			waits = v.ID
		}
	}
	return waits, nil
}

// runs reports whether another server runs, as far as the record knows.
func runs(v *record.Server) bool { return v.Address != "" && v.Ago < clusterFresh }
