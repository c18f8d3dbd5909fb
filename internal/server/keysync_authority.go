package server

import (
	"context"
	"errors"
	"fmt"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/enrol"
	"github.com/gozzard/gozzard/internal/record"
)

// authorities are those that this server uses.
func (k *keySync) authorities() (a record.Authority) {
	a.Current, a.Next = k.s.trust.authority.Certificates()
	return a
}

// compareAuthority compares the authority of this server with that of the record, and does what follows. turn is held.
func (k *keySync) compareAuthority(ctx context.Context) error {
	recorded, err := k.s.store.Authority(ctx)
	if err != nil {
		return err
	}
	if recorded.Current == "" { // the first server of the installation
		if err := k.s.store.SetAuthority(ctx, recorded, k.authorities(), enrol.AuditEntry{}); err != nil {
			return err
		}
		recorded = k.authorities()
	}
	if k.authorities() != recorded {
		if err := k.followAuthority(ctx, recorded); err != nil {
			return err
		}
	}

	k.outdated.Store(false)
	if err := k.s.trust.authority.Forget(); err != nil {
		k.s.options.Log.Warn("the key of an authority that does not count stays in the data folder", "err", err)
	}
	return k.noteAuthority(ctx)
}

// noteAuthority writes into the row of this server which authority it has.
func (k *keySync) noteAuthority(ctx context.Context) error {
	pin := k.s.trust.authority.Newest()
	if pin == k.noted || !k.listed.Load() {
		return nil
	}
	found, err := k.s.store.SetServerAuthority(ctx, k.s.id, pin)
	if err == nil && found {
		k.noted = pin
	}
	return err
}

// followAuthority uses the authorities of the record, or makes those of this server count if they are newer.
func (k *keySync) followAuthority(ctx context.Context, recorded record.Authority) error {
	own := k.authorities()
	if own.Current != recorded.Current && own.Next != recorded.Current {
		newer, err := enrol.FollowsAuthority(own.Current, recorded.Current)
		if err != nil {
			return fmt.Errorf("the record has a damaged authority: %w", err)
		}
		if newer { // the record is an older copy, or this server was alone for a while
			return k.publishAuthority(ctx, recorded)
		}

		// This server missed the beginning and the end of a rotation.
		if err := k.useAuthority(recorded.Current); err != nil {
			k.outdated.Store(true)
			return missed(errOutdated, err)
		}
		own = k.authorities()
	}

	// Another server has ended the rotation.
	if own.Current != recorded.Current {
		if err := k.endRotation(ctx); err != nil {
			return err
		}
		own = k.authorities()
	}

	k.outdated.Store(false)
	switch {
	case own.Next == recorded.Next:
		return nil
	case recorded.Next == "": // it was made before the servers shared it
		return k.publishAuthority(ctx, recorded)
	case own.Next != "":
		return fmt.Errorf("%w: move %s out of the data folder and start the server again. Hosts that know no other authority must join again",
			errOtherNext, enrol.NextKeyFile)
	}
	if err := k.useAuthority(recorded.Next); err != nil {
		return missed(errNextAway, err)
	}
	k.s.options.Log.Info("this server uses the next authority beside the present one", "authority", k.s.trust.authority.Newest())
	return k.s.renewCredentials()
}

// useAuthority uses an authority of the record as the next one. A server that has not stored it asks for it.
func (k *keySync) useAuthority(certificate string) error {
	pin, err := enrol.CertificatePin(certificate)
	if err != nil {
		return err
	}
	err = k.s.trust.authority.Use(pin)
	if errors.Is(err, enrol.ErrNotKept) {
		k.ask("", authorityPrefix+pin)
	}
	return err
}

// missed is what an authority is missed for, with the cause if there is more to say.
func missed(what, err error) error {
	if errors.Is(err, enrol.ErrNotKept) {
		return what
	}
	return fmt.Errorf("%w: %w", what, err)
}

// endRotation uses the next authority alone.
func (k *keySync) endRotation(ctx context.Context) error {
	if err := k.s.trust.registry.ReadMoves(ctx); err != nil { // or hosts that moved at other servers are disconnected
		return err
	}
	if err := k.s.trust.registry.EndRotation(); err != nil {
		return err
	}
	return k.s.renewCredentials()
}

// publishAuthority makes the authorities of this server those of the installation.
func (k *keySync) publishAuthority(ctx context.Context, recorded record.Authority) error {
	own := k.authorities()
	for _, certificate := range []string{own.Current, own.Next} {
		if certificate == "" {
			continue
		}
		if err := k.spreadAuthority(ctx, certificate, nil, recorded); err != nil {
			return err
		}
	}
	return k.s.store.SetAuthority(ctx, recorded, own, enrol.AuditEntry{})
}

