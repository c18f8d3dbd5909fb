//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// maxCount limits what the command line can ask for beside peers. runit supports no more services in one folder.
const maxCount = 1000

// size is how much a run measures.
type size struct {
	name     string
	counts   []int
	life     bool          // only what happens while the supervisor runs
	limit    time.Duration // of the whole run
	settle   time.Duration // pause before idleness is measured
	idle     time.Duration // how long idleness is measured
	crashes  int           // samples of one kill
	twice    int           // samples of a process that is killed twice
	budget   time.Duration // time for one kind of samples; slow peers give fewer
	storms   int           // in each site
	repeats  int           // sites in which start, storm and stop are measured
	defaults int           // number of processes with which default settings are measured, 0 for none
	large    []int         // numbers of processes with which only the agent is measured
	profiled []int         // numbers of processes with which the agent is profiled
	profile  time.Duration // how long a profile at rest takes
	statuses int
	calm     time.Duration // how long nothing may change until a restarted supervisor counts as settled
	// How long a process runs before its death is no crash loop for supervisors that start it at most once a second.
	rest     time.Duration
	quiet    time.Duration // pause between two storms, in which supervisors finish what they do after a start
	beside   int           // supervisors measured at the same time
	patience time.Duration // how long a measurement waits for the slowest event
}

func fullSize() size {
	return size{
		name: "full", counts: []int{100, 1000}, limit: 100 * time.Minute, settle: 2 * time.Second,
		idle: 20 * time.Second, crashes: 100, twice: 10,
		budget: 20 * time.Second, storms: 3, repeats: 3, defaults: 100, large: []int{5000, 15_000}, profiled: []int{1000}, profile: time.Minute, statuses: 20, calm: 4 * time.Second,
		rest: 1100 * time.Millisecond, quiet: 3 * time.Second,
		beside:   1,
		patience: 2 * time.Minute,
	}
}

func quickSize() size {
	return size{
		name: "quick", counts: []int{1, 20}, limit: 2 * time.Minute, settle: 50 * time.Millisecond,
		idle: 200 * time.Millisecond, crashes: 2, twice: 1,
		budget: time.Second, storms: 1, repeats: 1, statuses: 2, calm: 300 * time.Millisecond,
		rest:     10 * time.Millisecond,
		beside:   7,
		patience: 5 * time.Second,
	}
}

// singleOnly leaves out everything but one process.
func (s *size) singleOnly() { s.counts, s.defaults, s.large, s.profiled = []int{1}, 0, nil, nil }

// lifeOnly leaves out the deaths of supervisors, daemons, default settings and repetitions.
func (s *size) lifeOnly() {
	s.life, s.repeats, s.defaults, s.large, s.profiled = true, 1, 0, nil, nil
	s.idle, s.budget, s.crashes, s.statuses = 10*time.Second, 5*time.Second, 30, 3
}

// largeOnly leaves out everything but the agent alone.
func (s *size) largeOnly() { s.counts, s.defaults = nil, 0 }

// profilesOnly leaves out everything but the profiles of the agent.
func (s *size) profilesOnly() {
	s.counts, s.profiled, s.defaults, s.large = nil, s.counts, 0, nil
	s.profile, s.patience = 30*time.Second, 2*s.patience
}

type options struct {
	size     size
	only     []string // names of supervisors, none for all
	binary   string   // "" builds one
	install  bool
	keep     string // folder for profiles that stay, "" for none
	progress io.Writer
	command  string
}

// bench is one run.
type bench struct {
	options
	dir   string
	tools *tools
	res   *results
}

// run runs the measurements that the options name. It always stops everything that it started. The results are nil if
// it failed before the first measurement.
func run(ctx context.Context, o options) (_ *results, err error) {
	b := &bench{options: o, res: newResults(o)}
	if b.dir, err = os.MkdirTemp("", "gozzard-supervisors-"); err != nil {
		return nil, fmt.Errorf("cannot make a folder: %w", err)
	}

	defer func() { err = errors.Join(err, sweepAway(b.dir), os.RemoveAll(b.dir)) }()

	if err := b.gather(ctx); err != nil {
		return nil, err
	}

	b.res.tools = b.tools
	var wg sync.WaitGroup
	for _, n := range o.size.counts {
		wg.Go(func() { b.all(ctx, n, false) })
		if o.size.beside == 1 {
			wg.Wait()
		}
	}

	wg.Wait()
	if n := o.size.defaults; n > 0 && ctx.Err() == nil {
		b.all(ctx, n, true)
	}
	b.alone(ctx)

	// What was measured before the end of the time counts.
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		b.res.note("The run was ended after %s: what is missing was not measured.", o.size.limit)
		return b.res, nil
	}
	return b.res, ctx.Err()
}

// alone measures what only the agent has: many processes, and profiles.
func (b *bench) alone(ctx context.Context) {
	if !b.wants("gozzard") {
		return
	}
	for _, n := range b.size.large {
		if ctx.Err() == nil {
			b.say("N = %d, gozzard alone", n)
			b.noteFailure(ctx, fmt.Sprintf("N = %d", n), b.large(ctx, n))
		}
	}
	for _, n := range b.size.profiled {
		if ctx.Err() == nil {
			b.say("N = %d, profiles of gozzard", n)
			b.noteFailure(ctx, fmt.Sprintf("N = %d, profiles", n), b.profiles(ctx, n))
		}
	}
}

