package cmdb

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/pace"
	"github.com/gozzard/gozzard/internal/topology"
)

// Sizes of pages: the largest that CMDB gives.
const (
	processPage = 500
	modulePage  = 500
	cloudPage   = 200
)

const (
	maxReads = 5         // of a business that changes during the read
	maxRows  = 4_000_000 // of a list
)

// moved means that a list changed between two pages, so rows may be missing or double.
type moved struct{ why string }

// Error says how the change was noticed.
func (m *moved) Error() string { return "the data changed while it was read: " + m.why }

// Read reads a business from CMDB. The result is complete, or there is an error: a process that was not read must not
// look like a process that was removed.
//
// The result has no name of the business and no configuration templates, because CMDB does not return them: see
// topology.Business.Keep. That also keeps the attributes of sets, modules and hosts if CMDB rejects the calls for them. A process whose alias is not a valid name, or is on its host already, is left out, an attribute
// that cannot be used is left empty, and both are logged and listed in Left.
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
		if err := pace.Sleep(ctx, backOff(c.o.Pause, read)); err != nil {
			return nil, unavailable(fmt.Sprintf("business %d", biz), err)
		}
	}
}

// read reads a business once.
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

	// Hosts without a set are in the pool of idle hosts and run no processes.
	processes = slices.DeleteFunc(processes, func(r processRow) bool { return r.Set.ID == 0 })
	modules, err := c.modules(ctx, biz, processes)
	if err != nil {
		return nil, err
	}

	seen, err := c.attributes(ctx, biz)
	if err != nil {
		return nil, err
	}
	return c.build(biz, clouds, modules, processes, seen)
}

// listing is one page of a list. An answer without a count is not a list, not even an empty one.
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

// list reads a list completely, several pages at a time.
//
// Rows are sorted by id, and each page begins with the last row of the page before. If a row is added or removed
// during the read, the rows behind it move, and two pages do not share a row any more. Every page also has the count
// of all rows. Both together detect a list that changed.
func list[T any](ctx context.Context, c *Client, name string, size int, ask func(page) any, id func(*T) int) ([]T,
	error) {
	// Read the first page and the count.
	var first listing[T]
	if err := c.call(ctx, name, ask(page{Limit: size}), &first); err != nil {
		return nil, err
	}

	count := first.count()
	if count < 0 || count > maxRows {
		return nil, unavailable(name, fmt.Errorf("answered without a count from 0 to %d", maxRows))
	}

	// Read the other pages.
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

// join makes one list of pages, if they belong to the same state of the list.
func join[T any](name string, pages []listing[T], starts []int, size int, id func(*T) int) ([]T, error) {
	count := pages[0].count()
	all := make([]T, 0, count)
	for i, p := range pages {
		want := min(size, count-starts[i])
		if p.count() != count || len(p.Info) != want {
			return nil, &moved{fmt.Sprintf("%s reported %d rows, then %d, and returned %d of %d", name, count,
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
			return nil, &moved{fmt.Sprintf("%s returned row %d after %d", name, id(&all[i]), id(&all[i-1]))}
		}
	}

	return all, nil
}

// modules reads the service templates of the modules of processes.
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

// each runs f for 0 to n-1, some at a time, and waits for all. The first error ends the others.
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
