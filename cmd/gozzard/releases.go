package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/pflag"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/enrol"
	"github.com/gozzard/gozzard/internal/release"
	"github.com/gozzard/gozzard/internal/upgrade"
)

// releaseConfig is how a server treats releases.
type releaseConfig struct {
	Key       string
	TwoPerson bool
	Patience  time.Duration
}

func (c *releaseConfig) register(f *pflag.FlagSet) {
	f.StringVar(&c.Key, "release-key", "",
		"`FILE` with the public release key (PEM): releases that it has not signed are not even published; hosts check by their own key anyway")
	f.BoolVar(&c.TwoPerson, "release-two-person", false,
		"a roll of a release begins only when another person has approved it")
	f.DurationVar(&c.Patience, "release-patience", 5*time.Minute,
		"how long a host may take from being asked until it is welcomed with a release; then the roll stops")
}

// openReleases makes what brings releases to enrolled hosts; nil on a server that enrols none.
func (n *node) openReleases(ctx context.Context) (err error) {
	if n.trust.desk == nil {
		return nil
	}

	o := upgrade.Options{Store: n.store, Fleet: rollFleet{n.plane, n.trust.desk}, TwoPerson: n.cfg.Release.TwoPerson,
		Patience: n.cfg.Release.Patience, Log: n.cfg.Log}

	if path := n.cfg.Release.Key; path != "" {
		text, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("cannot read --release-key: %w", err)
		}
		if o.Key, err = release.PublicKey(text); err != nil {
			return fmt.Errorf("cannot use --release-key %s: %w", path, err)
		}
	}

	if o.Repository, err = release.OpenRepository(filepath.Join(n.cfg.Data, "releases")); err != nil {
		return err
	}

	n.releases, err = upgrade.New(ctx, o)
	return err
}

// rollFleet is the fleet as rolls see it.
type rollFleet struct {
	plane *guardedPlane
	desk  *enrol.Registry
}

// Members implements roll.Fleet.
func (f rollFleet) Members() (list []gozzard.AgentID) {
	for _, m := range f.desk.Agents() {
		if m.State == enrol.StateActive {
			list = append(list, m.Agent)
		}
	}
	return list
}

// Look implements roll.Fleet.
func (f rollFleet) Look(agent gozzard.AgentID) upgrade.HostView {
	h, known := f.plane.Look(agent)
	if !known {
		return upgrade.HostView{}
	}
	return upgrade.HostView{Online: h.Online && f.desk.StateOf(agent) == enrol.StateActive, Version: h.Info.Version,
		Platform: h.Info.OS + "/" + h.Info.Arch}
}

// Order implements roll.Fleet.
func (f rollFleet) Order(agent gozzard.AgentID, o gozzard.UpdateOrder) { f.plane.OrderUpdate(agent, o) }

// updateAnswered hands an agent's answer on. The fabric is opened after the releases, so nobody answers before they
// are there.
func (n *node) updateAnswered(from gozzard.AgentID, r gozzard.UpdateReport) {
	if n.releases != nil {
		n.releases.Report(from, r)
	}
}
