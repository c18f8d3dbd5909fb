package cmdb

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/topology"
)

// Sizes of pages: the largest that CMDB gives.
const (
	processPage = 500
	modulePage  = 500
	cloudPage   = 200
)

const (
	maxReads = 5         // of a business that changes while it is read
	maxRows  = 4_000_000 // of a list
)

// moved says that a list changed between two pages of it, so that rows may be missing or there twice.
type moved struct{ why string }

func (m *moved) Error() string { return "it changes while it is read: " + m.why }

// Read reads a business as CMDB has it now. It is complete, or there is an error: nobody may take a process that
// was not read for one that is gone.
//
// CMDB does not tell the name of the business here, and knows nothing of configuration templates: see
// topology.Business.Keep. A process whose alias cannot name it to the fleet is left out, an attribute that cannot
// be used is left empty, and both are logged.
func (c *Client) Read(ctx context.Context, biz int) (*topology.Business, error) {
	ctx, cancel := context.WithTimeout(ctx, c.o.Whole)
	defer cancel()

	for read := 1; ; read++ {
		b, err := c.read(ctx, biz)
		var m *moved
		switch {
		case err == nil:
			return b, nil
		case ctx.Err() != nil:
			return nil, unavailable(fmt.Sprintf("business %d", biz), ctx.Err())
		case !errors.As(err, &m):
			return nil, err
		case read == maxReads:
			return nil, &gozzard.Error{Kind: gozzard.ErrUnavailable,
				Message: fmt.Sprintf("cannot read business %d from CMDB", biz), Cause: err}
		}
		if err := sleep(ctx, backOff(c.o.Pause, read)); err != nil {
			return nil, unavailable(fmt.Sprintf("business %d", biz), err)
		}
	}
}

// read reads everything once.
func (c *Client) read(ctx context.Context, biz int) (*topology.Business, error) {
	clouds, err := list(ctx, c, "search_cloud_area", cloudPage, func(p page) any {
		p.Sort = "bk_cloud_id"
		return map[string]any{"page": p}
	}, func(r *cloudRow) int { return int(r.ID) })

	if err != nil {
		return nil, err
	}

	processes, err := list(ctx, c, "list_process_related_info", processPage, func(p page) any {
		p.Sort = "bk_process_id"
		return map[string]any{"bk_biz_id": biz, "fields": processFields(), "page": p}
	}, func(r *processRow) int { return int(r.Process.ID) })

	if err != nil {
		return nil, err
	}

	// Hosts in no set are in the pool of idle ones: nothing is run there.
	processes = slices.DeleteFunc(processes, func(r processRow) bool { return r.Set.ID == 0 })
	modules, err := c.modules(ctx, biz, processes)
	if err != nil {
		return nil, err
	}

	return c.build(biz, clouds, modules, processes)
}

// listing is one page of a list. Without a count it is none: an answer that says nothing is not a list without rows.
type listing[T any] struct {
	Count *number `json:"count"`
	Info  []T     `json:"info"`
}

func (l *listing[T]) count() int {
	if l.Count == nil {
		return -1
	}
	return int(*l.Count)
}

// list reads a list whole, several pages at a time.
//
// Rows come by id, and each page begins with the last row of the one before. A row that comes or goes while pages
// are read moves those behind it, so that two neighbours no longer meet in the same row; together with the count
// that every page tells, a list that changed is noticed.
func list[T any](ctx context.Context, c *Client, name string, size int, ask func(page) any, id func(*T) int) ([]T,
	error) {
	var first listing[T]
	if err := c.call(ctx, name, ask(page{Limit: size}), &first); err != nil {
		return nil, err
	}

	count := first.count()
	if count < 0 || count > maxRows {
		return nil, unavailable(name, fmt.Errorf("answered without a count from 0 to %d", maxRows))
	}

	starts := []int{0}
	for start := size - 1; start+1 < count; start += size - 1 {
		starts = append(starts, start)
	}

	pages := make([]listing[T], len(starts))
	pages[0] = first
	err := c.each(ctx, len(starts)-1, func(ctx context.Context, i int) error {
		return c.call(ctx, name, ask(page{Start: starts[i+1], Limit: size}), &pages[i+1])
	})

	if err != nil {
		return nil, err
	}

	return join(name, pages, starts, size, id)
}

// join puts pages together, if they are of one and the same list.
func join[T any](name string, pages []listing[T], starts []int, size int, id func(*T) int) ([]T, error) {
	count := pages[0].count()
	all := make([]T, 0, count)
	for i, p := range pages {
		want := min(size, count-starts[i])
		if p.count() != count || len(p.Info) != want {
			return nil, &moved{fmt.Sprintf("%s told of %d rows, then of %d, and gave %d of %d", name, count,
				p.count(), len(p.Info), want)}
		}
		rows := p.Info
		if i > 0 {
			if id(&rows[0]) != id(&all[len(all)-1]) {
				return nil, &moved{fmt.Sprintf("%s has other rows at %d", name, starts[i])}
			}
			rows = rows[1:]
		}
		all = append(all, rows...)
	}

	for i := 1; i < len(all); i++ {
		if id(&all[i]) <= id(&all[i-1]) {
			return nil, &moved{fmt.Sprintf("%s gave row %d after %d", name, id(&all[i]), id(&all[i-1]))}
		}
	}

	return all, nil
}

// modules asks which service templates the modules of processes have.
func (c *Client) modules(ctx context.Context, biz int, processes []processRow) (map[int]int, error) {
	var ids []int
	for i := range processes {
		ids = append(ids, int(processes[i].Module.ID))
	}

	slices.Sort(ids)
	chunks := slices.Collect(slices.Chunk(slices.Compact(ids), modulePage))
	rows := make([][]moduleRow, len(chunks))
	err := c.each(ctx, len(chunks), func(ctx context.Context, i int) error {
		return c.call(ctx, "find_module_batch",
			map[string]any{"bk_biz_id": biz, "bk_ids": chunks[i],
				"fields": []string{"bk_module_id", "service_template_id"}}, &rows[i])
	})

	if err != nil {
		return nil, err
	}

	templates := map[int]int{}
	for _, r := range slices.Concat(rows...) {
		templates[int(r.ID)] = int(r.Template)
	}

	return templates, nil
}

// each does n things, some at a time, and waits for all. The first error ends the others.
func (c *Client) each(ctx context.Context, n int, do func(ctx context.Context, i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	turn := make(chan int)
	for range min(c.o.Parallel, n) {
		wg.Go(func() {
			for i := range turn {
				if err := do(ctx, i); err != nil {
					cancel(err) // the first one counts
				}
			}
		})
	}

	for i := 0; i < n && ctx.Err() == nil; i++ {
		select {
		case turn <- i:
		case <-ctx.Done():
		}
	}

	close(turn)
	wg.Wait()
	return context.Cause(ctx)
}
