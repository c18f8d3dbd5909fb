//go:build linux

package fleettest_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	ft "github.com/gozzard/gozzard/test/fleettest"
)

// scraped reads metrics as Prometheus does: name{labels} → value. No series may be there twice.
func scraped(t *testing.T, text string) map[string]float64 {
	t.Helper()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(text))
	if err != nil {
		t.Errorf("metrics cannot be read: %v", err)
	}
	series := map[string]float64{}
	for name, f := range families {
		for _, m := range f.GetMetric() {
			id := name + labelsOf(m)
			if _, twice := series[id]; twice {
				t.Errorf("%s is there twice", id)
			}
			series[id] = m.GetGauge().GetValue() + m.GetCounter().GetValue() + m.GetUntyped().GetValue()
		}
	}
	return series
}

func labelsOf(m *dto.Metric) string {
	var b strings.Builder
	for _, l := range m.GetLabel() {
		fmt.Fprintf(&b, "{%s=%q}", l.GetName(), l.GetValue())
	}
	return b.String()
}

// scrapeOf reads a page.
func scrapeOf(url string) (status int, text string, err error) {
	res, err := http.Get(url)
	if err != nil {
		return 0, "", err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	return res.StatusCode, string(b), err
}

// manyDefinitions defines processes with names and labels that no other one has, a thousand in a request.
func manyDefinitions(t *testing.T, s *ft.Server, spaces, each int) {
	t.Helper()
	var items []ft.J
	flush := func() {
		t.Helper()
		if len(items) == 0 {
			return
		}
		s.Await(s.Operate("operate_proc_multi", ft.J{"proc_operate_req": items})) // nothing runs, so there is nothing to stop
		items = nil
	}
	for space := range spaces {
		for n := range each {
			item := queryItem(fmt.Sprintf("flood-%d-%d", space, n))
			item["op_type"] = 1 // a stop that brings a definition
			item["meta"] = ft.J{"namespace": fmt.Sprintf("flood-space-%d", space), "name": fmt.Sprintf("flood-%d-%d", space, n),
				"labels": ft.J{"business": fmt.Sprint(space), "set": fmt.Sprintf("flood-set-%d-%d", space, n), "bk_process_id": n}}
			if items = append(items, item); len(items) == 1000 {
				flush()
			}
		}
	}
	flush()
}

// TestTD36LabelValues: whatever names, paths, apps and labels callers make up, the number of series is bounded, on the server and on
// an agent, and what is left out is counted.
func TestTD36LabelValues(t *testing.T) {
	t.Parallel() // it mostly waits
	s := ft.StartServer(t, "")
	listen := "127.0.0.1:" + strconv.Itoa(ft.FreePort(t))
	s.StartAgent(t, 1, "", "GOZZARD_METRICS_LISTEN="+listen)

	// Callers make up 600 paths, methods, apps and more. One of each comes first, so that the routes have their series.
	odd := func(n int) {
		id := "flood-" + strconv.Itoa(n)
		for _, r := range []struct{ method, path, app string }{{"GET", "/" + id, ""}, {strings.ToUpper(id), "/api/v1/tasks", ""},
			{"GET", "/api/v1/tasks/" + id, s.Cred.AppCode}, {"GET", "/api/v1/processes?namespace=" + id, id},
			{"POST", "/api/c/compapi/v2/gse/" + id + "/", id}} {
			req, err := http.NewRequestWithContext(t.Context(), r.method, s.Cred.URL+r.path, strings.NewReader(`{"bk_app_code": "`+id+`"}`))
			if err != nil {
				t.Error(err)
				return
			}
			req.Header.Set("User-Agent", id)
			req.Header.Set("X-Request-Id", id)
			req.Header.Set("X-Bkapi-Authorization", fmt.Sprintf(`{"bk_app_code": %q, "bk_app_secret": %q}`, r.app, s.Cred.Secret))
			res, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Error(err)
				return
			}
			_, _ = io.Copy(io.Discard, res.Body)
			res.Body.Close()
		}
	}
	odd(0)
	_, text := s.Get(t, "/metrics")
	before := scraped(t, text)
	var wg sync.WaitGroup
	for worker := range 4 {
		wg.Go(func() {
			for n := range 150 {
				odd(1 + worker*150 + n)
			}
		})
	}
	wg.Wait()
	_, text = s.Get(t, "/metrics")
	after := scraped(t, text)
	for id := range after {
		if _, known := before[id]; !known && strings.Contains(id, "flood") {
			t.Errorf("a caller made the series %s", id)
		}
	}
	if grown := len(after) - len(before); grown > 20 {
		t.Errorf("3,000 odd requests made %d series", grown)
	}

	// Processes of 300 namespaces, with 6,000 names and labels, on one host.
	const spaces, each = 300, 20
	manyDefinitions(t, s, spaces, each)
	var agent map[string]float64
	ft.Until(t, time.Minute, func() string { return fmt.Sprint(agent["gozzard_agent_processes"]) }, func() bool {
		_, text, err := scrapeOf("http://" + listen + "/metrics")
		if err != nil {
			return false
		}
		agent = scraped(t, text)
		return agent["gozzard_agent_processes"] == spaces*each
	})
	if left := agent["gozzard_agent_processes_left_out"]; left != spaces*each-5000 {
		t.Errorf("%v processes are left out", left)
	}
	wanted := 0
	for id := range agent {
		if strings.HasPrefix(id, "gozzard_process_wanted{") {
			wanted++
		}
	}
	if wanted != 5000 || len(agent) > 5000*20+1000 {
		t.Errorf("%d of %d processes have series, %d series", wanted, spaces*each, len(agent))
	}

	// The server adds the smaller namespaces up.
	spacesOf := func() (names map[string]float64) {
		_, text := s.Get(t, "/metrics")
		names = map[string]float64{}
		for id, v := range scraped(t, text) {
			if strings.HasPrefix(id, "gozzard_processes{") {
				_, name, _ := strings.Cut(id, "{namespace=")
				name, _, _ = strings.Cut(name, "}")
				names[name] += v
			}
		}
		return names
	}
	var names map[string]float64
	ft.Until(t, time.Minute, func() string { return fmt.Sprint(names) }, func() bool {
		names = spacesOf()
		return names[`"(others)"`] > 0
	})
	if len(names) > 201 {
		t.Errorf("%d namespaces have series: %v", len(names), slices.Sorted(maps.Keys(names)))
	}
}

