package selfupdate

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/release"
)

// Order accepts an order of the server and returns its progress. It does not wait: the server asks again until the
// answer is final.
func (u *Updater) Order(o gozzard.UpdateOrder) gozzard.UpdateReport {
	u.mu.Lock()
	defer u.mu.Unlock()

	// Check the version, because it becomes a part of a path and of a log.
	r := gozzard.UpdateReport{Roll: o.Roll, Version: o.Version, State: gozzard.UpdateWorking}
	if _, err := release.ParseVersion(o.Version); err != nil {
		r.State, r.Reason = gozzard.UpdateRefused, err.Error()
		return r
	}

	// Answer if nothing is to be done.
	switch {
	case o.Version == u.o.Version:
		if !u.trial {
			r.State = gozzard.UpdateDone
		}
		return r
	case u.answer.Roll == o.Roll && u.answer.Version == o.Version:
		return u.answer
	case u.busy:
		r.State = gozzard.UpdateRefused
		r.Reason = "another update of this host is in progress: release " + u.answer.Version
		return r
	}

	// Pass the order to Run.
	select {
	case u.orders <- o:
		u.busy, u.answer = true, r
	default: // Run is about to receive the order before
	}
	return r
}

// Run carries out orders until ctx ends.
func (u *Updater) Run(ctx context.Context, source func(gozzard.UpdateOrder) (Source, error)) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case o := <-u.orders:
			err := u.carryOut(ctx, o, source)
			if ctx.Err() != nil {
				return nil
			}
			u.finish(o, err)
		}
	}
}

// finish records the result of an order.
func (u *Updater) finish(o gozzard.UpdateOrder, err error) {
	u.mu.Lock()
	u.busy = false
	var back *RolledBack
	switch {
	case errors.As(err, &back):
		u.answer.State, u.answer.Reason = gozzard.UpdateRolledBack, clip(back.Reason)
	case err != nil:
		u.answer.State, u.answer.Reason = gozzard.UpdateRefused, clip(err.Error())
	}
	u.mu.Unlock()

	if err != nil {
		u.o.Log.Error("rejected an update, the present program stays",
			"release", o.Version, "running", u.o.Version, "err", err)
	}
}

// carryOut installs the release of an order.
func (u *Updater) carryOut(
	ctx context.Context, o gozzard.UpdateOrder, source func(gozzard.UpdateOrder) (Source, error),
) error {
	src, err := source(o)
	if err != nil {
		return err
	}
	if _, err := u.Install(ctx, ordered{src, o}, Request{Version: o.Version}); err != nil {
		return err
	}

	select {
	case u.placed <- struct{}{}:
	default:
	}
	return nil
}

// ordered is a source that must have exactly the release that was ordered. It tries again if the network fails.
type ordered struct {
	Source
	order gozzard.UpdateOrder
}

func (s ordered) Manifest(ctx context.Context) (manifest, signature []byte, err error) {
	err = withRetry(ctx, func() error {
		manifest, signature, err = s.Source.Manifest(ctx)
		return err
	})
	if err == nil && sha256.Sum256(manifest) != s.order.Manifest {
		err = fmt.Errorf("it is not the release %s that was ordered", s.order.Version)
	}
	return manifest, signature, err
}

func (s ordered) Program(ctx context.Context, f release.File) (r io.ReadCloser, err error) {
	err = withRetry(ctx, func() error {
		r, err = s.Source.Program(ctx, f)
		return err
	})
	return r, err
}

// withRetry calls f up to three times.
func withRetry(ctx context.Context, f func() error) (err error) {
	for _, pause := range []time.Duration{time.Second, 3 * time.Second, 0} {
		if err = f(); err == nil || pause == 0 {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
	return err
}
