package upgrade

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"io"
	"os"
	"slices"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/release"
)

// Published is a release as people see it.
type Published struct {
	Release
	Manifest *release.Manifest
	Missing  []release.File // programs that were not uploaded yet
}

// find gives a release by its version. mu is held.
func (r *Runner) find(version string) (Release, *release.Manifest, error) {
	i := slices.IndexFunc(r.releases, func(p Release) bool { return p.Version == version })
	if i < 0 {
		return Release{}, nil, gozzard.Errorf(gozzard.ErrNotFound, "no release %.80q was published", version)
	}
	m, err := release.Parse(r.releases[i].Manifest)
	return r.releases[i], m, err
}

func (r *Runner) published(rel Release, m *release.Manifest) Published {
	p := Published{Release: rel, Manifest: m}
	for _, f := range m.Files {
		if !r.o.Shelf.Has(f) {
			p.Missing = append(p.Missing, f)
		}
	}
	return p
}

// Releases lists what was published, newest first.
func (r *Runner) Releases() (list []Published, err error) {
	r.mu.Lock()
	releases := slices.Clone(r.releases)
	r.mu.Unlock()
	for _, rel := range releases {
		m, err := release.Parse(rel.Manifest)
		if err != nil {
			return nil, err
		}
		list = append(list, r.published(rel, m))
	}
	return list, nil
}

// Publish records a release. Its programs are uploaded afterwards. Publishing it again changes nothing.
func (r *Runner) Publish(ctx context.Context, caller gozzard.Caller, manifest, signature []byte) (Published, error) {
	m, err := release.Parse(manifest)
	if err == nil && r.o.Key != nil {
		m, err = release.Verify(r.o.Key, manifest, signature)
	}
	if err != nil {
		return Published{}, &gozzard.Error{Kind: gozzard.ErrInvalid, Message: err.Error(), Cause: err}
	}
	if len(signature) != ed25519.SignatureSize {
		return Published{}, gozzard.Errorf(gozzard.ErrInvalid,
			"the manifest is not signed: %s has no Ed25519 signature", release.SignatureName)
	}

	now := r.o.Now()
	if !now.Before(m.Expires) {
		return Published{}, gozzard.Errorf(gozzard.ErrInvalid, "release %s expired at %s: no host would take it",
			m.Version, m.Expires.UTC())
	}

	r.mu.Lock()
	defer r.mu.Unlock()

	if known, _, err := r.find(m.Version); err == nil {
		if !bytes.Equal(known.Manifest, manifest) || !bytes.Equal(known.Signature, signature) {
			return Published{}, gozzard.Errorf(gozzard.ErrConflict,
				"release %s was published with another manifest: a version is given once", m.Version)
		}
		return r.published(known, m), nil
	}

	if len(r.releases) >= maxReleases {
		return Published{}, gozzard.Errorf(gozzard.ErrConflict,
			"%d releases are kept already: remove some (gozzard release remove)", maxReleases)
	}

	rel := Release{Version: m.Version, Manifest: manifest, Signature: signature, Published: now, By: person(caller)}
	if err := r.o.Store.AddRelease(ctx, rel, AuditEntry{At: now, Caller: caller,
		What: "release:publish:" + m.Version}); err != nil {
		return Published{}, err
	}

	r.releases = slices.Insert(r.releases, 0, rel)
	return r.published(rel, m), nil
}

// file finds a program of a release by its digest.
func (r *Runner) file(version, digest string) (release.File, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, m, err := r.find(version)
	if err != nil {
		return release.File{}, err
	}
	i := slices.IndexFunc(m.Files, func(f release.File) bool { return f.SHA256 == digest })
	if i < 0 {
		return release.File{}, gozzard.Errorf(gozzard.ErrNotFound, "release %s has no such program", version)
	}
	return m.Files[i], nil
}

// Upload keeps a program of a release that was published.
func (r *Runner) Upload(version, digest string, from io.Reader) error {
	f, err := r.file(version, digest)
	if err != nil || r.o.Shelf.Has(f) {
		return err
	}
	if err := r.o.Shelf.Put(f, from); err != nil {
		return &gozzard.Error{Kind: gozzard.ErrInvalid, Message: err.Error(), Cause: err}
	}
	return nil
}

// Text gives the manifest of a release, or its signature.
func (r *Runner) Text(version string, signature bool) ([]byte, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	rel, _, err := r.find(version)
	if signature {
		return rel.Signature, err
	}
	return rel.Manifest, err
}

// Program opens a program of a release.
func (r *Runner) Program(version, digest string) (*os.File, error) {
	f, err := r.file(version, digest)
	if err != nil {
		return nil, err
	}
	file, err := r.o.Shelf.Open(f)
	if os.IsNotExist(err) {
		return nil, gozzard.Errorf(gozzard.ErrNotFound, "%s of release %s was not uploaded", f.Name, version)
	}
	return file, err
}

// Remove forgets a release and gives the room of its programs free.
func (r *Runner) Remove(ctx context.Context, caller gozzard.Caller, version string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, m, err := r.find(version)
	if err != nil {
		return err
	}
	if err := r.o.Store.RemoveRelease(ctx, version,
		AuditEntry{At: r.o.Now(), Caller: caller, What: "release:remove:" + version}); err != nil {
		return err
	}

	r.releases = slices.DeleteFunc(r.releases, func(p Release) bool { return p.Version == version })
	for _, f := range m.Files {
		if !r.used(f) {
			if err := r.o.Shelf.Remove(f); err != nil {
				return err
			}
		}
	}

	return nil
}

