//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/gozzard/gozzard/bench/sheet"
)

// The limits of the design, in the units of the measurements.
const (
	firstTableLimit = 2000 // ms
	heatLimit       = 2000 // ms
	frameLimit      = 34   // ms, for 95 of 100 frames
	filterLimit     = 150  // ms
	memoryLimit     = 150  // MB
)

func (f *bigFleet) measureBrowser(ctx context.Context, o options, s *sheet.Sheet, t *sheet.Table) error {
	ctx, stop, err := f.openBrowser(ctx, o)
	if err != nil {
		return err
	}
	defer stop()

	// Open the table and the map.
	first, err := f.opened(ctx, "/console/processes", "bench.table")
	if err != nil {
		return fmt.Errorf("first table: %w", err)
	}
	heat, err := f.opened(ctx, "/console/", "bench.map")
	if err != nil {
		return fmt.Errorf("map: %w", err)
	}
	add(t, "first row of the table, from the address to the screen", first, "ms", firstTableLimit)
	add(t, "map of the fleet, from the address to the screen", heat, "ms", heatLimit)

	// Scroll while the changes come, then filter, in a tab of its own: the pages before still use memory for a while.
	ctx, closeTab, err := f.newTab(ctx)
	if err != nil {
		return err
	}
	defer closeTab()
	if _, err = f.opened(ctx, "/console/processes", "bench.table"); err != nil {
		return err
	}
	time.Sleep(o.settle) // the frames of a page that is in use are measured, not those of its start
	if err := measureScrolling(ctx, o, t); err != nil {
		return err
	}
	if err := measureFilters(ctx, o, t); err != nil {
		return err
	}

	// Look at the memory.
	time.Sleep(o.remember) // the memory after some time with changes is measured
	bytes, err := rendererMemory(chromedp.FromContext(ctx).Browser.Process().Pid)
	if err != nil {
		return err
	}
	add(t, "memory of the page's process", float64(bytes)/(1<<20), "MB", memoryLimit)
	s.Note("%d hosts with %d processes, %d changes a second; the server knew all of them %.0f s after the hosts began to connect.",
		o.hosts, o.processes, o.changes, f.reported.Seconds())

	if err := f.measureTask(ctx, o, s, t); err != nil {
		return fmt.Errorf("page of a task: %w", err)
	}
	return nil
}

// filters are one of each kind, as people type them.
var filters = []struct{ what, text string }{
	{"words", "process-00 10.0.0.1"},
	{"a name with a pattern", "name:process-00*1"},
	{"states", "state:crash_loop,backing_off"},
	{"a host", "host:10.0.0.2"},
	{"a namespace and a state", "ns:game-03 state:running"},
	{"nothing, so all rows", ""},
}

// measureScrolling turns the wheel over the table, some times.
func measureScrolling(ctx context.Context, o options, t *sheet.Table) error {
	var half, most []float64
	count := 0.0
	for range o.repeats {
		moved, err := scroll(ctx, ".ps-grid", o.scroll)
		if err != nil {
			return fmt.Errorf("scrolling: %w", err)
		}
		half, most, count = append(half, moved.P50), append(most, moved.P95), count+moved.Count
	}

	t.Add("frames while scrolling, half of them within", fmt.Sprintf("%.1f ms", median(half)), "", "", "")
	add(t, fmt.Sprintf("95 of 100 frames while scrolling within (%.0f frames%s)", count, spread(most)), median(most), "ms",
		frameLimit)
	return nil
}

// measureFilters types filters into the box, some times, and waits until the table shows what fits.
func measureFilters(ctx context.Context, o options, t *sheet.Table) error {
	took := make([][]float64, len(filters))
	for range o.repeats {
		for i, f := range filters {
			ms, err := evaluate[float64](ctx, fmt.Sprintf(filter, f.text))
			if err != nil {
				return fmt.Errorf("filter %q: %w", f.text, err)
			}
			took[i] = append(took[i], ms)
		}
	}

	worst := 0
	for i, f := range filters {
		t.Add("filter by "+f.what+spread(took[i]), fmt.Sprintf("%.0f ms", median(took[i])), "", "", "")
		if median(took[i]) > median(took[worst]) {
			worst = i
		}
	}
	add(t, "the slowest filter ("+filters[worst].what+")", median(took[worst]), "ms", filterLimit)
	return nil
}

// median is the middle one of some figures.
func median(of []float64) float64 {
	sorted := slices.Sorted(slices.Values(of))
	return sorted[len(sorted)/2]
}

// spread names the least and the largest of repeated figures: other machines take processor time of a shared one.
func spread(of []float64) string {
	if len(of) < 2 {
		return ""
	}
	return fmt.Sprintf("; median of %d, %.0f to %.0f", len(of), slices.Min(of), slices.Max(of))
}

