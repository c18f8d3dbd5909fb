//go:build linux

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/gozzard/gozzard/bench/child"
)

const registrars = 2 // callers that register at the same time

// measurePages registers processes in the fleet and then reads their pages.
func (b *bench) measurePages(ctx context.Context, f *testFleet) error {
	before, err := memoryOf(ctx, f)
	if err != nil {
		return err
	}

	known, err := rowCount(ctx, f)
	if err != nil {
		return err
	}
	if err := b.register(ctx, f); err != nil {
		return err
	}

	total, err := rowCount(ctx, f)
	if err != nil {
		return err
	}
	if want := known + b.size.names*len(f.hosts); total != want {
		b.res.AddFault("pages: %d rows are listed after registering, not %d", total, want)
	}

	b.say("pages: waiting until the server has forgotten the results of the registration")
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(b.size.forget):
	}
	after, err := memoryOf(ctx, f)
	if err != nil {
		return err
	}

	rows := int64(max(total-known, 1))
	b.res.Note("Memory of the server: %s resident (%s live heap after the last collection) with %d hosts and %d rows, %s (%s) with %d rows: %d (%d) bytes a row. "+
		"Resident memory includes the garbage of the registration.", megabytes(before.rss), megabytes(before.heap),
		len(f.hosts), known, megabytes(after.rss),
		megabytes(after.heap), total, (after.rss-before.rss)/rows, (after.heap-before.heap)/rows)

	if err := b.comparePages(ctx, f, total); err != nil {
		return err
	}

	if err := b.askStatus(ctx, f); err != nil {
		return err
	}
	return b.measureLarge(ctx, f)
}

// register registers names on every host, with one call for each name.
func (b *bench) register(ctx context.Context, f *testFleet) error {
	n := b.size.names * len(f.hosts)
	b.say("registering %d processes", n)
	var bad atomic.Int64
	var took samples
	cpu, wall, err := child.Spent(f.server, func() (err error) {
		took, err = inParallel(registrars, b.size.names/registrars, func(c, round int) (time.Duration, error) {
			body, err := request(fmt.Sprintf("worker-%03d", round*registrars+c), -1, f.hosts)
			if err != nil {
				return 0, err
			}

			var entries map[string]struct {
				Code int `json:"error_code"`
			}
			took, err := f.ask(ctx, "update_proc_info", body, &entries)

			if len(entries) != len(f.hosts) {
				bad.Add(int64(len(f.hosts) - len(entries)))
			}

			for _, e := range entries {
				if e.Code != 0 {
					bad.Add(1)
				}
			}

			return took, err
		})
		return err
	})
	if err != nil {
		return err
	}
	if bad.Load() > 0 {
		b.res.AddFault("registering: %d of %d entries are not a success", bad.Load(), n)
	}

	t := b.res.Table(fmt.Sprintf("Registering %d names on %d hosts with update_proc_info, %d calls at a time",
		b.size.names, len(f.hosts), registrars), "measured", "")
	t.Add("definitions a second, durable on server and agent", perSecond(n, wall), "", "", "")
	t.Add("in all", span(wall), "", "", "")
	t.Add("a call, p50 / p99", took.quantiles(), "", "", "")
	t.Add("server CPU per definition", each(cpu, n), "", "", "")
	return nil
}

