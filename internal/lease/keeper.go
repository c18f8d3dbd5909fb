package lease

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"
)

// Store has the leases. Their time is that of the database.
type Store interface {
	// ClaimLeases takes for a holder those of the named leases that are free, renews those that it has, and returns the
	// leases that are its own now. held are the fences that it knows of: a lease with another fence gets a new one.
	ClaimLeases(ctx context.Context, holder string, names []string, held []Fence,
		ttl time.Duration) ([]Lease, error)

	// ReleaseLeases gives leases up.
	ReleaseLeases(ctx context.Context, held []Fence) error

	// Leases lists all leases.
	Leases(ctx context.Context) ([]Lease, error)
}

// Defaults of Options. A server that is gone is replaced after at most the sum of both.
const (
	defaultTTL   = 12 * time.Second
	defaultEvery = 3 * time.Second
)

// releaseTimeout limits how long the end of a server waits for the record.
const releaseTimeout = 5 * time.Second

// Options are the parts of a Keeper. Store and Holder are required.
type Options struct {
	Store  Store
	Holder string        // id of this server
	TTL    time.Duration // how long a lease lasts without being renewed; 12 s
	Every  time.Duration // between two renewals; 3 s
	Log    *slog.Logger
}

// Keeper holds the leases of one server. A nil Keeper is that of a server that is alone: it has every lease at no cost.
type Keeper struct {
	o    Options
	wake chan struct{} // capacity 1

	mu    sync.Mutex
	works map[string]*work // by the name of the lease
	free  []Fence          // of work that has ended by itself
	ended bool             // Run is ending: no work begins any more
	rests bool             // this server takes no lease
	idle  *sync.Cond       // signalled when a tenure ends
}

// work is a piece of work that waits for its lease, or has it.
type work struct {
	tenure *tenure       // nil: it waits
	gained chan struct{} // capacity 1
}

// New makes a Keeper. Run takes and renews its leases.
func New(o Options) *Keeper {
	o.TTL = cmp.Or(o.TTL, defaultTTL)
	o.Every = cmp.Or(o.Every, min(defaultEvery, o.TTL/4))
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	k := &Keeper{o: o, wake: make(chan struct{}, 1), works: map[string]*work{}}
	k.idle = sync.NewCond(&k.mu)
	return k
}

// Run takes and renews the leases that Do waits for, until ctx ends. Then it waits for the work that has them, and gives
// them up.
func (k *Keeper) Run(ctx context.Context) error {
	for failed := 0; ctx.Err() == nil; {
		turn := k.claim
		if k.isResting() {
			turn = k.giveUp
		}
		err := turn(ctx)
		switch {
		case err == nil:
			failed = 0
		case ctx.Err() == nil:
			if failed++; failed&(failed-1) == 0 { // the log does not repeat every try
				k.o.Log.Error("cannot renew or give up the leases of this server, trying again", "tries", failed, "err", err)
			}
		}

		select {
		case <-ctx.Done():
		case <-k.wake:
		case <-time.After(k.o.Every):
		}
	}

	k.release(context.WithoutCancel(ctx))
	return nil
}

// Do runs some work while this server holds the lease with its name, until ctx ends. The work must end when its context
// does. It runs again when the lease is gained again. Do returns when the work ends by itself, with its error.
func (k *Keeper) Do(ctx context.Context, name string, f func(ctx context.Context) error) error {
	if k == nil {
		return f(ctx)
	}

	w := k.enter(name)
	for {
		select {
		case <-ctx.Done():
			k.leave(name, w)
			return nil
		case <-w.gained:
		}
		t := k.begin(w)
		if t == nil { // lost before the work began, or the Keeper ends
			continue
		}

		err := t.run(ctx, f)
		lost := ctx.Err() == nil && (t.check() != nil || errors.Is(err, ErrLost))
		k.end(name, w, lost)
		if !lost {
			return err
		}
		if k.isResting() {
			k.o.Log.Info("this server gave up a lease: another server does this work", "lease", name)
			continue
		}
		k.o.Log.Warn("this server lost a lease: another server may do this work now", "lease", name,
			"fence", t.fence.Number)
	}
}

// Rest makes this server give up its leases and take none, until it is called with false. Work that has a lease ends
// first, as if the lease were lost.
func (k *Keeper) Rest(rest bool) {
	if k == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.rests = rest
	k.wakeRun()
}

func (k *Keeper) isResting() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.rests
}

