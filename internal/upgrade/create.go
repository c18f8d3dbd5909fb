package upgrade

import (
	"context"
	"slices"

	"github.com/gozzard/gozzard"
)

// Request describes the upgrade that a caller wants.
type Request struct {
	Version string
	Stages  []int             // percent of the hosts; none: 1, 10, 100
	Agents  []gozzard.AgentID // none: every enrolled host that is online
}

// Create starts an upgrade. If two people must agree, the upgrade waits until another person approves it.
func (r *Runner) Create(ctx context.Context, caller gozzard.Caller, req Request) (Upgrade, error) {
	// Check the request.
	if len(req.Stages) == 0 {
		req.Stages = []int{1, 10, 100}
	}
	if err := checkStages(req.Stages); err != nil {
		return Upgrade{}, err
	}

	// Check the release.
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.refresh(ctx); err != nil {
		return Upgrade{}, err
	}
	rel, m, err := r.find(req.Version)
	if err != nil {
		return Upgrade{}, err
	}
	if missing := r.published(rel, m).Missing; len(missing) > 0 {
		return Upgrade{}, gozzard.Errorf(gozzard.ErrConflict,
			"%s of release %s is not uploaded: publish it again", missing[0].Name, req.Version)
	}
	now := r.o.Now()
	if !now.Before(m.Expires) {
		return Upgrade{}, gozzard.Errorf(gozzard.ErrConflict,
			"release %s has expired: no host would install it", req.Version)
	}
	if r.open != nil {
		return Upgrade{}, gozzard.Errorf(gozzard.ErrConflict,
			"upgrade %d to release %s is %s: stop it first (gozzard release stop)",
			r.open.ID, r.open.Version, r.open.State)
	}

	// Choose the hosts and store the upgrade.
	agents, err := r.chooseHosts(req.Agents)
	if err != nil {
		return Upgrade{}, err
	}

	u := &Upgrade{
		Version: req.Version, Stages: req.Stages, State: StateRunning, Created: now, Changed: now,
		By: person(caller), Hosts: assign(req.Version, req.Stages, agents),
	}
	if r.o.TwoPerson {
		u.State = StateWaiting
	}
	act := AuditEntry{At: now, Caller: caller, What: "release:roll:" + req.Version, Targets: len(agents)}
	if err := r.o.Store.AddUpgrade(ctx, u, act); err != nil {
		return Upgrade{}, err
	}
	r.setOpen(u)
	return r.copyOpen(), nil
}

// chooseHosts returns the named hosts, which must be enrolled, or all enrolled hosts that are online.
func (r *Runner) chooseHosts(named []gozzard.AgentID) ([]gozzard.AgentID, error) {
	members := r.o.Fleet.Members()
	if len(named) > 0 {
		named = slices.Compact(slices.Sorted(slices.Values(named)))
		for _, a := range named {
			if !slices.Contains(members, a) {
				return nil, gozzard.Errorf(gozzard.ErrNotFound, "agent %.80q is not enrolled", a)
			}
		}
		return named, nil
	}

	isOffline := func(a gozzard.AgentID) bool { return !r.o.Fleet.Look(a).Online }
	online := slices.DeleteFunc(slices.Clone(members), isOffline)
	if len(online) == 0 {
		return nil, gozzard.Errorf(gozzard.ErrConflict, "no enrolled host is online")
	}
	if len(online) > maxHosts {
		return nil, gozzard.Errorf(gozzard.ErrInvalid, "an upgrade has at most %d hosts", maxHosts)
	}

	return online, nil
}

// copyOpen returns a copy of the open upgrade. mu is held.
func (r *Runner) copyOpen() Upgrade {
	c := *r.open
	c.Hosts = slices.Clone(c.Hosts)
	return c
}

// Approve starts an upgrade that waits for approval. The person that created it cannot approve it.
func (r *Runner) Approve(ctx context.Context, caller gozzard.Caller, version string) (Upgrade, error) {
	return r.change(ctx, caller, version, "approve", func(u *Upgrade) error {
		if u.State != StateWaiting {
			return gozzard.Errorf(gozzard.ErrConflict,
				"upgrade %d to release %s does not wait for approval", u.ID, u.Version)
		}
		if person(caller) == u.By {
			return gozzard.Errorf(gozzard.ErrUserForbidden,
				"upgrade %d was created by %s: another person must approve it, with a login or another app",
				u.ID, u.By)
		}
		u.State, u.Approved = StateRunning, person(caller)
		return nil
	})
}

// Stop ends the open upgrade. Hosts that were already asked may still finish.
func (r *Runner) Stop(ctx context.Context, caller gozzard.Caller, version string) (Upgrade, error) {
	return r.change(ctx, caller, version, "stop", func(u *Upgrade) error {
		u.State, u.Reason = StateStopped, "stopped by "+person(caller)
		return nil
	})
}

// change changes the open upgrade and stores it.
func (r *Runner) change(
	ctx context.Context, caller gozzard.Caller, version, verb string, f func(*Upgrade) error,
) (Upgrade, error) {
	r.mu.Lock()
	defer r.mu.Unlock()

	if err := r.reload(ctx); err != nil {
		return Upgrade{}, err
	}
	if r.open == nil || r.open.Version != version {
		return Upgrade{}, gozzard.Errorf(gozzard.ErrNotFound, "no upgrade to release %.80q is open", version)
	}

	next := r.copyOpen()
	if err := f(&next); err != nil {
		return Upgrade{}, err
	}

	next.Changed = r.o.Now()
	act := AuditEntry{
		At: next.Changed, Caller: caller, What: "release:" + verb + ":" + version, Targets: len(next.Hosts),
	}
	if err := r.o.Store.SaveUpgrade(ctx, &next, nil, act); err != nil {
		return Upgrade{}, err
	}
	r.updateOpen(&next)
	return next, nil
}

// updateOpen replaces the open upgrade by its changed copy, or by none if the copy is final. mu is held.
func (r *Runner) updateOpen(next *Upgrade) {
	if !next.State.Open() {
		r.setOpen(nil)
		return
	}
	kept := *next
	r.open = &kept
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// Upgrades lists the newest upgrades, newest first.
func (r *Runner) Upgrades(ctx context.Context, limit int) ([]Upgrade, error) {
	return r.o.Store.Upgrades(ctx, limit)
}