// used reports whether a release that is kept has a program. mu is held.
func (r *Runner) used(f release.File) bool {
	return slices.ContainsFunc(r.releases, func(p Release) bool {
		m, err := release.Parse(p.Manifest)
		return err != nil || slices.ContainsFunc(m.Files, func(o release.File) bool { return o.SHA256 == f.SHA256 })
	})
}

// Request is a roll as somebody wants it.
type Request struct {
	Version string
	Stages  []int             // none: 1, 10, 100
	Agents  []gozzard.AgentID // none: every enrolled host that is online
}

// Create begins a roll, or has it wait for somebody else's word where two must agree.
func (r *Runner) Create(ctx context.Context, caller gozzard.Caller, w Request) (Upgrade, error) {
	if len(w.Stages) == 0 {
		w.Stages = []int{1, 10, 100}
	}
	if err := checkStages(w.Stages); err != nil {
		return Upgrade{}, err
	}

	r.mu.Lock()
	defer r.mu.Unlock()
	rel, m, err := r.find(w.Version)
	if err != nil {
		return Upgrade{}, err
	}

	now := r.o.Now()

	if missing := r.published(rel, m).Missing; len(missing) > 0 {
		return Upgrade{}, gozzard.Errorf(gozzard.ErrConflict, "%s of release %s was not uploaded: publish it again",
			missing[0].Name, w.Version)
	}

	if !now.Before(m.Expires) {
		return Upgrade{}, gozzard.Errorf(gozzard.ErrConflict, "release %s has expired: no host would take it",
			w.Version)
	}

	if r.open != nil {
		return Upgrade{}, gozzard.Errorf(gozzard.ErrConflict,
			"roll %d of release %s is %s: stop it first (gozzard release stop)", r.open.ID, r.open.Version,
			r.open.State)
	}

	agents, err := r.choose(w.Agents)
	if err != nil {
		return Upgrade{}, err
	}

	roll := &Upgrade{Version: w.Version, Stages: w.Stages, State: StateRunning, Created: now, Changed: now,
		By: person(caller), Hosts: assign(w.Version, w.Stages, agents)}

	if r.o.TwoPerson {
		roll.State = StateWaiting
	}
	if err := r.o.Store.AddUpgrade(ctx, roll, AuditEntry{At: now, Caller: caller, What: "release:roll:" + w.Version,
		Targets: len(agents)}); err != nil {
		return Upgrade{}, err
	}

	r.setOpen(roll)
	return r.copyOpen(), nil
}

// choose finds the hosts of a roll. Those that are named must be enrolled; the others are those that are there now.
func (r *Runner) choose(named []gozzard.AgentID) ([]gozzard.AgentID, error) {
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

	online := slices.DeleteFunc(slices.Clone(members),
		func(a gozzard.AgentID) bool { return !r.o.Fleet.Look(a).Online })

	if len(online) == 0 {
		return nil, gozzard.Errorf(gozzard.ErrConflict, "no enrolled host is online")
	}
	if len(online) > maxHosts {
		return nil, gozzard.Errorf(gozzard.ErrInvalid, "a roll has at most %d hosts", maxHosts)
	}

	return online, nil
}

func (r *Runner) copyOpen() Upgrade {
	c := *r.open
	c.Hosts = slices.Clone(c.Hosts)
	return c
}

// Approve lets the open roll begin. It takes another person than the one who created it.
func (r *Runner) Approve(ctx context.Context, caller gozzard.Caller, version string) (Upgrade, error) {
	return r.change(ctx, caller, version, "approve", func(roll *Upgrade) error {
		if roll.State != StateWaiting {
			return gozzard.Errorf(gozzard.ErrConflict, "roll %d of release %s does not wait for approval", roll.ID,
				roll.Version)
		}
		if person(caller) == roll.By {
			return gozzard.Errorf(gozzard.ErrUserForbidden,
				"roll %d was made by %s: somebody else must approve it, proven by a login or another app", roll.ID,
				roll.By)
		}
		roll.State, roll.Approved = StateRunning, person(caller)
		return nil
	})
}

// Stop ends the open roll. Hosts that were asked already may still finish.
func (r *Runner) Stop(ctx context.Context, caller gozzard.Caller, version string) (Upgrade, error) {
	return r.change(ctx, caller, version, "stop", func(roll *Upgrade) error {
		roll.State, roll.Reason = StateStopped, "stopped by "+person(caller)
		return nil
	})
}

func (r *Runner) change(ctx context.Context, caller gozzard.Caller, version, verb string,
	f func(*Upgrade) error) (Upgrade, error) {
	r.mu.Lock()
	defer r.mu.Unlock()

	if r.open == nil || r.open.Version != version {
		return Upgrade{}, gozzard.Errorf(gozzard.ErrNotFound, "no roll of release %.80q is open", version)
	}

	next := r.copyOpen()
	if err := f(&next); err != nil {
		return Upgrade{}, err
	}

	next.Changed = r.o.Now()
	if err := r.o.Store.SaveUpgrade(ctx, &next, nil,
		AuditEntry{At: next.Changed, Caller: caller, What: "release:" + verb + ":" + version,
			Targets: len(next.Hosts)}); err != nil {
		return Upgrade{}, err
	}

	r.setOpenOr(&next)
	return next, nil
}

// setOpenOr keeps a roll that was changed as the open one, unless it is final now. mu is held.
func (r *Runner) setOpenOr(next *Upgrade) {
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

// Upgrades lists the newest rolls, newest first.
func (r *Runner) Upgrades(ctx context.Context, limit int) ([]Upgrade, error) {
	return r.o.Store.Upgrades(ctx, limit)
}
