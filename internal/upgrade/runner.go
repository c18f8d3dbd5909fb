package upgrade

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/release"
)

// Bounds and times of rolls.
const (
	defaultPatience = 5 * time.Minute
	defaultEvery    = time.Second
	defaultWindow   = 50
	maxReleases     = 64
	maxHosts        = 100_000
)

// Fleet is what a roll needs to know of hosts.
type Fleet interface {
	// Members are the enrolled agents that are let in.
	Members() []gozzard.AgentID
	// Look tells how a host is; Report is left out.
	Look(agent gozzard.AgentID) HostView
	// Order tells an agent to become a release, if it is online. Nothing is promised: it is told again.
	Order(agent gozzard.AgentID, o gozzard.UpdateOrder)
}

// Options are the parts of a Runner. Store, Shelf and Fleet are required.
type Options struct {
	Store     Store
	Shelf     *release.Repository
	Fleet     Fleet
	Key       ed25519.PublicKey // checked when a release is published; nil: hosts check anyway
	TwoPerson bool              // a roll begins when somebody else has approved it
	Patience  time.Duration     // a host may take from its order to its welcome; 5 min
	Every     time.Duration     // between looks, and between repeats of orders; 1 s
	Window    int               // hosts asked at a time; 50
	Now       func() time.Time
	Log       *slog.Logger
}

// Runner keeps releases and moves the open roll on. It is safe for concurrent use.
type Runner struct {
	o    Options
	wake chan struct{} // capacity 1

	mu       sync.Mutex // held over writes of the record: there is one open roll, and people seldom change it
	releases []Release  // newest first
	open     *Upgrade   // nil: none

	heard   sync.Mutex // of what follows: the fabric must not wait for the record
	roll    int64      // the open one
	reports map[gozzard.AgentID]gozzard.UpdateReport
}

// New reads the record. A roll that was open goes on where it was.
func New(ctx context.Context, o Options) (*Runner, error) {
	if o.Patience <= 0 {
		o.Patience = defaultPatience
	}
	if o.Every <= 0 {
		o.Every = defaultEvery
	}
	if o.Window <= 0 {
		o.Window = defaultWindow
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}

	r := &Runner{o: o, wake: make(chan struct{}, 1)}
	var err error
	if r.releases, err = o.Store.Releases(ctx); err != nil {
		return nil, fmt.Errorf("cannot read the releases: %w", err)
	}

	rolls, err := o.Store.Upgrades(ctx, 1) // none is made while another is open, so that is the newest
	if err != nil {
		return nil, fmt.Errorf("cannot read the rolls: %w", err)
	}
	if len(rolls) > 0 && rolls[0].State.Open() {
		r.setOpen(&rolls[0])
	}

	return r, nil
}

// setOpen makes a roll the one that reports are taken for. mu is held or nobody else knows the runner yet.
func (r *Runner) setOpen(roll *Upgrade) {
	r.open = roll
	r.heard.Lock()
	defer r.heard.Unlock()
	r.roll, r.reports = 0, nil
	if roll != nil {
		r.roll, r.reports = roll.ID, map[gozzard.AgentID]gozzard.UpdateReport{}
	}
}

// Report takes an agent's answer. What it was not asked for is nobody's.
func (r *Runner) Report(from gozzard.AgentID, rep gozzard.UpdateReport) {
	r.heard.Lock()
	defer r.heard.Unlock()
	if r.roll == 0 || rep.Roll != uint64(r.roll) || len(r.reports) >= maxHosts {
		return
	}
	r.reports[from] = rep
	if rep.State != gozzard.UpdateWorking {
		select {
		case r.wake <- struct{}{}:
		default:
		}
	}
}

func (r *Runner) report(agent gozzard.AgentID) *gozzard.UpdateReport {
	r.heard.Lock()
	defer r.heard.Unlock()
	if rep, ok := r.reports[agent]; ok {
		return &rep
	}
	return nil
}

// Run moves the open roll on until ctx ends.
func (r *Runner) Run(ctx context.Context) error {
	for {
		r.step(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-r.wake:
		case <-time.After(r.o.Every):
		}
	}
}

// step looks at the open roll once. Hosts are told only what is on record.
func (r *Runner) step(ctx context.Context) {
	r.mu.Lock()
	defer r.mu.Unlock()

	if r.open == nil || r.open.State != StateRunning {
		return
	}

	rel, m, err := r.find(r.open.Version)
	next := *r.open
	next.Hosts = slices.Clone(r.open.Hosts)
	var changed []int
	var order []gozzard.AgentID

	if err != nil { // forgotten by somebody who wrote into the record
		next.State, next.Reason = StateStopped, err.Error()
	} else {
		changed, order = next.advance(r.o.Now(), func(a gozzard.AgentID) HostView {
			s := r.o.Fleet.Look(a)
			s.Report = r.report(a)
			return s
		}, rules{r.o.Window, r.o.Patience, func(p string) bool { _, err := m.For(p); return err == nil }})
	}

	if len(changed) > 0 || next.State != r.open.State {
		if !r.save(ctx, &next, changed) {
			return
		}
	}

	for _, agent := range order {
		r.o.Fleet.Order(agent, gozzard.UpdateOrder{Roll: uint64(next.ID), Version: next.Version,
			Manifest: sha256.Sum256(rel.Manifest)})
	}
}

// save makes a step durable. mu is held.
func (r *Runner) save(ctx context.Context, next *Upgrade, changed []int) bool {
	next.Changed = r.o.Now()
	var act AuditEntry

	if !next.State.Open() {
		act = AuditEntry{At: next.Changed, Caller: gozzard.Caller{App: "server"},
			What: "release:" + string(next.State) + ":" + next.Version, Targets: len(next.Hosts)}
	}

	hosts := make([]Host, 0, len(changed))
	for _, i := range changed {
		hosts = append(hosts, next.Hosts[i])
	}

	if err := r.o.Store.SaveUpgrade(ctx, next, hosts, act); err != nil {
		if ctx.Err() == nil {
			r.o.Log.Error("cannot record a roll, trying again", "roll", next.ID, "err", err)
		}
		return false
	}

	r.open = next

	if next.State.Open() {
		return true
	}

	r.o.Log.Warn("a roll has ended", "roll", next.ID, "release", next.Version, "state", string(next.State), "reason",
		next.Reason)
	r.setOpen(nil)
	return true
}
