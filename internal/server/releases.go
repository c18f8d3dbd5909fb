package server

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/enrol"
	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/release"
	"github.com/gozzard/gozzard/internal/upgrade"
)

// ReleaseOptions say how a server brings releases to hosts.
type ReleaseOptions struct {
	Key       string        // file with the public release key; "": any release can be published
	TwoPerson bool          // an upgrade begins when another person has approved it
	Patience  time.Duration // how long a host may take
}

// openUpgrades opens what brings releases to enrolled hosts. A server without enrolled hosts has none.
func (s *Server) openUpgrades(ctx context.Context) (err error) {
	if s.trust.registry == nil {
		return nil
	}

	o := upgrade.Options{Store: s.store, Fleet: upgradeFleet{s.plane, s.trust.registry}, Log: s.options.Log,
		TwoPerson: s.options.Release.TwoPerson, Patience: s.options.Release.Patience}

	if s.options.shared {
		o.Version = func(ctx context.Context) (int64, error) {
			versions, err := s.store.Versions(ctx)
			return versions[record.KindReleases], err
		}
	}

	// Read the key that releases must be signed with.
	if path := s.options.Release.Key; path != "" {
		text, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("cannot read --release-key: %w", err)
		}
		if o.Key, err = release.PublicKey(text); err != nil {
			return fmt.Errorf("cannot use --release-key %s: %w", path, err)
		}
	}

	// Open the releases in the data folder.
	if o.Repository, err = release.OpenRepository(filepath.Join(s.options.Data, "releases")); err != nil {
		return err
	}

	s.upgrades, err = upgrade.New(ctx, o)
	return err
}

// upgradeFleet is the fleet as upgrades see it.
type upgradeFleet struct {
	plane    *Plane
	registry *enrol.Registry
}

// Members implements upgrade.Fleet.
func (f upgradeFleet) Members() (list []gozzard.AgentID) {
	for _, m := range f.registry.Agents() {
		if m.State == enrol.StateActive {
			list = append(list, m.Agent)
		}
	}
	return list
}

// Look implements upgrade.Fleet.
func (f upgradeFleet) Look(agent gozzard.AgentID) upgrade.HostView {
	h, known := f.plane.Look(agent)
	if !known {
		return upgrade.HostView{}
	}
	return upgrade.HostView{Online: h.Online && f.registry.StateOf(agent) == enrol.StateActive, Version: h.Info.Version,
		Platform: h.Info.OS + "/" + h.Info.Arch}
}

// Order implements upgrade.Fleet.
func (f upgradeFleet) Order(agent gozzard.AgentID, o gozzard.UpdateOrder) {
	f.plane.OrderUpdate(agent, o)
}

// updateAnswered hands on what an agent answered to an order to update. Agents are heard only while the server runs.
func (s *Server) updateAnswered(from gozzard.AgentID, r gozzard.UpdateReport) {
	if s.upgrades != nil {
		s.upgrades.Report(from, r)
	}
}