// spreadAuthority gives the key of an authority to all servers that run. file is nil for an authority that this server uses.
func (k *keySync) spreadAuthority(ctx context.Context, certificate string, file []byte, from record.Authority) error {
	pin, err := enrol.CertificatePin(certificate)
	if err != nil {
		return err
	}
	return k.spread(ctx, authorityPrefix+pin, file, func(ctx context.Context) error {
		if now, err := k.s.store.Authority(ctx); err == nil && now != from {
			return gozzard.Errorf(gozzard.ErrConflict, "another server has rotated the authority at the same time: "+
				"\"gozzard key status\" shows the present one")
		}
		return nil
	})
}

// currentAuthority makes sure that this server has the authorities of the record: another one may have rotated just now.
func (k *keySync) currentAuthority(ctx context.Context) error {
	err := k.compareAuthority(ctx)
	if errors.Is(err, errOutdated) || errors.Is(err, errNextAway) {
		err = gozzard.Errorf(gozzard.ErrConflict, "this server waits for the authority from another server: try again soon")
	}
	return err
}

// recordAuthority records a step of a rotation, and takes it on this server. It counts as soon as it is recorded, also if the
// answer of the record is lost.
func (k *keySync) recordAuthority(ctx context.Context, from, to record.Authority, act enrol.AuditEntry) error {
	err := k.s.store.SetAuthority(ctx, from, to, act)
	after, cancel := context.WithTimeout(context.WithoutCancel(ctx), keyWait)
	defer cancel()
	if e := k.compareAuthority(after); err == nil {
		err = e
	}
	return err
}

// rotateAuthority makes the next authority, gives it to all servers that run, and records it. From then on hosts move to it.
func (k *keySync) rotateAuthority(ctx context.Context, caller gozzard.Caller) (m enrol.AuthorityMove, err error) {
	k.turn.Lock()
	defer k.turn.Unlock()
	if err := k.currentAuthority(ctx); err != nil {
		return m, err
	}

	// Give it to all.
	a, r := k.s.trust.authority, k.s.trust.registry
	from := k.authorities()
	file, certificate, err := a.MakeNext()
	if err != nil {
		return m, err
	}
	pin, err := enrol.CertificatePin(certificate)
	if err == nil {
		err = a.Keep(pin, file)
	}
	if err == nil {
		err = k.spreadAuthority(ctx, certificate, file, from)
	}
	if err != nil {
		return m, err
	}

	to := record.Authority{Current: from.Current, Next: certificate}
	if err := k.recordAuthority(ctx, from, to, r.ActOfRotation(caller, pin)); err != nil {
		return m, err
	}
	if err := r.ReadMoves(ctx); err != nil {
		return m, err
	}
	m = r.AuthorityMove()
	k.s.options.Log.Info("authority rotation begun: all servers that run have the next authority, and hosts move to it when they renew "+
		"their certificates", "authority", m.Next, "hosts", len(m.Waiting))
	return m, nil
}

// finishAuthority puts the next authority in the place of the present one, on all servers.
func (k *keySync) finishAuthority(ctx context.Context, caller gozzard.Caller, confirm int) (m enrol.AuthorityMove, err error) {
	k.turn.Lock()
	defer k.turn.Unlock()
	if err := k.currentAuthority(ctx); err != nil {
		return m, err
	}
	r, from := k.s.trust.registry, k.authorities()
	if err := r.ReadMoves(ctx); err != nil {
		return m, err
	}
	o := enrol.FinishOptions{Caller: caller, Confirm: confirm}

	// A server that runs without it would be cut off from all others, so it gets it now.
	if from.Next != "" {
		if err := k.spreadAuthority(ctx, from.Next, nil, from); err != nil {
			return m, err
		}
		if o.Away, err = k.withoutNext(ctx, false); err != nil {
			return m, err
		}
	}
	o.Record = func(ctx context.Context, act enrol.AuditEntry) error {
		return k.recordAuthority(ctx, from, record.Authority{Current: from.Next}, act)
	}
	return r.FinishAuthority(ctx, o)
}

// withoutNext are the ids of other servers that do not have the newest authority, as the record knows. Those that run get it by
// themselves, so they may be left out.
func (k *keySync) withoutNext(ctx context.Context, running bool) (ids []string, err error) {
	list, err := k.servers(ctx)
	for i := range list {
		v := &list[i]
		if v.ID != k.s.id && v.Address != "" && v.Authority != k.s.trust.authority.Newest() && (running || !runs(v)) {
			ids = append(ids, v.ID)
		}
	}
	return ids, err
}