// add adds a figure beside its limit.
func add(t *sheet.Table, what string, value float64, unit string, limit float64) {
	verdict := "kept"
	if value > limit {
		verdict = "**missed**"
	}
	t.Add(what, fmt.Sprintf("%.0f %s", value, unit), fmt.Sprintf("%.0f %s", limit, unit), fmt.Sprintf("%.2f", value/limit), verdict)
}

// openBrowser starts Chromium and signs in.
func (f *bigFleet) openBrowser(ctx context.Context, o options) (context.Context, func(), error) {
	path, err := exec.LookPath("chromium")
	if err != nil {
		return nil, nil, errors.New("chromium is missing: install Debian's package chromium")
	}
	ctx, stopBrowser := chromedp.NewExecAllocator(ctx, chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.NoFirstRun, chromedp.NoDefaultBrowserCheck, chromedp.Flag("headless", "new"),
		chromedp.Flag("disable-dev-shm-usage", true), chromedp.Flag("no-proxy-server", true),
		chromedp.WindowSize(1600, 1000), chromedp.WSURLReadTimeout(time.Minute),
		chromedp.UserDataDir(filepath.Join(o.dir, "browser")))
	ctx, stopTab := chromedp.NewContext(ctx)
	stop := func() { stopTab(); stopBrowser() }

	if err := f.signIn(ctx); err != nil {
		stop()
		return nil, nil, err
	}
	return ctx, stop, nil
}

// newTab opens another tab, and leaves the page of the first one.
func (f *bigFleet) newTab(ctx context.Context) (context.Context, func(), error) {
	if err := chromedp.Do(ctx, chromedp.Navigate("about:blank")); err != nil {
		return nil, nil, err
	}
	tab, stop := chromedp.NewContext(ctx)
	if err := observe(tab); err != nil {
		stop()
		return nil, nil, err
	}
	return tab, stop, nil
}

func (f *bigFleet) signIn(ctx context.Context) error {
	if err := chromedp.Do(ctx, chromedp.Navigate(f.url+"/console/sign-in")); err != nil {
		return err
	}
	status, err := evaluate[int](ctx, fmt.Sprintf(login, benchUser, benchPassword))
	if err != nil {
		return err
	}
	if status != 200 {
		return fmt.Errorf("the sign-in was answered with %d", status)
	}
	return observe(ctx)
}

// observe lets every page of a tab note when it has drawn what.
func observe(ctx context.Context) error {
	_, err := chromedp.Call(ctx, page.AddScriptToEvaluateOnNewDocument,
		page.AddScriptToEvaluateOnNewDocumentParams{Source: observer})
	return err
}

// opened opens an address and waits until an expression, a time in the page, is there.
func (f *bigFleet) opened(ctx context.Context, path, expression string) (float64, error) {
	if err := chromedp.Do(ctx, chromedp.Navigate(f.url+path)); err != nil {
		return 0, err
	}
	end := time.Now().Add(2 * time.Minute)
	for time.Now().Before(end) {
		if at, err := evaluate[float64](ctx, "window."+expression+" ?? 0"); err != nil || at > 0 {
			return at, err
		}
		time.Sleep(50 * time.Millisecond) // between two looks; the page itself notes the time that is measured
	}
	return 0, fmt.Errorf("nothing was drawn at %s", path)
}

// evaluate runs code in the page. A promise is waited for.
func evaluate[T any](ctx context.Context, code string) (T, error) {
	return chromedp.Run(ctx, chromedp.Evaluate[T](code, chromedp.EvalAwaitPromise))
}

// rendererMemory is the memory of the largest process of the browser that shows a page.
func rendererMemory(browser int) (most int64, err error) {
	processes, err := os.ReadDir("/proc")
	if err != nil {
		return 0, err
	}
	for _, c := range processes {
		pid, err := strconv.Atoi(c.Name())
		if err != nil {
			continue
		}
		line, err := os.ReadFile(filepath.Join("/proc", c.Name(), "cmdline"))
		if err != nil || !strings.Contains(string(line), "--type=renderer") || !descends(pid, browser) {
			continue
		}
		if bytes, err := memoryOf(pid); err == nil {
			most = max(most, bytes)
		}
	}
	if most == 0 {
		return 0, errors.New("found no process of the page")
	}
	return most, nil
}

// descends reports whether a process is a child of another one, or a child of its child.
func descends(pid, of int) bool {
	for range 5 {
		if pid == of {
			return true
		}
		stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
		if err != nil {
			return false
		}
		_, rest, _ := strings.Cut(string(stat), ") ")
		fields := strings.Fields(rest)
		if len(fields) < 2 {
			return false
		}
		if pid, err = strconv.Atoi(fields[1]); err != nil {
			return false
		}
	}
	return false
}
