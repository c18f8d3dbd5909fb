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

// Published is a release with its parsed manifest and its state.
type Published struct {
	Release
	Manifest *release.Manifest
	Missing  []release.File // programs that are not uploaded yet
}

// find returns a release by its version. mu is held.
func (r *Runner) find(version string) (Release, *release.Manifest, error) {
	i := slices.IndexFunc(r.releases, func(p Release) bool { return p.Version == version })
	if i < 0 {
		return Release{}, nil, gozzard.Errorf(gozzard.ErrNotFound, "no release %.80q is published", version)
	}
	m, err := release.Parse(r.releases[i].Manifest)
	return r.releases[i], m, err
}

func (r *Runner) published(rel Release, m *release.Manifest) Published {
	p := Published{Release: rel, Manifest: m}
	for _, f := range m.Files {
		if !r.o.Repository.Has(f) {
			p.Missing = append(p.Missing, f)
		}
	}
	return p
}

// Releases lists the published releases, newest first.
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

// Publish stores a release. Its programs are uploaded afterwards. Publishing the same release again changes nothing.
func (r *Runner) Publish(ctx context.Context, caller gozzard.Caller, manifest, signature []byte) (Published, error) {
	// Check the manifest.
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
		return Published{}, gozzard.Errorf(gozzard.ErrInvalid, "release %s expired at %s: no host would install it",
			m.Version, m.Expires.UTC())
	}

	// Look for an earlier one with that version.
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.refresh(ctx); err != nil {
		return Published{}, err
	}
	if known, _, err := r.find(m.Version); err == nil {
		if !bytes.Equal(known.Manifest, manifest) || !bytes.Equal(known.Signature, signature) {
			return Published{}, gozzard.Errorf(gozzard.ErrConflict,
				"release %s is published with another manifest: use a new version", m.Version)
		}
		return r.published(known, m), nil
	}

	// Store it.
	if len(r.releases) >= maxReleases {
		return Published{}, gozzard.Errorf(gozzard.ErrConflict,
			"the limit of %d releases is reached: remove some (gozzard release remove)", maxReleases)
	}

	rel := Release{Version: m.Version, Manifest: manifest, Signature: signature, Published: now, By: person(caller)}
	act := AuditEntry{At: now, Caller: caller, What: "release:publish:" + m.Version}
	if err := r.o.Store.AddRelease(ctx, rel, act); err != nil {
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

// Upload stores a program of a published release.
func (r *Runner) Upload(version, digest string, from io.Reader) error {
	f, err := r.file(version, digest)
	if err != nil || r.o.Repository.Has(f) {
		return err
	}
	if err := r.o.Repository.Put(f, from); err != nil {
		return &gozzard.Error{Kind: gozzard.ErrInvalid, Message: err.Error(), Cause: err}
	}
	return nil
}

// Text returns the manifest of a release, or its signature.
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
	file, err := r.o.Repository.Open(f)
	if os.IsNotExist(err) {
		return nil, gozzard.Errorf(gozzard.ErrNotFound, "%s of release %s is not uploaded", f.Name, version)
	}
	return file, err
}

// Remove removes a release and those of its programs that no other release has.
func (r *Runner) Remove(ctx context.Context, caller gozzard.Caller, version string) error {
	r.mu.Lock()
	defer r.mu.Unlock()

	if err := r.refresh(ctx); err != nil {
		return err
	}
	_, m, err := r.find(version)
	if err != nil {
		return err
	}
	act := AuditEntry{At: r.o.Now(), Caller: caller, What: "release:remove:" + version}
	if err := r.o.Store.RemoveRelease(ctx, version, act); err != nil {
		return err
	}

	r.releases = slices.DeleteFunc(r.releases, func(p Release) bool { return p.Version == version })
	for _, f := range m.Files {
		if !r.used(f) {
			if err := r.o.Repository.Remove(f); err != nil {
				return err
			}
		}
	}

	return nil
}

// used reports whether a release has a program. mu is held.
func (r *Runner) used(f release.File) bool {
	return slices.ContainsFunc(r.releases, func(p Release) bool {
		m, err := release.Parse(p.Manifest)
		return err != nil || slices.ContainsFunc(m.Files, func(o release.File) bool { return o.SHA256 == f.SHA256 })
	})
}
