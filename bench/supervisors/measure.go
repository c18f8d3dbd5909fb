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
	steps := []func(context.Context, *site, peer) error{
		b.measureIdle, b.measureStatus, b.measureCrash, b.measureTwice, b.measureStorm, b.measureStop,
	}
	var errs []error
	for _, step := range steps {
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
	began := time.Now()

	if err := syscall.Kill(old, syscall.SIGKILL); err != nil {
		return 0, fmt.Errorf("cannot kill process %d: %w", k, err)
	}

	ok, err := s.track.await(ctx, s.patience/2, func() bool { return s.track.newest[k] != old })
	if err == nil && !ok {
		err = fmt.Errorf("process %d does not come back within %s: %s", k, s.patience/2, s.words())
	}

	return time.Since(began), err
}

func (b *bench) crashes(ctx context.Context, s *site, count, kills int) (samples, error) {
	var took samples
	back := slices.Repeat([]time.Time{time.Now()}, s.n)
	end := time.Now().Add(b.size.budget)
	for i := 0; i < count && (i < 3 || time.Now().Before(end)); i++ {
		k, err := b.victim(ctx, i, s, back)
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

func (b *bench) measureCrash(ctx context.Context, s *site, _ peer) error {
	took, err := b.crashes(ctx, s, b.size.crashes, 1)
	s.found.latency(rowCrash50, rowCrash99, took)
	return err
}

func (b *bench) measureDaemons(ctx context.Context, s *site, _ peer) error {
	took, err := b.crashes(ctx, s, b.size.crashes, 1)
	s.found.latency(rowDaemon50, rowDaemon99, took)
	return err
}

func (b *bench) measureTwice(ctx context.Context, s *site, _ peer) error {
	took, err := b.crashes(ctx, s, b.size.twice, 2)
	if len(took) > 0 {
		s.found[rowTwice] = millis(took.at(0.5))
	}
	return err
}

// measureStorm kills all processes at once.
func (b *bench) measureStorm(ctx context.Context, s *site, _ peer) error {
	var took samples
	end := time.Now().Add(b.size.budget)
	for i := 0; i < b.size.storms && (i == 0 || time.Now().Before(end)); i++ {
		if err := pause(ctx, b.size.rest); err != nil {
			return err
		}
		if err := s.whole(ctx, 0, s.n); err != nil {
			return err
		}
		old := slices.Clone(s.track.newest)
		began := time.Now()
		for k, pid := range old {
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				return fmt.Errorf("cannot kill process %d: %w", k, err)
			}
		}
		ok, err := s.track.awaitAll(ctx, s.patience, old)
		if err != nil {
			return err
		}
		if !ok {
			s.found[rowStorm] = longer(s.patience)
			return fmt.Errorf("not all processes are back %s after a storm", s.patience)
		}
		took = append(took, time.Since(began))
	}

	s.found[rowStorm] = millis(took.at(0.5))
	return nil
}

func (b *bench) measureStop(ctx context.Context, s *site, p peer) error {
	if err := pause(ctx, b.size.rest); err != nil {
		return err
	}
	if err := s.whole(ctx, 0, s.n); err != nil {
		return fmt.Errorf("stop all: %w", err)
	}

	list := slices.Clone(s.track.newest)
	began := time.Now()
	stopped := make(chan error, 1)
	go func() { stopped <- p.stopAll(ctx) }()
	ok, err := awaitGone(ctx, s.patience, list)
	took := time.Since(began)

	if err := errors.Join(err, <-stopped); err != nil {
		return fmt.Errorf("stop all: %w", err)
	}
	if !ok {
		s.found[rowStop] = longer(s.patience)
		return fmt.Errorf("not all processes have stopped after %s", s.patience)
	}

	s.found[rowStop] = millis(took)
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
