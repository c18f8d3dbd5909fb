//go:build linux

package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gozzard/gozzard/bench/child"
	"github.com/gozzard/gozzard/bench/sheet"
	"github.com/gozzard/gozzard/internal/policy"
)

// results is the result of the run.
type results struct {
	sheet.Sheet
	size size
}

// Text is the page with the results.
func (r *results) Text() string {
	command := "go run ./bench/metrics"
	if r.size.name != "full" {
		command += " -" + r.size.name
	}
	return r.Markdown(sheet.Head{
		Title: "The cost of scrapes", Command: command,
		Versions: sheet.Versions("one server and one agent, built as in a release"),
		Read: "A real agent supervises real processes. Windows with and without scrapes follow each other in turns, and " +
			"the processor time is that of the agent's process alone.",
	})
}

// fleet is a server and one agent that serves metrics.
type fleet struct {
	dir, binary, data string
	server, agent     *child.Process
	url               string // of the metrics
}

// run measures the cost of scrapes of one agent.
func run(ctx context.Context, s size, binary string) (_ *results, err error) {
	res := &results{size: s, Sheet: sheet.Sheet{At: time.Now()}}
	dir, err := os.MkdirTemp("", "gozzard-bench-metrics-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)

	// Start a server, an agent and the processes.
	f := &fleet{dir: dir, binary: binary, data: filepath.Join(dir, "server")}
	if err := f.start(ctx); err != nil {
		return nil, err
	}
	defer f.end()
	if err := f.processes(ctx, s.processes); err != nil {
		return nil, err
	}

	// Measure with scrapes and without, in turns.
	before := load()
	var without, with costs
	for range s.rounds {
		if err := f.window(ctx, s, nil, &without); err != nil {
			return nil, err
		}
		if err := f.window(ctx, s, f.scrape, &with); err != nil {
			return nil, err
		}
	}
	res.Note("Load average of the machine: %s before the windows, %s after them. Above the number of processors, others "+
		"used it too: times of scrapes are longer then, and processor time hardly changes.", before, load())
	return res, res.tables(s, &without, &with)
}

// costs are those of all windows of a kind.
type costs struct {
	cpu, wall time.Duration
	took      []time.Duration // of each scrape
	page      []byte          // the last one
}

func (c *costs) share() float64 { return c.cpu.Seconds() / c.wall.Seconds() }

// window measures the agent for a while. scrape is nil in a window without scrapes.
func (f *fleet) window(ctx context.Context, s size, scrape func(context.Context) ([]byte, error), c *costs) error {
	cpu, wall, err := child.Spent(f.agent, func() error {
		ticker := time.NewTicker(s.every)
		defer ticker.Stop()
		for end := time.Now().Add(s.window); time.Now().Before(end); {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-ticker.C:
			}
			if scrape == nil {
				continue
			}
			began := time.Now()
			page, err := scrape(ctx)
			if err != nil {
				return err
			}
			c.took, c.page = append(c.took, time.Since(began)), page
		}
		return nil
	})
	c.cpu, c.wall = c.cpu+cpu, c.wall+wall
	return err
}

// tables writes what was measured.
func (r *results) tables(s size, without, with *costs) error {
	if got := series(with.page, "gozzard_process_wanted{"); got != s.processes {
		r.AddFault("a scrape has %d processes, not %d", got, s.processes)
	}
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if _, err := z.Write(with.page); err != nil {
		return err
	}
	if err := z.Close(); err != nil {
		return err
	}

	slices.Sort(with.took)
	n := len(with.took)
	page := r.Table(fmt.Sprintf("One scrape of an agent with %d processes", s.processes), "Gozzard", "")
	page.Add("time until the last byte: median", millis(with.took[n/2]), "", "", "")
	page.Add("the slowest", millis(with.took[n-1]), "", "", "")
	page.Add("series", fmt.Sprint(series(with.page, "")), "", "", "")
	page.Add("bytes", kilobytes(len(with.page)), "", "", "")
	page.Add("bytes, compressed as Prometheus asks for it", kilobytes(packed.Len()), "", "", "")

	more := with.share() - without.share()
	each := time.Duration(more * with.wall.Seconds() / float64(n) * float64(time.Second))
	cpu := r.Table("Processor time of the agent, in percent of one core", "with scrapes", "without")
	cpu.Add(fmt.Sprintf("%d windows of %s each, %d scrapes", s.rounds, s.window, n), percent(with.share()),
		percent(without.share()), ratio(with.share(), without.share()), "")
	cpu.Add("of one scrape", millis(each), "", "", "")
	cpu.Add("with one scrape every 15 seconds, by the line above", percent(each.Seconds()/15), "", "", "")
	return nil
}

