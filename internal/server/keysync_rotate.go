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
		err = k.spread(ctx, old, next, file)
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

// spread gives the key that follows another one to all other servers that run, and waits until they have stored it.
func (k *keySync) spread(ctx context.Context, from, key signing.Key, file []byte) error {
	list, err := k.s.store.Servers(ctx)
	if err != nil {
		return err
	}
	k.offer(key.String(), file)
	defer k.offer("", nil)

	wait, cancel := context.WithTimeout(ctx, keyWait)
	defer cancel()
	for {
		k.tell("", &gozzard.PeerKey{What: gozzard.PeerKeyOffer, Key: key.String()})
		for until := time.After(keyOffer); until != nil; {
			waits, err := k.missing(list)
			if err == nil && waits == "" {
				return nil
			}
			if err == nil && wait.Err() != nil {
				err = gozzard.Errorf(gozzard.ErrConflict, "the signing key was not changed: server %s did not store the new key. If it has "+
					"ended, try again in 10 seconds. Else it is frozen, cut off or has an older version: see \"gozzard servers\", or stop it", waits)
			}
			if err != nil {
				return k.overtaken(ctx, from, err)
			}

			select {
			case <-wait.Done():
			case <-k.answer:
			case <-until:
				until = nil
			}
		}
		if err := k.overtaken(ctx, from, nil); err != nil {
			return err
		}
	}
}

// overtaken is the error of a rotation that another server was faster with, or else another error.
func (k *keySync) overtaken(ctx context.Context, from signing.Key, other error) error {
	if now, err := k.recorded(ctx); err == nil && now != from {
		return gozzard.Errorf(gozzard.ErrConflict, "another server has rotated the signing key at the same time: "+
			"\"gozzard key status\" shows the present one")
	}
	return other
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
		if v.ID == k.s.id || v.Address == "" || v.Ago >= clusterFresh {
			continue
		}
		fault, ok := k.answers[v.ID]
		switch {
		case ok && fault != "":
			return "", gozzard.Errorf(gozzard.ErrConflict, "the signing key was not changed: server %s cannot use the new key: %s", v.ID, fault)
		case !ok:
			waits = v.ID
		}
	}
	return waits, nil
}
