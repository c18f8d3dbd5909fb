//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/gozzard/gozzard/internal/fleet"
	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/topology"
)

// measureApply applies a large document three times: new, unchanged, and with a small change.
func (b *bench) measureApply(ctx context.Context) (err error) {
	b.say("applying %d instances", b.size.applied)
	dir, err := makeDir(b.dir, "apply")
	if err != nil {
		return err
	}

	s, err := startServer(ctx, dir, fleet.New(), nil)
	if err != nil {
		return err
	}

	defer func() { err = errors.Join(err, s.store.Close()) }()
	business := makeBusiness(b.size.applied)
	n := len(placesOf(business))
	doc, err := topology.Format(business)
	if err != nil {
		return err
	}

	t := b.res.Table(fmt.Sprintf("A business of %d instances applied, over SQLite with every commit on the disk", n),
		"measured", "")
	began := time.Now()

	if _, err := topology.Parse(doc); err != nil {
		return fmt.Errorf("cannot read what was written: %w", err)
	}

	t.Add(fmt.Sprintf("document read and checked (%.1f MB of YAML)", float64(len(doc))/1e6), span(time.Since(began)),
		"", "", "")

	for _, step := range []struct {
		what    string
		change  func(*topology.Business)
		applied bool
	}{
		{"all new: numbered, compared, recorded, in memory", func(*topology.Business) {}, true},
		{"the same once more: nothing to do", func(*topology.Business) {}, false},
		{"one process changed",
			func(b *topology.Business) { b.Sets[0].Modules[0].Instances[0].Processes[0].Priority += 5 }, true},
		{"every process of one set changed", changeSet, true},
	} {
		next := makeBusiness(b.size.applied)
		step.change(next)
		began := time.Now()
		a, err := s.plane.ApplyTopology(ctx, record.ApplyRequest{Caller: admin, Business: next,
			Source: record.SourceFile})
		if err != nil {
			return fmt.Errorf("%s: %w", step.what, err)
		}
		t.Add(step.what, span(time.Since(began)), "", "", "")
		if a.Applied != step.applied {
			b.res.AddFault("%s: applied is %v", step.what, a.Applied)
		}
	}

	began = time.Now()
	total, _ := s.plane.FindProcesses(admin, topology.Query{Biz: biz, Limit: 1000})
	t.Add("first page of 1,000 rows after that", span(time.Since(began)), "", "", "")

	if total != n {
		b.res.AddFault("%d processes are found after applying %d", total, n)
	}

	return nil
}

func changeSet(b *topology.Business) {
	modules := b.Sets[1].Modules
	for m := range modules {
		for i := range modules[m].Instances {
			for p := range modules[m].Instances[i].Processes {
				modules[m].Instances[i].Processes[p].Timeout = 90
			}
		}
	}
}

func makeDir(parent, name string) (string, error) {
	dir := filepath.Join(parent, name)
	return dir, os.Mkdir(dir, 0o700)
}
