package agentd

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/enrol"
	"github.com/gozzard/gozzard/internal/host"
	"github.com/gozzard/gozzard/internal/policy"
	"github.com/gozzard/gozzard/internal/release"
	"github.com/gozzard/gozzard/internal/selfupdate"
)

// releaseKeyFile is the release key of a host beside its policy, when the policy names no other place.
const releaseKeyFile = "release.pub"

// hostRules reads the policy of a host as it is now; one that is not there yet is the default.
func (o PolicyOptions) hostRules(data string) (path string, _ *policy.Policy, _ error) {
	own, err := host.OwnPrivileges()
	if err != nil {
		return "", nil, err
	}
	if path, err = o.Find(data, own); err != nil {
		return "", nil, err
	}

	p, err := policy.Load(path, policy.TrustBounds(own.Mode))
	if errors.Is(err, fs.ErrNotExist) && o.File == "" {
		return path, policy.Default(), nil
	}

	return path, p, err
}

// ReleaseKey is the key that the owner of the host has put there. The server has no way to write or to change it.
func (o PolicyOptions) ReleaseKey(data string) (ed25519.PublicKey, error) {
	own, err := host.OwnPrivileges()
	if err != nil {
		return nil, err
	}
	if own.Mode == gozzard.ModeCap && own.UID != 0 { // an account that can replace the program could become root
		return nil, fmt.Errorf("%w: in mode cap only root may write the agent's program, so root replaces it and "+
			"sends SIGUSR2", ErrNoReleaseKey)
	}

	file, p, err := o.hostRules(data)
	if err != nil {
		return nil, err
	}
	path := releaseKeyPath(file, p)

	text, err := policy.TrustBounds(own.Mode).Read(path, release.MaxManifest)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: put the public key of releases into %s to allow updates", ErrNoReleaseKey, path)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the release key: %w", err)
	}

	key, err := release.PublicKey(text)
	if err != nil {
		return nil, fmt.Errorf("cannot use the release key in %s: %w", path, err)
	}

	return key, nil
}

// ErrNoReleaseKey is matched by the error of a host whose owner allows no updates.
var ErrNoReleaseKey = errors.New("no release key on this host")

// updater makes the updater of a program file whose version is known.
func (o PolicyOptions) updater(data, program, running string, limit time.Duration, args []string,
	log *slog.Logger) *selfupdate.Updater {
	return selfupdate.New(selfupdate.Options{
		Dir: data, Program: program, Version: running, Args: args, Limit: limit, Log: log,
		Key: func() (ed25519.PublicKey, error) { return o.ReleaseKey(data) },
		AllowDowngrade: func() bool {
			_, p, err := o.hostRules(data)
			return err == nil && p.AllowDowngrade
		},
	})
}

// releaseSource fetches releases from the server that this host is enrolled at.
func (a *Agent) releaseSource(o gozzard.UpdateOrder) (selfupdate.Source, error) {
	if a.renewer == nil {
		return nil, errors.New("this host is not enrolled, so its server cannot prove itself when a release is fetched; " +
			"use gozzard agent update on the host")
	}
	return serverRelease{renewer: a.renewer, version: o.Version}, nil
}

// serverRelease is a release as a server gives it to enrolled hosts.
type serverRelease struct {
	renewer *enrol.Renewer
	version string
}

// Manifest implements selfupdate.Source.
func (s serverRelease) Manifest(ctx context.Context) (manifest, signature []byte, err error) {
	if manifest, err = s.fetchSmall(ctx, "manifest"); err != nil {
		return nil, nil, err
	}
	signature, err = s.fetchSmall(ctx, "signature")
	return manifest, signature, err
}

func (s serverRelease) fetchSmall(ctx context.Context, what string) ([]byte, error) {
	r, err := s.renewer.Fetch(ctx, enrol.ReleasePath+"/"+s.version+"/"+what)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(io.LimitReader(r, release.MaxManifest+1))
}

// Program implements selfupdate.Source.
func (s serverRelease) Program(ctx context.Context, f release.File) (io.ReadCloser, error) {
	return s.renewer.Fetch(ctx, enrol.ReleasePath+"/"+s.version+"/"+f.SHA256)
}
