package upgrade

import (
	"context"
	"fmt"
	"time"
)

// unread is the version of a memory that must be read again.
const unread = -1

// followEvery is how often a server looks for releases that others have changed.
const followEvery = 5 * time.Second

// Follow takes over what other servers change, until ctx ends: every server lists the releases, and gives them to agents.
func (r *Runner) Follow(ctx context.Context) error {
	for failed := 0; ; {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(followEvery):
		}

		switch err := r.Refresh(ctx); {
		case err == nil:
			failed = 0
		case ctx.Err() == nil:
			if failed++; failed&(failed-1) == 0 { // the log does not repeat every try
				r.o.Log.Error("cannot read the releases that other servers changed, trying again", "tries", failed, "err", err)
			}
		}
	}
}

// Refresh takes over at once what other servers have changed.
func (r *Runner) Refresh(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.refresh(ctx)
}

// forget makes the next look at the record read everything, if other servers use it, too.
func (r *Runner) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.version = unread
}

// refresh reads the record again if another server has changed it. mu is held.
func (r *Runner) refresh(ctx context.Context) error {
	if r.o.Version == nil {
		return nil
	}
	now, err := r.o.Version(ctx)
	if err != nil || now == r.version {
		return err
	}
	if err := r.load(ctx); err != nil {
		return err
	}
	r.version = now // it was read before the rest: a change after it is noticed the next time
	return nil
}

// reload is refresh that also reads what the server that runs the upgrade has done since. mu is held.
func (r *Runner) reload(ctx context.Context) error {
	r.version = unread
	return r.refresh(ctx)
}

// load reads the record. mu is held, or no other goroutine knows the Runner yet.
func (r *Runner) load(ctx context.Context) error {
	releases, err := r.o.Store.Releases(ctx)
	if err != nil {
		return fmt.Errorf("cannot read the releases: %w", err)
	}
	upgrades, err := r.o.Store.Upgrades(ctx, 1) // only the newest can be open
	if err != nil {
		return fmt.Errorf("cannot read the upgrades: %w", err)
	}

	r.releases = releases
	switch {
	case len(upgrades) == 0 || !upgrades[0].State.Open():
		r.setOpen(nil)
	case r.open != nil && r.open.ID == upgrades[0].ID:
		r.open = &upgrades[0] // its reports are still right
	default:
		r.setOpen(&upgrades[0])
	}
	return nil
}
