//go:build linux

package main

import (
	"context"
	"fmt"

	"github.com/gozzard/gozzard/bench/sheet"
)

// beside measures another program and this one in turns, and compares their figures.
func beside(ctx context.Context, o options, before string, times int) (*results, error) {
	all := newResults(o.size)
	all.beside = true
	var now, then []*sheet.Sheet
	measure := func(what, binary string, list *[]*sheet.Sheet) error {
		o := o
		o.binary = binary
		res, err := run(ctx, o)
		if err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		if err := res.Fault(); err != nil {
			all.AddFault("%s: %v", what, err)
		}
		*list = append(*list, &res.Sheet)
		return nil
	}

	// The one that goes first changes, because the machine may become slower or faster.
	for i := range times {
		turns := []func() error{
			func() error { return measure("before", before, &then) },
			func() error { return measure("now", o.binary, &now) },
		}
		for j := range turns {
			if err := turns[(i+j)%2](); err != nil {
				return nil, err
			}
		}
	}

	all.Beside(now, then)
	all.Note("Both programs were measured %d times in turns. *now* is built from this tree.", times)
	return all, nil
}
