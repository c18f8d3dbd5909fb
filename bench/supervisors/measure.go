//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall"
	"time"
)

// measureLife measures everything except the death of the supervisor.
func (b *bench) measureLife(ctx context.Context, s *site, p peer) error {
	return steps(ctx, s, p, b.measureIdle, b.measureStatus, b.measureCrash, b.measureTwice, b.measureStorm,
		b.measureStop)
}

// measureAgain repeats what is measured only a few times in one site.
func (b *bench) measureAgain(ctx context.Context, s *site, p peer) error {
	return steps(ctx, s, p, b.measureStorm, b.measureStop)
}

// measureDefaults measures what settings change.
func (b *bench) measureDefaults(ctx context.Context, s *site, p peer) error {
	return steps(ctx, s, p, b.measureCrash, b.measureTwice, b.measureStorm, b.measureStop)
}

// steps runs measurements one after the other. One that fails does not prevent the others.
func steps(ctx context.Context, s *site, p peer, list ...func(context.Context, *site, peer) error) error {
	var errs []error
	for _, step := range list {
		if err := step(ctx, s, p); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			errs = append(errs, err)
		}
	}

	return errors.Join(errs...)
}

// own lists the supervisor's own processes: all its descendants except the supervised ones.
func (s *site) own(p peer) ([]int, error) {
	main := p.main()
	if main == 0 {
		return nil, errors.New("the supervisor does not run")
	}
	list, err := family(main)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(list, func(pid int) bool { return s.track.number(pid) >= 0 }), nil
}

func (b *bench) measureIdle(ctx context.Context, s *site, p peer) error {
	if err := pause(ctx, b.size.settle); err != nil {
		return err
	}

	list, err := s.own(p)
	if err != nil {
		return err
	}

	var server []int
	g, ours := p.(*gozzardPeer)
	if ours {
		server = []int{g.server.cmd.Process.Pid}
	}

	before, serverBefore, began := cpuOf(list), cpuOf(server), time.Now()

	if err := pause(ctx, b.size.idle); err != nil {
		return err
	}

	window := time.Since(began)
	s.found[rowIdle] = figure{value: perMinute(cpuOf(list)-before, window), digits: 1}
	s.found[rowPSS] = figure{value: float64(pssOf(list)) / (1 << 20), digits: 1}

	if ours {
		b.res.note("%s", g.serverFigures(cpuOf(server)-serverBefore, window))
	}

	return nil
}

func perMinute(cpu, window time.Duration) float64 {
	return float64(cpu) / float64(time.Millisecond) * float64(time.Minute) / float64(window)
}

func (b *bench) measureStatus(ctx context.Context, s *site, p peer) error {
	var took samples
	end := time.Now().Add(b.size.budget)
	for i := 0; i < b.size.statuses+1 && (i < 3 || time.Now().Before(end)); i++ {
		began := time.Now()
		if err := p.status(ctx); err != nil {
			return fmt.Errorf("status: %w", err)
		}
		if i > 0 { // the first call makes connections
			took = append(took, time.Since(began))
		}
	}

	s.found[rowStatus] = millis(took.at(0.5))
	return nil
}

// victim chooses processes in turn. It waits until the chosen process has run long enough for its death to count as an
// ordinary one.
func (b *bench) victim(ctx context.Context, i int, s *site, back []time.Time) (int, error) {
	k := i % s.n
	rest := b.size.rest
	if !s.throttled {
		rest /= 10
	}
	return k, pause(ctx, time.Until(back[k].Add(rest)))
}

// whole waits until the processes of a range run: an earlier measurement may have left one that has not come back yet.
func (s *site) whole(ctx context.Context, from, to int) error {
	ok, err := s.track.await(ctx, s.patience/2, func() bool {
		return !slices.ContainsFunc(s.track.newest[from:to], func(pid int) bool { return pid == 0 || !lives(pid) })
	})
	if err == nil && !ok {
		err = fmt.Errorf("not all processes run: %s", s.words())
	}
	return err
}

// kill kills a process and measures the time until another one replaces it.
func (s *site) kill(ctx context.Context, k int) (time.Duration, error) {
	if err := s.whole(ctx, k, k+1); err != nil {
		return 0, err
	}

	old := s.track.newest[k]
	began := clock()

	if err := syscall.Kill(old, syscall.SIGKILL); err != nil {
		return 0, fmt.Errorf("cannot kill process %d: %w", k, err)
	}

	ok, err := s.track.await(ctx, s.patience/2, func() bool { return s.track.newest[k] != old })
	if err == nil && !ok {
		err = fmt.Errorf("process %d does not come back within %s: %s", k, s.patience/2, s.words())
	}

	return s.track.began[k].since(began), err
}