// attempt runs an operation of which some attempts may fail: each has its verdict when the command ends.
func (x *watched) attempt(args ...string) {
	x.Helper()
	cmd := exec.Command(ft.Binary(x), append(args, "--credentials", filepath.Join(x.server.Data, "credentials.json"))...)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 6) { // 6: some failed
		x.Fatalf("gozzard %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// TestTD36ScrapesInAStorm: while processes crash again and again and operations go on, every scrape of the agent and of the server is
// answered and valid, each process has one state in it, and operations get their verdicts.
func TestTD36ScrapesInAStorm(t *testing.T) {
	t.Parallel() // it mostly waits
	const processes = 60
	x := &watched{T: t, dir: t.TempDir(), server: ft.StartServer(t, "")}
	s := x.server
	listen := "127.0.0.1:" + strconv.Itoa(ft.FreePort(t))
	s.StartAgent(t, 1, "", "GOZZARD_METRICS_LISTEN="+listen, "GOZZARD_SAMPLE_INTERVAL=1s")
	var doc bytes.Buffer
	for n := range processes {
		fmt.Fprintf(&doc, "---\n{name: storm%d, namespace: shop, hosts: [{ip: 127.0.0.1}], user: root, start_check: 0, "+
			"command: [sleep, \"0.%d\"], restart: {policy: always, delay: 0}}\n", n, 1+n%9)
	}
	x.gozzard("register", "-f", x.write("storm.yaml", doc.String()))

	// Scrape all the time, twice at once, until the storm is over.
	var over atomic.Bool
	defer over.Store(true)
	var scrapes, states atomic.Int64
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for !over.Load() {
				status, text, err := scrapeOf("http://" + listen + "/metrics")
				if err != nil || status != http.StatusOK {
					t.Errorf("a scrape of the agent: %d %v", status, err)
					return
				}
				ones := map[string]float64{}
				for id, v := range scraped(t, text) {
					if name, ok := strings.CutPrefix(id, "gozzard_process_state"); ok {
						_, name, _ = strings.Cut(name, "{name=")
						name, _, _ = strings.Cut(name, "}")
						ones[name] += v
					}
				}
				for name, n := range ones {
					if n != 1 {
						t.Errorf("%s has %v states", name, n)
					}
				}
				states.Add(int64(len(ones)))
				scrapes.Add(1)
			}
		})
	}
	wg.Go(func() {
		for !over.Load() {
			status, text, err := scrapeOf(s.Cred.URL + "/metrics")
			if err != nil || status != http.StatusOK || len(scraped(t, text)) == 0 {
				t.Errorf("a scrape of the server: %d %v", status, err)
				return
			}
		}
	})

	// The storm: three rounds of operations on processes that crash meanwhile.
	for range 3 {
		x.attempt("start", "storm*", "-n", "shop", "--all-hosts")
		at := scrapes.Load()
		ft.Until(t, time.Minute, func() string { return "no scrape ended" }, func() bool { return scrapes.Load() > at+4 })
		x.attempt("stop", "storm*", "-n", "shop", "--all-hosts")
	}
	over.Store(true)
	wg.Wait()
	if states.Load() < scrapes.Load()*processes {
		t.Errorf("%d states in %d scrapes of %d processes", states.Load(), scrapes.Load(), processes)
	}
}