// start starts the server, and then an agent that serves metrics.
func (f *fleet) start(ctx context.Context) (err error) {
	if f.binary == "" {
		if f.binary, err = child.Build(ctx, f.dir, "gozzard", "./cmd/gozzard"); err != nil {
			return err
		}
	}
	agents, err := freePort()
	if err != nil {
		return err
	}
	metrics, err := freePort()
	if err != nil {
		return err
	}
	f.url = "http://" + metrics + "/metrics"
	f.server, err = child.Start(f.dir, "server", exec.Command(f.binary, "server", "--data", f.data,
		"--listen", "127.0.0.1:0", "--agent-listen", agents, "--rate-app=0", "--confirm-above=0",
		"--confirm-above-percent=0", "--destructive-quota=0"))
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			f.end()
		}
	}()
	err = child.Until(ctx, time.Minute, "the server", func() (bool, error) {
		return f.gozzard(ctx, "hosts") == nil, nil
	}, f.server)
	if err != nil {
		return err
	}

	state := filepath.Join(f.dir, "agent")
	if err := os.Mkdir(state, 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(state, policy.FileName), []byte(policy.Permissive), 0o600); err != nil {
		return err
	}
	f.agent, err = child.Start(f.dir, "agent", exec.Command(f.binary, "agent", "--data", state, "--server", agents,
		"--secret-file", filepath.Join(f.data, "join.secret"), "--metrics-listen", metrics))
	if err != nil {
		return err
	}
	return child.Until(ctx, time.Minute, "the metrics of the agent", func() (bool, error) {
		page, err := f.scrape(ctx)
		return err == nil && bytes.Contains(page, []byte("\ngozzard_agent_connected 1\n")), err
	}, f.server, f.agent)
}

// processes starts n processes, and waits until all of them were measured.
func (f *fleet) processes(ctx context.Context, n int) error {
	doc := filepath.Join(f.dir, "load.yaml")
	text := fmt.Sprintf("{namespace: bench, name: load, instances: %d, command: [sleep, \"100000\"], user: root, "+
		"start_check: 0, labels: {business: \"2\", set: front, module: web}}\n", n)
	if err := os.WriteFile(doc, []byte(text), 0o600); err != nil {
		return err
	}
	if err := f.gozzard(ctx, "register", "-f", doc); err != nil {
		return err
	}
	if err := f.gozzard(ctx, "start", "load-*", "-n", "bench", "--all-hosts"); err != nil {
		return err
	}
	return child.Until(ctx, 3*time.Minute, "the processes", func() (bool, error) {
		page, err := f.scrape(ctx)
		got := series(page, "gozzard_process_resident_memory_bytes{")
		if err == nil && got < n {
			err = fmt.Errorf("%d of %d are measured", got, n)
		}
		return got == n, err
	}, f.server, f.agent)
}

// end ends what was started: the agent alone would let its processes run.
func (f *fleet) end() {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	if f.agent != nil {
		if err := f.gozzard(ctx, "stop", "load-*", "-n", "bench", "--all-hosts"); err != nil {
			fmt.Fprintln(os.Stderr, "metrics: processes may be left:", err)
		}
		f.agent.Stop()
	}
	f.server.Stop()
}

// gozzard runs a command.
func (f *fleet) gozzard(ctx context.Context, args ...string) error {
	args = append(args, "--credentials", filepath.Join(f.data, "credentials.json"))
	if out, err := exec.CommandContext(ctx, f.binary, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("gozzard %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return nil
}

// scrape reads the metrics, compressed, as Prometheus does.
func (f *fleet) scrape(ctx context.Context) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, f.url, http.NoBody)
	if err != nil {
		return nil, err
	}
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	defer a.Body.Close()
	page, err := io.ReadAll(a.Body)
	if err == nil && a.StatusCode != http.StatusOK {
		err = fmt.Errorf("a scrape is answered with %s: %s", a.Status, page)
	}
	return page, err
}

// series counts the series of a page whose text begins with a prefix.
func series(page []byte, prefix string) (n int) {
	for line := range bytes.Lines(page) {
		if bytes.HasPrefix(line, []byte(prefix)) && !bytes.HasPrefix(line, []byte("#")) {
			n++
		}
	}
	return n
}

// freePort is an address that nothing listens on.
func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("cannot find a port: %w", err)
	}
	defer l.Close()
	return l.Addr().String(), nil
}

// load is the load average of the machine: with others beside the run, times are longer.
func load() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "not known"
	}
	first, _, _ := strings.Cut(string(text), " ")
	return first
}

func ratio(a, b float64) string {
	if b == 0 {
		return ""
	}
	return fmt.Sprintf("%.2f×", a/b)
}

func millis(d time.Duration) string { return fmt.Sprintf("%.1f ms", d.Seconds()*1000) }
func percent(share float64) string  { return fmt.Sprintf("%.2f %%", share*100) }
func kilobytes(n int) string        { return fmt.Sprintf("%d KB", (n+500)/1000) }