func (b *bench) crashes(ctx context.Context, s *site, p peer, count, kills int) (samples, error) {
	var took samples
	back := slices.Repeat([]time.Time{time.Now()}, s.n)
	end := time.Now().Add(b.size.budget)
	for i := 0; i < count && (i < 3 || time.Now().Before(end)); i++ {
		k, err := b.victim(ctx, i, s, back)
		if err == nil {
			err = forgive(ctx, p, k, k+1, kills)
		}
		if err != nil {
			return took, err
		}
		for range kills - 1 {
			if _, err := s.kill(ctx, k); err != nil {
				return took, err
			}
		}
		d, err := s.kill(ctx, k)
		if err != nil {
			return took, err
		}
		took = append(took, d)
		back[k] = time.Now()
	}

	return took, nil
}

// forgiver is a supervisor that waits before it starts a process that ended several times in a row, whatever its settings
// are. Its counts must be reset before a death is an ordinary one.
type forgiver interface {
	forgive(ctx context.Context, from, to, deaths int) error
}

// forgive prepares the deaths of the processes of a range.
func forgive(ctx context.Context, p peer, from, to, deaths int) error {
	if f, ok := p.(forgiver); ok {
		return f.forgive(ctx, from, to, deaths)
	}
	return nil
}

func (b *bench) measureCrash(ctx context.Context, s *site, p peer) error {
	took, err := b.crashes(ctx, s, p, b.size.crashes, 1)
	s.found.latency(rowCrash50, rowCrash99, took)
	return err
}

func (b *bench) measureDaemons(ctx context.Context, s *site, p peer) error {
	took, err := b.crashes(ctx, s, p, b.size.crashes, 1)
	s.found.latency(rowDaemon50, rowDaemon99, took)
	return err
}

func (b *bench) measureTwice(ctx context.Context, s *site, p peer) error {
	took, err := b.crashes(ctx, s, p, b.size.twice, 2)
	if len(took) > 0 {
		s.found[rowTwice] = millis(took.at(0.5))
	}
	return err
}

// measureStorm kills all processes at once, several times with a rest between.
func (b *bench) measureStorm(ctx context.Context, s *site, p peer) error {
	end := time.Now().Add(b.size.budget)
	for i := 0; i < b.size.storms && (i == 0 || time.Now().Before(end)); i++ {
		// Wait until all is as if nothing had happened.
		if err := pause(ctx, b.size.rest); err != nil {
			return err
		}
		if err := s.whole(ctx, 0, s.n); err != nil {
			return err
		}
		if err := forgive(ctx, p, 0, s.n, 1); err != nil {
			return err
		}

		// Kill them.
		own, err := s.own(p)
		if err != nil {
			return err
		}
		cpu := cpuOf(own)
		old := slices.Clone(s.track.newest)
		began := clock()
		for k, pid := range old {
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				return fmt.Errorf("cannot kill process %d: %w", k, err)
			}
		}

		// Wait until all are back.
		ok, err := s.track.awaitAll(ctx, s.patience, old)
		if err != nil {
			return err
		}
		if !ok {
			s.found[rowStorm] = longer(s.patience)
			return fmt.Errorf("not all processes are back %s after a storm", s.patience)
		}
		s.found.repeat(rowStorm, s.track.last().since(began))
		if err := pause(ctx, b.size.quiet); err != nil { // the rest of the work belongs to the storm too
			return err
		}
		s.found.repeat(rowStormCPU, cpuOf(own)-cpu)
	}

	return nil
}

func (b *bench) measureStop(ctx context.Context, s *site, p peer) error {
	if err := pause(ctx, b.size.rest+b.size.quiet); err != nil {
		return err
	}
	if err := s.whole(ctx, 0, s.n); err != nil {
		return fmt.Errorf("stop all: %w", err)
	}

	gone, err := watchEnds(s.track.newest)
	if err != nil {
		return err
	}
	defer gone.close()
	began := clock()
	stopped := make(chan error, 1)
	go func() { stopped <- p.stopAll(ctx) }()
	ok, err := gone.await(ctx, s.patience)
	took := clock().since(began)

	if err := errors.Join(err, <-stopped); err != nil {
		return fmt.Errorf("stop all: %w", err)
	}
	if !ok {
		s.found[rowStop] = longer(s.patience)
		return fmt.Errorf("not all processes have stopped after %s", s.patience)
	}

	s.found.repeat(rowStop, took)
	return nil
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
