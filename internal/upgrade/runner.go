package upgrade

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/lease"
	"github.com/gozzard/gozzard/internal/release"
)

// The limits and default times of upgrades.
const (
	defaultPatience = 5 * time.Minute
	defaultEvery    = time.Second
	defaultWindow   = 50
	maxReleases     = 64
	maxHosts        = 100_000
)

// Fleet is what an upgrade needs of the fleet.
type Fleet interface {
	// Members are the enrolled agents that may connect.
	Members() []gozzard.AgentID

	// Look returns the current state of a host, without Report.
	Look(agent gozzard.AgentID) HostView

	// Order asks an agent to install a release, if it is online. Delivery is not guaranteed; the Runner repeats it.
	Order(agent gozzard.AgentID, o gozzard.UpdateOrder)
}

// Options are the parts of a Runner. Store, Repository and Fleet are required.
type Options struct {
	Store      Store
	Repository *release.Repository
	Fleet      Fleet
	Key        ed25519.PublicKey // checked when a release is published; nil: only hosts check the signature
	TwoPerson  bool              // an upgrade starts when another person has approved it
	Patience   time.Duration     // how long a host may take from its order to its new connection; 5 minutes
	Every      time.Duration     // between checks of the hosts, which repeat the orders; 1 second
	Window     int               // hosts that are asked at the same time; 50

	// Version is how often people have changed releases and upgrades in the record, on this server or on another one.
	// nil: no other server uses the record.
	Version func(ctx context.Context) (int64, error)

	Now func() time.Time
	Log *slog.Logger
}

// Runner manages releases and runs the open upgrade. It is safe for concurrent use. Of several servers each has one, and
// only one of them may Run.
type Runner struct {
	o    Options
	wake chan struct{} // capacity 1

	mu       sync.Mutex // held during writes to the record: there is one open upgrade, and people change it rarely
	releases []Release  // newest first
	open     *Upgrade   // nil: none
	version  int64      // of what is in memory; unread: it must be read again

	reportsMu sync.Mutex // separate from mu, so that the fabric does not wait for the record
	reportsOf int64      // the open upgrade; 0: none
	reports   map[gozzard.AgentID]gozzard.UpdateReport
}

// New reads the record. An open upgrade continues when Run is called.
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

	r := &Runner{o: o, wake: make(chan struct{}, 1), version: unread}
	return r, r.load(ctx)
}

// setOpen makes an upgrade the open one and forgets the reports of others; nil for none. mu is held, or no other
// goroutine knows the Runner yet.
func (r *Runner) setOpen(u *Upgrade) {
	r.open = u

	r.reportsMu.Lock()
	defer r.reportsMu.Unlock()
	r.reportsOf, r.reports = 0, nil
	if u != nil {
		r.reportsOf, r.reports = u.ID, map[gozzard.AgentID]gozzard.UpdateReport{}
	}
}

// Report receives the answer of an agent. It ignores answers that do not belong to the open upgrade.
func (r *Runner) Report(from gozzard.AgentID, rep gozzard.UpdateReport) {
	r.reportsMu.Lock()
	defer r.reportsMu.Unlock()

	if r.reportsOf == 0 || rep.Roll != uint64(r.reportsOf) || len(r.reports) >= maxHosts {
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

// report is the newest answer of an agent, nil if there is none.
func (r *Runner) report(agent gozzard.AgentID) *gozzard.UpdateReport {
	r.reportsMu.Lock()
	defer r.reportsMu.Unlock()
	if rep, ok := r.reports[agent]; ok {
		return &rep
	}
	return nil
}

// Run runs the open upgrade until ctx ends. It begins with what the record has: another server may have run it before.
func (r *Runner) Run(ctx context.Context) error {
	r.forget()
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

// step advances the open upgrade once. It records the decisions before it sends orders.
func (r *Runner) step(ctx context.Context) {
	r.mu.Lock()
	defer r.mu.Unlock()

	if err := r.refresh(ctx); err != nil {
		if ctx.Err() == nil {
			r.o.Log.Error("cannot read what other servers changed, trying again", "err", err)
		}
		return
	}
	if r.open == nil || r.open.State != StateRunning {
		return
	}

	// Decide.
	rel, m, err := r.find(r.open.Version)
	next := *r.open
	next.Hosts = slices.Clone(r.open.Hosts)
	var changed []int
	var order []gozzard.AgentID
	if err != nil { // the release was removed from the database by hand
		next.State, next.Reason = StateStopped, err.Error()
	} else {
		view := func(a gozzard.AgentID) HostView {
			s := r.o.Fleet.Look(a)
			s.Report = r.report(a)
			return s
		}
		hasProgram := func(platform string) bool { _, err := m.For(platform); return err == nil }
		changed, order = next.advance(r.o.Now(), view, rules{r.o.Window, r.o.Patience, hasProgram})
	}

	// Record the decisions.
	if len(changed) > 0 || next.State != r.open.State {
		if !r.save(ctx, &next, changed) {
			return
		}
	}

	// Send the orders. The record cannot stop them, so look each time whether this server still runs the upgrade.
	for _, agent := range order {
		if lease.Check(ctx) != nil {
			return
		}
		r.o.Fleet.Order(agent, gozzard.UpdateOrder{
			Roll: uint64(next.ID), Version: next.Version, Manifest: sha256.Sum256(rel.Manifest),
		})
	}
}

// save stores a step and reports whether it succeeded. mu is held.
func (r *Runner) save(ctx context.Context, next *Upgrade, changed []int) bool {
	next.Changed = r.o.Now()
	var act AuditEntry
	if !next.State.Open() {
		act = AuditEntry{
			At: next.Changed, Caller: gozzard.Caller{App: "server"},
			What: "release:" + string(next.State) + ":" + next.Version, Targets: len(next.Hosts),
		}
	}

	// Store it with the hosts that changed.
	hosts := make([]Host, 0, len(changed))
	for _, i := range changed {
		hosts = append(hosts, next.Hosts[i])
	}

	if err := r.o.Store.SaveUpgrade(ctx, next, hosts, act); err != nil {
		if ctx.Err() == nil {
			r.o.Log.Error("cannot store an upgrade, trying again", "upgrade", next.ID, "err", err)
		}
		return false
	}

	// Keep it, or close it if it is final.
	r.open = next
	if next.State.Open() {
		return true
	}

	r.o.Log.Warn("upgrade ended", "upgrade", next.ID, "release", next.Version, "state", string(next.State),
		"reason", next.Reason)
	r.setOpen(nil)
	return true
}
