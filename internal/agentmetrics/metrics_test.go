package agentmetrics_test

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/agentmetrics"
	"github.com/gozzard/gozzard/internal/supervise"
)

// oddNames are names that CMDB allows: quotes, backslashes, line breaks, other scripts, and 256 bytes.
var oddNames = []string{`a"b`, `back\slash`, "two\nlines", "tab\there", "{x=\"y\"} 7", "# HELP x", "牧鹅人", "\u202eevil",
	strings.Repeat("鹅", 85) + "!", "bad\xffbyte", "' OR 1=1", "\r", `\n`}

// read writes what is gathered as text and reads it again, as Prometheus does: name{labels} → value.
func read(t testing.TB, m *agentmetrics.Metrics) map[string]float64 {
	t.Helper()
	families, err := m.Gather()
	if err != nil {
		t.Fatal(err)
	}

	var text bytes.Buffer
	for _, f := range families {
		if _, err := expfmt.MetricFamilyToText(&text, f); err != nil {
			t.Fatal(err)
		}
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	parsed, err := parser.TextToMetricFamilies(&text)
	if err != nil {
		t.Fatal(err)
	}

	series := map[string]float64{}
	for name, f := range parsed {
		for _, x := range f.Metric {
			id := name + "{" + labelText(x.Label) + "}"
			if _, twice := series[id]; twice {
				t.Errorf("%s is there twice", id)
			}
			series[id] = x.GetCounter().GetValue() + x.GetGauge().GetValue() + x.GetUntyped().GetValue()
		}
	}
	return series
}

func labelText(labels []*dto.LabelPair) string {
	var all []string
	for _, l := range labels {
		all = append(all, fmt.Sprintf("%s=%q", l.GetName(), l.GetValue()))
	}
	slices.Sort(all)
	return strings.Join(all, ",")
}

func metricsOf(groups bool, lives ...supervise.Life) *agentmetrics.Metrics {
	return agentmetrics.New(agentmetrics.Options{Host: "0:10.0.0.1", Agent: "a", Version: "1", Mode: "root", Groups: groups,
		Processes: func(most int) ([]supervise.Life, int) { return lives[:min(most, len(lives))], len(lives) }})
}

func life(name string) supervise.Life {
	l := supervise.Life{Status: gozzard.Status{Key: gozzard.Key{Namespace: "shop", Name: name}, Wanted: gozzard.StateRunning,
		State: gozzard.StateRunning, Condition: gozzard.ConditionRunning, Hosted: true, StartedAt: 1700000000, Restarts: 3,
		Health: gozzard.HealthFailing}}
	l.Measured, l.Exceeded = true, 2
	l.Usage = supervise.Usage{MemKB: 2, FD: 5, Procs: 4, UserTime: 1500 * time.Millisecond, SystemTime: 500 * time.Millisecond}
	return l
}

func TestProcessMetrics(t *testing.T) {
	l := life("web")
	l.Labels = map[string]string{gozzard.LabelBusiness: "7", gozzard.LabelSet: "shenzhen", gozzard.LabelModule: "gate"}
	got := read(t, metricsOf(true, l))

	labels := `business="7",host="0:10.0.0.1",module="gate",name="web",namespace="shop",set="shenzhen"`
	group := `groupname="shop:web"`
	for id, want := range map[string]float64{
		`gozzard_process_wanted{` + labels + `}`:                                1,
		`gozzard_process_supervised{` + labels + `}`:                            1,
		`gozzard_process_healthy{` + labels + `}`:                               0,
		`gozzard_process_restarts_total{` + labels + `}`:                        3,
		`gozzard_process_limit_exceeded_total{` + labels + `}`:                  2,
		`gozzard_process_cpu_seconds_total{` + labels + `}`:                     2,
		`gozzard_process_resident_memory_bytes{` + labels + `}`:                 2048,
		`gozzard_process_open_fds{` + labels + `}`:                              5,
		`gozzard_process_start_time_seconds{` + labels + `}`:                    1700000000,
		`gozzard_process_state{` + labels + `,state="running"}`:                 1,
		`gozzard_process_state{` + labels + `,state="crash_loop"}`:              0,
		`gozzard_agent_processes{}`:                                             1,
		`namedprocess_namegroup_num_procs{` + group + `}`:                       4,
		`namedprocess_namegroup_cpu_seconds_total{` + group + `,mode="user"}`:   1.5,
		`namedprocess_namegroup_cpu_seconds_total{` + group + `,mode="system"}`: .5,
		`namedprocess_namegroup_memory_bytes{` + group + `,memtype="resident"}`: 2048,
		`namedprocess_namegroup_open_filedesc{` + group + `}`:                   5,
		`namedprocess_namegroup_oldest_start_time_seconds{` + group + `}`:       1700000000,
	} {
		if v, there := got[id]; !there || v != want {
			t.Errorf("%s is %v (there: %v), want %v", id, v, there, want)
		}
	}
}

// Exactly one state is 1, whatever the agent reports, and every state of the page can be there.
func TestProcessStatesAreOneHot(t *testing.T) {
	for _, c := range gozzard.Conditions() {
		if c == gozzard.ConditionUnregistered {
			continue
		}
		l := life("web")
		l.Condition = c
		ones := 0
		for id, v := range read(t, metricsOf(false, l)) {
			if strings.HasPrefix(id, "gozzard_process_state{") {
				ones += int(v)
				if (v == 1) != strings.Contains(id, `state="`+c.String()+`"`) {
					t.Errorf("%s: %s is %v", c, id, v)
				}
			}
		}
		if ones != 1 {
			t.Errorf("%s: %d states are 1", c, ones)
		}
	}
}

// What is not known is absent, never 0.
func TestUnknownIsAbsent(t *testing.T) {
	l := supervise.Life{Status: gozzard.Status{Key: gozzard.Key{Namespace: "shop", Name: "web"}, State: gozzard.StateRunning}}
	for id := range read(t, metricsOf(true, l)) {
		for _, name := range []string{"gozzard_process_healthy", "gozzard_process_cpu", "gozzard_process_resident",
			"gozzard_process_open", "gozzard_process_start", "namedprocess"} {
			if strings.HasPrefix(id, name) {
				t.Errorf("%s is there although nothing was measured", id)
			}
		}
	}
}

// Names of CMDB are any text. The answer is valid, has each process once, and every name in it.
func TestOddNames(t *testing.T) {
	var lives []supervise.Life
	for _, n := range oddNames {
		l := life(n)
		l.Namespace = n
		l.Labels = map[string]string{gozzard.LabelSet: n}
		lives = append(lives, l)
	}
	got := read(t, metricsOf(true, lives...))

	for _, n := range oddNames {
		n = strings.ToValidUTF8(n, "\uFFFD")
		id := fmt.Sprintf(`gozzard_process_wanted{host="0:10.0.0.1",name=%q,namespace=%q,set=%q}`, n, n, n)
		if got[id] != 1 {
			t.Errorf("%q has no series", n)
		}
	}
	for id := range got {
		if !utf8.ValidString(id) {
			t.Errorf("%q is not valid", id)
		}
	}
}

// An agent with more processes than it may have series says how many it left out.
func TestTooManyProcesses(t *testing.T) {
	lives := make([]supervise.Life, 6000)
	for i := range lives {
		lives[i] = life(fmt.Sprint(i))
	}
	got := read(t, metricsOf(false, lives...))
	if got["gozzard_agent_processes{}"] != 6000 || got["gozzard_agent_processes_left_out{}"] != 1000 {
		t.Errorf("processes %v, left out %v", got["gozzard_agent_processes{}"], got["gozzard_agent_processes_left_out{}"])
	}
	n := 0
	for id := range maps.Keys(got) {
		if strings.HasPrefix(id, "gozzard_process_wanted{") {
			n++
		}
	}
	if n != 5000 {
		t.Errorf("%d processes have series", n)
	}
}

func BenchmarkGather(b *testing.B) {
	lives := make([]supervise.Life, 1000)
	for i := range lives {
		lives[i] = life(fmt.Sprint("process_", i))
	}
	m := metricsOf(false, lives...)
	b.ReportAllocs()
	var text bytes.Buffer
	for b.Loop() {
		families, err := m.Gather()
		if err != nil {
			b.Fatal(err)
		}
		text.Reset()
		for _, f := range families {
			if _, err := expfmt.MetricFamilyToText(&text, f); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(text.Len()), "bytes/scrape")
}