// comparePages reads pages at random positions, alternately from the server and from the table.
func (b *bench) comparePages(ctx context.Context, f *testFleet, total int) error {
	b.say("pages of %d rows", total)
	peer, err := b.startPart("table")
	if err != nil {
		return err
	}

	defer peer.dismiss()
	at, err := peer.do(order{Do: "serve", Addr: b.dir, N: total})
	if err != nil {
		return err
	}

	plain, err := newCaller([]byte(`{"url":"` + at.Addr + `"}`))
	if err != nil {
		return err
	}

	t := b.res.Table(fmt.Sprintf("sync_proc_status over HTTP, pages at random places of %d rows", total),
		"live index", "SQLite table by its key, LIMIT OFFSET")
	for _, limit := range []int{1000, 100} {
		var ours, theirs samples
		for range b.size.pages {
			start := rand.IntN(max(total-limit, 1))
			want := min(limit, total-start)
			for _, side := range []struct {
				c    *caller
				took *samples
			}{{f.caller, &ours}, {plain, &theirs}} {
				took, _, err := page(ctx, side.c, start, limit, want)
				if err != nil {
					return err
				}
				*side.took = append(*side.took, took)
			}
		}
		t.Add(fmt.Sprintf("%d rows, p50 / p99", limit), ours.quantiles(), theirs.quantiles(),
			ratio(theirs.at(0.5), ours.at(0.5))+" as fast", "")
	}

	b.res.Note("The table has the same columns and answers the same JSON over HTTP; it is given the total instead of counting it, and no client writes to it, while " +
		"the hosts go on reporting all their processes to the live index every 30 s.")
	return nil
}

// page reads one page and checks its number of rows.
func page(ctx context.Context, c *caller, start, limit, want int) (time.Duration, int, error) {
	body, err := json.Marshal(map[string]any{"meta": map[string]any{"namespace": namespace},
		"page": map[string]int{"start": start, "limit": limit}})
	if err != nil {
		return 0, 0, err
	}

	var p struct {
		Count int
		Infos []json.RawMessage `json:"proc_infos"`
	}
	took, err := c.ask(ctx, "sync_proc_status", body, &p)
	if err == nil && len(p.Infos) != want {
		err = fmt.Errorf("page at %d has %d rows, not %d", start, len(p.Infos), want)
	}

	return took, p.Count, err
}

func rowCount(ctx context.Context, f *testFleet) (int, error) {
	body := []byte(`{"meta":{"namespace":"` + namespace + `"},"page":{"start":0,"limit":1}}`)
	var p struct{ Count int }
	_, err := f.ask(ctx, "sync_proc_status", body, &p)
	return p.Count, err
}

// askStatus asks for one process on every host.
func (b *bench) askStatus(ctx context.Context, f *testFleet) error {
	body, err := json.Marshal(map[string]any{"meta": map[string]any{"namespace": namespace, "name": "worker-000"},
		"hosts": f.hosts})
	if err != nil {
		return err
	}

	n := max(b.size.pages/3, 1)
	var times samples
	cpu, _, err := child.Spent(f.server, func() error {
		for range n {
			var d struct {
				Infos []struct{ Status int } `json:"proc_infos"`
			}
			took, err := f.ask(ctx, "get_proc_status", body, &d)
			if err != nil {
				return err
			}
			if len(d.Infos) != len(f.hosts) {
				return fmt.Errorf("get_proc_status has %d rows, not %d", len(d.Infos), len(f.hosts))
			}
			times = append(times, took)
		}
		return nil
	})
	if err != nil {
		return err
	}

	t := b.res.Table(fmt.Sprintf("get_proc_status of one process on %d hosts in one call", len(f.hosts)), "measured",
		"")
	t.Add("p50 / p99", times.quantiles(), "", "", "")
	t.Add("server CPU per row, hosts reporting meanwhile", each(cpu, n*len(f.hosts)), "", "", "")
	return nil
}

// memory is that of a server: its resident memory, and the live heap after the last garbage collection.
type memory struct{ rss, heap int64 }

func memoryOf(ctx context.Context, f *testFleet) (memory, error) {
	rss, err := f.server.RSS()
	if err != nil {
		return memory{}, err
	}

	text, err := f.get(ctx, "/metrics")
	if err != nil {
		return memory{}, err
	}

	m := regexp.MustCompile(`(?m)^go_gc_heap_live_bytes (\S+)$`).FindSubmatch(text)
	if m == nil {
		return memory{}, fmt.Errorf("the server does not report its heap")
	}

	live, err := strconv.ParseFloat(string(m[1]), 64)
	return memory{rss: rss, heap: int64(live)}, err
}
