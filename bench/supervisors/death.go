//go:build linux

package main

import (
	"context"
	"slices"
	"time"
)

// measureDeath kills the supervisor, either all its processes or only its first one, starts it again and counts what
// happened to the supervised processes.
func (b *bench) measureDeath(ctx context.Context, s *site, p peer, whole bool) error {
	if err := pause(ctx, b.size.rest); err != nil {
		return err
	}

	list, err := s.own(p)
	if err != nil {
		return err
	}

	before, err := s.track.copies()
	if err != nil {
		return err
	}

	rows := []row{rowDeathWhole}
	switch {
	case len(list) == 1: // the supervisor has one process only
		rows = append(rows, rowDeath)
	case !whole:
		rows, list = []row{rowDeath}, list[:1]
	}

	endAll(list)

	if err := p.start(ctx); err != nil {
		return err
	}

	after, err := b.settled(ctx, s)
	if err != nil {
		return err
	}

	for _, r := range rows {
		s.found[r] = fateOf(before, after)
	}

	return nil
}

// settled waits until the processes no longer change.
func (b *bench) settled(ctx context.Context, s *site) ([][]int, error) {
	var last [][]int
	// The first change may come only after the time that a start takes.
	since := time.Now().Add(time.Duration(min(s.found[rowStart].value, 20_000) * float64(time.Millisecond)))
	for end := time.Now().Add(s.patience / 2); ; {
		now, err := s.track.copies()
		if err != nil {
			return nil, err
		}
		if !slices.EqualFunc(last, now, sameSet) {
			last, since = now, time.Now()
		}
		if time.Since(since) > b.size.calm || time.Now().After(end) {
			return now, nil
		}
		if err := pause(ctx, 200*time.Millisecond); err != nil {
			return nil, err
		}
	}
}

func sameSet(a, b []int) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

// fateOf counts processes that run more than once, do not run, or were started again.
func fateOf(before, after [][]int) figure {
	var doubled, lost, restarted int
	for i, list := range after {
		switch {
		case len(list) == 0:
			lost++
		case len(list) > 1:
			doubled++
		case !slices.Contains(before[i], list[0]):
			restarted++
		}
	}
	return fate(doubled, lost, restarted)
}