// Held lists the leases of this server.
func (k *Keeper) Held() (names []string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for name, w := range k.works {
		if w.tenure != nil && w.tenure.check() == nil {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// enter makes a lease one that is wanted.
func (k *Keeper) enter(name string) *work {
	w := &work{gained: make(chan struct{}, 1)}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.works[name] = w
	k.wakeRun()
	return w
}

// leave ends the wait of a work for its lease.
func (k *Keeper) leave(name string, w *work) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if w.tenure != nil {
		w.tenure.lose()
		k.free = append(k.free, w.tenure.fence)
	}
	delete(k.works, name)
}

func (k *Keeper) wakeRun() {
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

// begin starts the tenure that a work has gained; nil if it was lost already.
func (k *Keeper) begin(w *work) *tenure {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.ended {
		return nil
	}
	if w.tenure.check() != nil {
		if k.rests {
			k.free = append(k.free, w.tenure.fence)
			k.wakeRun()
		}
		w.tenure = nil
		return nil
	}
	w.tenure.running = true
	return w.tenure
}

// end ends the tenure of a work that has ended.
func (k *Keeper) end(name string, w *work, lost bool) {
	k.mu.Lock()
	defer k.mu.Unlock()

	// The next tenure gets a new number, also if nobody else has the lease meanwhile.
	w.tenure.lose()
	if !lost || k.rests {
		k.free = append(k.free, w.tenure.fence)
	}
	if !lost {
		delete(k.works, name)
	}
	w.tenure = nil
	k.idle.Broadcast()
	k.wakeRun()
}

// claim takes free leases and renews those that this server has. It only reads while others have all of them.
func (k *Keeper) claim(ctx context.Context) error {
	held, names := k.state()

	// Leave out what others have.
	if len(held) < len(names) {
		all, err := k.o.Store.Leases(ctx)
		if err != nil {
			return err
		}
		for _, l := range all {
			if l.Left > 0 && l.Holder != k.o.Holder && !slices.ContainsFunc(held, func(f Fence) bool {
				return f.Name == l.Name
			}) {
				names = slices.DeleteFunc(names, func(name string) bool { return name == l.Name })
			}
		}
	}
	if len(names) == 0 {
		return nil
	}

	// Take the others. The time counts from before the call: the database counts from a later moment.
	asked := time.Now()
	got, err := k.o.Store.ClaimLeases(ctx, k.o.Holder, names, held, k.o.TTL)
	if err != nil {
		return err
	}
	k.apply(held, got, asked.Add(k.o.TTL))
	return nil
}

// state lists what this server has, and the names of that and of what it waits for. Work that has lost its lease and has
// not ended yet is in neither.
func (k *Keeper) state() (held []Fence, names []string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for name, w := range k.works {
		switch {
		case w.tenure == nil:
			names = append(names, name)
		case w.tenure.check() == nil:
			names = append(names, name)
			held = append(held, w.tenure.fence)
		}
	}
	slices.Sort(names) // servers lock the rows in the same order
	return held, names
}

// apply begins, prolongs and ends tenures, as the record said.
func (k *Keeper) apply(held []Fence, got []Lease, until time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()

	// End what is another's now.
	for _, f := range held {
		w := k.works[f.Name]
		if w != nil && w.tenure != nil && !slices.ContainsFunc(got, func(l Lease) bool { return l.Fence == f }) {
			w.tenure.lose()
		}
	}

	// Begin or prolong the others.
	var gained []string
	for _, l := range got {
		w := k.works[l.Name]
		switch {
		case w == nil: // the work has ended meanwhile
			k.free = append(k.free, l.Fence)
		case w.tenure == nil:
			w.tenure = newTenure(l.Fence, until)
			w.gained <- struct{}{}
			gained = append(gained, l.Name)
		case w.tenure.fence == l.Fence:
			w.tenure.renew(until)
		}
	}
	if len(gained) > 0 {
		k.o.Log.Info("this server holds leases of work that one server does", "leases", gained)
	}
}

// giveUp ends the work that has leases, and gives up the leases of work that has ended. The others wait until then: some
// work has effects outside the record.
func (k *Keeper) giveUp(ctx context.Context) error {
	k.mu.Lock()
	for _, w := range k.works {
		if w.tenure != nil {
			w.tenure.lose()
		}
	}
	ended := k.free
	k.free = nil
	k.mu.Unlock()

	if len(ended) == 0 {
		return nil
	}
	err := k.o.Store.ReleaseLeases(ctx, ended)
	if err != nil {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.free = append(k.free, ended...)
	}
	return err
}

// release waits until no work runs under a lease, and gives all leases up.
func (k *Keeper) release(ctx context.Context) {
	k.mu.Lock()
	k.ended = true
	running := func(w *work) bool { return w.tenure != nil && w.tenure.running }
	for slices.ContainsFunc(slices.Collect(maps.Values(k.works)), running) {
		k.idle.Wait()
	}
	fences := k.free
	for _, w := range k.works {
		if w.tenure != nil {
			w.tenure.lose()
			fences = append(fences, w.tenure.fence)
		}
	}
	k.mu.Unlock()

	if len(fences) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, releaseTimeout)
	defer cancel()
	if err := k.o.Store.ReleaseLeases(ctx, fences); err != nil {
		k.o.Log.Warn("cannot give up the leases of this server: other servers wait until they end", "err", err)
	}
}