// noteFailure notes what could not be measured.
func (b *bench) noteFailure(ctx context.Context, what string, err error) {
	if err != nil && ctx.Err() == nil {
		words := []rune(plain(strings.ReplaceAll(err.Error(), b.dir+"/", "")))
		words = words[:min(len(words), 200)] // the output of a supervisor may be in it
		b.res.note("%s: %s", what, string(words))
		b.say("%s: %s", what, string(words))
	}
}

// all measures every supervisor with n processes, with the fastest settings or with those of its defaults. It notes one
// that fails and measures the others.
func (b *bench) all(ctx context.Context, n int, defaults bool) {
	var wg sync.WaitGroup
	defer wg.Wait()
	slots := make(chan struct{}, b.size.beside)
	for _, c := range candidates() {
		if !b.wants(c.name) || b.tools.missing[c.name] != "" || defaults && c.limit {
			continue
		}
		slots <- struct{}{}
		if ctx.Err() != nil {
			return
		}
		what := fmt.Sprintf("N = %d, %s", n, c.name)
		measure := b.one
		if defaults {
			what += " with default settings"
			measure = b.oneDefault
		}
		b.say("%s", what)
		wg.Go(func() {
			defer func() { <-slots }()
			found, err := measure(ctx, c, n)
			b.res.add(n, defaults, c.name, found)
			b.noteFailure(ctx, what, err)
		})
	}
}

func (b *bench) wants(name string) bool { return len(b.only) == 0 || slices.Contains(b.only, name) }

func (b *bench) say(format string, args ...any) {
	// A run does not stop because its progress cannot be printed.
	_, _ = fmt.Fprintf(b.progress, time.Now().Format("15:04:05 ")+format+"\n", args...)
}

// one measures one supervisor with n processes: first its life, then its death in a new site, then daemons where the
// supervisor treats them differently.
func (b *bench) one(ctx context.Context, c candidate, n int) (figures, error) {
	found := figures{}
	err := b.at(ctx, c, n, how{daemons: c.only}, found, b.measureLife)
	for range b.size.repeats - 1 {
		if ctx.Err() == nil && !found.late() {
			err = errors.Join(err, b.at(ctx, c, n, how{daemons: c.only}, found, b.measureAgain))
		}
	}
	if b.size.life {
		return found, err
	}
	for _, whole := range []bool{false, true} {
		if _, known := found[rowDeathWhole]; known || c.limit || ctx.Err() != nil {
			break
		}
		death := func(ctx context.Context, s *site, p peer) error { return b.measureDeath(ctx, s, p, whole) }
		err = errors.Join(err, b.at(ctx, c, n, how{daemons: c.only}, found, death))
	}

	switch {
	case ctx.Err() != nil || !c.daemons:
	case c.only || c.name == "gozzard" && !b.tools.front: // the first measurement was of daemons
		for from, to := range map[row]row{rowCrash50: rowDaemon50, rowCrash99: rowDaemon99} {
			if c.only {
				found.move(from, to)
			} else if f, ok := found[from]; ok {
				found[to] = f
			}
		}
	default:
		err = errors.Join(err, b.at(ctx, c, n, how{daemons: true}, found, b.measureDaemons))
	}

	return found, err
}

// oneDefault measures one supervisor with its default settings: the rows that settings change.
func (b *bench) oneDefault(ctx context.Context, c candidate, n int) (figures, error) {
	found := figures{}
	err := b.at(ctx, c, n, how{daemons: c.only, defaults: true}, found, b.measureDefaults)
	if c.only {
		found.move(rowCrash50, rowDaemon50)
		found.move(rowCrash99, rowDaemon99)
	}
	return found, err
}

// how is how processes are supervised in a site.
type how struct {
	daemons  bool // they go to the background
	defaults bool // with the settings that the supervisor has without ours
}

// remove ends a supervisor and removes its site.
func (b *bench) remove(s *site, p peer) error {
	p.end()
	err := sweepAway(s.dir)
	if g, ok := p.(*gozzardPeer); ok {
		err = errors.Join(err, g.clean())
	}
	return errors.Join(err, s.track.page.close(), os.RemoveAll(filepath.Clean(s.dir)))
}

// at sets up a supervisor, measures it and removes everything again.
func (b *bench) at(ctx context.Context, c candidate, n int, as how, found figures,
	measure func(context.Context, *site, peer) error) (err error) {
	s, err := newSite(b.dir, c.name, n, as, b.tools)
	if err != nil {
		return err
	}

	s.found, s.patience, s.throttled = found, b.size.patience, c.throttled
	p := c.make(s)
	defer func() { err = errors.Join(err, b.remove(s, p)) }()

	if err := p.prepare(ctx); err != nil {
		return err
	}
	// runsvdir ignores a folder that was changed within the same second, so nothing starts in that second.
	if err := pause(ctx, b.size.rest); err != nil {
		return err
	}

	s.track.forget()
	began := clock()

	if err := p.start(ctx); err != nil {
		return err
	}

	ok, err := s.track.awaitAll(ctx, s.patience, nil)
	if err != nil {
		return err
	}
	if !ok {
		found[rowStart] = longer(s.patience)
		return fmt.Errorf("not all processes run after %s: %s", s.patience, s.words())
	}

	found.repeat(rowStart, s.track.last().since(began))
	return measure(ctx, s, p)
}
