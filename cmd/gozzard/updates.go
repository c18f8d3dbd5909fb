package main

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/enrol"
	"github.com/gozzard/gozzard/internal/host"
	"github.com/gozzard/gozzard/internal/policy"
	"github.com/gozzard/gozzard/internal/release"
	"github.com/gozzard/gozzard/internal/selfupdate"
)

// releaseKeyFile is where a host has its release key when its policy names no other place.
const releaseKeyFile = "release.pub"

// hostRules reads the policy of a host as it is now; one that is not there yet is the default.
func (c policyConfig) hostRules(data string) (*policy.Policy, error) {
	path := c.File
	if path == "" {
		path = filepath.Join(data, policy.FileName)
	}

	own, err := host.OwnStanding()
	if err != nil {
		return nil, err
	}

	p, err := policy.Load(path, policy.TrustBounds(own.Mode))
	if errors.Is(err, fs.ErrNotExist) && c.File == "" {
		return policy.Default(), nil
	}

	return p, err
}

// releaseKey is the key that the host's owner has put there. The server has no way to put one there or to change it.
func (c policyConfig) releaseKey(data string) (ed25519.PublicKey, error) {
	own, err := host.OwnStanding()
	if err != nil {
		return nil, err
	}
	if own.Mode == gozzard.ModeCap && own.UID != 0 { // whoever could replace the program could become root
		return nil, fmt.Errorf("%w: in mode cap only root may write the agent's program, so root replaces it and sends SIGUSR2", errNoReleaseKey)
	}

	p, err := c.hostRules(data)
	if err != nil {
		return nil, err
	}

	path := p.ReleaseKey
	if path == "" {
		path = filepath.Join(data, releaseKeyFile)
	}

	text, err := policy.TrustBounds(own.Mode).Read(path, release.MaxManifest)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: put the public key of releases into %s to allow updates", errNoReleaseKey, path)
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

// errNoReleaseKey is matched by the error of a host whose owner allows no updates.
var errNoReleaseKey = errors.New("no release key on this host")

// checkUpdates says whether releases can replace the agent of a state folder.
func checkUpdates(data, policyFile string) finding {
	_, err := policyConfig{File: policyFile}.releaseKey(data)
	s, stateErr := selfupdate.ReadState(data)
	switch {
	case errors.Is(err, errNoReleaseKey):
		return finding{findOK, "updates", err.Error()}
	case err != nil:
		return finding{findFail, "updates", err.Error()}
	case stateErr != nil:
		return finding{findFail, "updates", stateErr.Error()}
	case s.Trial != nil:
		return finding{findWarn, "updates", "release " + s.Trial.Version + " is on trial until the server welcomes it"}
	}

	return finding{findOK, "updates", "to newer releases of the release key of this host"}
}

// updater is that of a program file, whose version is known.
func (c policyConfig) updater(data, program, running string, limit time.Duration, args []string,
	log *slog.Logger) *selfupdate.Updater {
	return selfupdate.New(selfupdate.Options{
		Dir: data, Program: program, Version: running, Args: args, Limit: limit, Log: log,
		Key: func() (ed25519.PublicKey, error) { return c.releaseKey(data) },
		AllowDowngrade: func() bool {
			p, err := c.hostRules(data)
			return err == nil && p.AllowDowngrade
		},
	})
}

// beginUpdates is the first thing that an agent does. A program whose trial is over gives its process back here and
// does not return.
func (c *agentConfig) beginUpdates(trial time.Duration, args []string) error {
	data, err := filepath.Abs(c.Data)
	if err != nil {
		return fmt.Errorf("cannot find the state folder: %w", err)
	}

	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("cannot find this program's file: %w", err)
	}

	c.Updates = c.Policy.updater(data, self, version, trial, args, c.Log)

	// the first start, which may be a mistake: nothing is made before that is known
	if _, err := os.Stat(data); errors.Is(err, fs.ErrNotExist) {
		return nil
	}

	own, err := host.OwnStanding()
	if err != nil {
		return err
	}
	if err := c.Policy.checkOwn(data, own.Mode); err != nil {
		return err
	}

	err = c.Updates.Begin()
	var over *selfupdate.Over
	if errors.As(err, &over) {
		if giveBack(c.Updates, c.Log, over.Reason) {
			return handOver(self)
		}
		return nil
	}

	if err != nil { // a full disk or a damaged file must not keep the agent from its processes
		c.Log.Error("the state of updates cannot be kept, this program is not replaced until it can", "err", err)
	}

	return nil
}

// update is how the agent takes orders of its server; nil without an updater.
func (c *agentConfig) update() func(gozzard.UpdateOrder) gozzard.UpdateReport {
	if c.Updates == nil {
		return nil
	}
	return c.Updates.Order
}

func (c *agentConfig) welcomed() func() {
	if c.Updates == nil {
		return nil
	}
	return c.Updates.Welcomed
}

// releaseSource is the server that this host was enrolled by.
func (n *agentNode) releaseSource(o gozzard.UpdateOrder) (selfupdate.Source, error) {
	if n.keep == nil {
		return nil, errors.New("this host was not enrolled: its server cannot prove itself when a release is fetched; use gozzard agent update on the host")
	}
	return serverRelease{keep: n.keep, version: o.Version}, nil
}

// serverRelease is a release as a server hands it on to members.
type serverRelease struct {
	keep    *enrol.Renewer
	version string
}

// Manifest implements update.Source.
func (s serverRelease) Manifest(ctx context.Context) (manifest, signature []byte, err error) {
	if manifest, err = s.fetchSmall(ctx, "manifest"); err != nil {
		return nil, nil, err
	}
	signature, err = s.fetchSmall(ctx, "signature")
	return manifest, signature, err
}

func (s serverRelease) fetchSmall(ctx context.Context, what string) ([]byte, error) {
	r, err := s.keep.Fetch(ctx, enrol.ReleasePath+"/"+s.version+"/"+what)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(io.LimitReader(r, release.MaxManifest+1))
}

// Program implements update.Source.
func (s serverRelease) Program(ctx context.Context, f release.File) (io.ReadCloser, error) {
	return s.keep.Fetch(ctx, enrol.ReleasePath+"/"+s.version+"/"+f.SHA256)
}
