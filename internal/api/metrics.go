package api

import (
	"cmp"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/fleet"
	"github.com/gozzard/gozzard/internal/live"
)

// Metrics counts and measures what the server does. The values of its labels come from fixed lists, so that no caller
// and no agent can create new series.
type Metrics struct {
	registry *prometheus.Registry
	handler  http.Handler
	requests *prometheus.CounterVec
	latency  *prometheus.HistogramVec
	tasks    prometheus.Counter
	attempts prometheus.Counter
	settled  *prometheus.CounterVec
	refused  *prometheus.CounterVec
	store    *prometheus.HistogramVec
	failed   *prometheus.CounterVec
	fabric   *prometheus.HistogramVec
	backups  *prometheus.CounterVec
	backedUp prometheus.Gauge
	lost     prometheus.Gauge
	damaged  prometheus.Gauge
	checked  prometheus.Gauge

	exportRow    *prometheus.GaugeVec
	exportLag    *prometheus.GaugeVec
	exportFailed *prometheus.CounterVec

	notified      *prometheus.CounterVec
	notifyWaiting *prometheus.GaugeVec
}

// NewMetrics makes metrics in a new registry, together with those of the Go runtime and the process.
func NewMetrics() *Metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "gozzard", Name: name, Help: help}, labels)
	}

	// The buckets reach from a read in memory to the time-out of a command.
	buckets := []float64{.0001, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}
	histogram := func(name, help string, labels ...string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: "gozzard", Name: name, Help: help,
			Buckets: buckets}, labels)
	}

	gauge := func(name, help string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Namespace: "gozzard", Name: name, Help: help})
	}

	gauges := func(name, help string, labels ...string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: "gozzard", Name: name, Help: help}, labels)
	}

	m := &Metrics{
		registry: prometheus.NewRegistry(),
		requests: counter("http_requests_total",
			"HTTP requests by route and answer: the HTTP status, or the envelope's code on BlueKing paths.", "route",
			"code"),
		latency: histogram("http_request_seconds", "Time to answer HTTP requests by route.", "route"),
		tasks: prometheus.NewCounter(prometheus.CounterOpts{Namespace: "gozzard", Name: "tasks_accepted_total",
			Help: "Tasks accepted and recorded."}),
		attempts: prometheus.NewCounter(prometheus.CounterOpts{Namespace: "gozzard", Name: "attempts_accepted_total",
			Help: "Attempts of accepted tasks."}),
		settled: counter("attempts_settled_total", "Attempts that got a verdict, by state and code.", "state", "code"),
		refused: counter("security_refused_total",
			"Requests of callers and messages of agents that a security rule rejected, by rule.", "rule"),
		store:   histogram("store_seconds", "Time of calls to the database.", "call"),
		failed:  counter("store_errors_total", "Calls to the database that failed.", "call"),
		fabric:  histogram("fabric_seconds", "Time of calls to the fabric.", "call"),
		backups: counter("backups_total", "Scheduled backups of the server, by result.", "result"),
		backedUp: prometheus.NewGauge(prometheus.GaugeOpts{Namespace: "gozzard",
			Name: "backup_last_success_timestamp_seconds",
			Help: "When the newest successful scheduled backup began; 0 before the first."}),
		lost: gauge("record_lost",
			"1 while a file of the record is removed or replaced: nothing is acknowledged then."),
		damaged: gauge("record_damaged_pages", "Pages of the record that did not fit their checksums in the last check."),
		checked: gauge("record_checked_timestamp_seconds",
			"When all pages of the record were last compared with their checksums; 0 before the first time."),
		exportRow: gauges("audit_export_row", "Number of the newest row of the audit that an export has delivered.", "export"),
		exportLag: gauges("audit_export_lag_seconds",
			"How long the oldest row waits that an export could not deliver; 0 when it has delivered all.", "export"),
		exportFailed: counter("audit_export_failures_total", "Tries of an export to deliver rows that failed.", "export"),
		notified: counter("notifications_total", "Tries to deliver messages of alerts, by the kind of receiver and the result: sent, "+
			"failed, dead (not tried any more) or withheld (the owner may not see it any more).", "receiver", "result"),
		notifyWaiting: gauges("notifications_waiting", "Messages of alerts that wait to be delivered, by the kind of receiver.",
			"receiver"),
	}
	m.registry.MustRegister(m.requests, m.latency, m.tasks, m.attempts, m.settled, m.refused, m.store, m.failed,
		m.fabric, m.backups, m.backedUp, m.lost, m.damaged, m.checked, m.exportRow, m.exportLag, m.exportFailed, m.notified,
		m.notifyWaiting,
		collectors.NewGoCollector(liveHeap), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m.handler = promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{DisableCompression: true})
	return m
}

// liveHeap adds what the last garbage collection found in use: the room for garbage is adapted to the work, so no other
// metric tells it.
var liveHeap = collectors.WithGoCollectorRuntimeMetrics(
	collectors.GoRuntimeMetricsRule{Matcher: regexp.MustCompile(`^/gc/heap/live:bytes$`)})

// Registry has the metrics.
func (m *Metrics) Registry() *prometheus.Registry { return m.registry }

// Handler serves the metrics in the text format of Prometheus.
func (m *Metrics) Handler() http.Handler { return m.handler }

// ObserveRequest counts one answered request. route is a pattern of the route table, never the path of a request.
func (m *Metrics) ObserveRequest(route string, code int, took time.Duration) {
	m.requests.WithLabelValues(route, strconv.Itoa(code)).Inc()
	m.latency.WithLabelValues(route).Observe(took.Seconds())
}

// TaskAccepted counts a task with its targets.
func (m *Metrics) TaskAccepted(targets int) {
	m.tasks.Inc()
	m.attempts.Add(float64(targets))
}

// AttemptSettled counts a verdict. A code that the program does not know counts as "other", because an agent can
// report any text.
func (m *Metrics) AttemptSettled(action gozzard.Action, state gozzard.AttemptState, code gozzard.Code) {
	m.settled.WithLabelValues(stateText(action, state, code), codeLabel(code)).Inc()
}

// ReportRefused counts a request or a message that a security rule rejected. rule is a word of the program.
func (m *Metrics) ReportRefused(rule string) { m.refused.WithLabelValues(rule).Inc() }

// ObserveStore measures a call to the database, such as "accept".
func (m *Metrics) ObserveStore(call string, took time.Duration, err error) {
	m.store.WithLabelValues(call).Observe(took.Seconds())
	if err != nil {
		m.failed.WithLabelValues(call).Inc()
	}
}

// ObserveFabric returns what measures a call to the fabric, such as "send". Calls are frequent, so the histogram is looked
// up once.
func (m *Metrics) ObserveFabric(call string) func(took time.Duration) {
	h := m.fabric.WithLabelValues(call)
	return func(took time.Duration) { h.Observe(took.Seconds()) }
}

// BackedUp counts a backup that began at the given time.
func (m *Metrics) BackedUp(at time.Time, err error) {
	if err != nil {
		m.backups.WithLabelValues("failed").Inc()
		return
	}
	m.backups.WithLabelValues("ok").Inc()
	m.LastBackup(at)
}

// LastBackup sets the time of the newest successful backup, which an earlier run of the server may have made.
func (m *Metrics) LastBackup(at time.Time) { m.backedUp.Set(float64(at.UnixMilli()) / 1000) }

// AuditExported says how far an export of the audit is. name is a word of the program.
func (m *Metrics) AuditExported(name string, row int64, lag time.Duration, err error) {
	m.exportRow.WithLabelValues(name).Set(float64(row))
	m.exportLag.WithLabelValues(name).Set(lag.Seconds())
	failed := m.exportFailed.WithLabelValues(name)
	if err != nil {
		failed.Inc()
	}
}

// Notified counts a try to deliver a message of alerts. Both are words of the program.
func (m *Metrics) Notified(kind, result string) { m.notified.WithLabelValues(kind, result).Inc() }

// NotificationsWaiting says how many messages of alerts wait, by the kind of receiver.
func (m *Metrics) NotificationsWaiting(waiting map[string]int) {
	for kind, n := range waiting {
		m.notifyWaiting.WithLabelValues(kind).Set(float64(n))
	}
}

// RecordLost says why the record is lost, or that it is not ("").
func (m *Metrics) RecordLost(reason string) {
	if reason == "" {
		m.lost.Set(0)
		return
	}
	m.lost.Set(1)
}

// RecordChecked says how many pages of the record were found damaged when all of them were compared.
func (m *Metrics) RecordChecked(at time.Time, damaged int) {
	m.damaged.Set(float64(damaged))
	m.checked.Set(float64(at.UnixMilli()) / 1000)
}

const (
	rollupNamespaces = 200             // with counts of their own
	rollupFor        = 2 * time.Second // scrapes within this time get the same counts
)

// Fleet has the sizes of the fleet. They are read when the metrics are.
type Fleet interface {
	Rollup(namespaces int) fleet.Rollup
	Unwritable() int // hosts whose agent cannot write its state folder
	Dropped() uint64
}

// Watch adds the sizes of the fleet and the counts of the fabric. Both are read when the metrics are. It must be called
// at most once; fabric may be nil.
func (m *Metrics) Watch(fleet Fleet, fabric func() gozzard.FabricCounts) {
	m.registry.MustRegister(&fleetCollector{
		fleet: fleet, fabric: fabric,
		hosts: prometheus.NewDesc("gozzard_hosts", "Hosts: online, offline without a process that should run, or lost: "+
			"offline with a process that should run.", []string{"state"}, nil),
		folded: prometheus.NewDesc("gozzard_processes_folded_namespaces",
			"Namespaces that are counted under another name, because there are too many.", nil, nil),
		agents: prometheus.NewDesc("gozzard_agents", "Agents, by whether they are online.", []string{"online"}, nil),
		unwritable: prometheus.NewDesc("gozzard_agents_state_unwritable",
			"Agents that cannot write their state folder: they supervise, but cannot record.", nil, nil),
		rows: prometheus.NewDesc("gozzard_processes", "Processes, by namespace, wanted state, state and health.",
			[]string{"namespace", "wanted", "state", "health"}, nil),
		left: prometheus.NewDesc("gozzard_live_rows_left_out_total", "Reported processes that were dropped: their key is invalid, or their host has too many.", nil,
			nil),
		messages: prometheus.NewDesc("gozzard_fabric_messages_total",
			"Messages of the fabric, by kind or by the reason why they were dropped.", []string{"what"}, nil),
	})
}

// WatchLive adds the sizes of the live data. They are read when the metrics are. It must be called at most once.
func (m *Metrics) WatchLive(hub *live.Hub) {
	gauge := func(name, help string, read func(c live.Counts) float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Namespace: "gozzard", Name: name, Help: help},
			func() float64 { return read(hub.Counts()) })
	}
	counter := func(name, help string, read func(c live.Counts) float64) prometheus.Collector {
		return prometheus.NewCounterFunc(prometheus.CounterOpts{Namespace: "gozzard", Name: name, Help: help},
			func() float64 { return read(hub.Counts()) })
	}

	m.registry.MustRegister(
		gauge("live_viewers", "Viewers of the live data.", func(c live.Counts) float64 { return float64(c.Viewers) }),
		gauge("live_audiences", "Groups of viewers with equal rights, also those that wait for viewers to come back.",
			func(c live.Counts) float64 { return float64(c.Audiences) }),
		counter("live_encoded_bytes_total", "Bytes of changes that were encoded, once for each group of viewers.",
			func(c live.Counts) float64 { return float64(c.Encoded) }),
		counter("live_sent_bytes_total", "Bytes of changes that were sent to viewers.",
			func(c live.Counts) float64 { return float64(c.Sent) }))
}

// fleetCollector reads the sizes and counts when the metrics are read.
type fleetCollector struct {
	fleet                                    Fleet
	fabric                                   func() gozzard.FabricCounts
	agents, unwritable, rows, left, messages *prometheus.Desc
	hosts, folded                            *prometheus.Desc

	mu     sync.Mutex
	rollup fleet.Rollup
	at     time.Time // of rollup
}

// Describe lists the metrics of Collect.
func (c *fleetCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.agents, c.unwritable, c.rows, c.left, c.messages, c.hosts, c.folded} {
		ch <- d
	}
}

// sum is the present sum of the fleet, or one that was made a moment ago.
func (c *fleetCollector) sum() fleet.Rollup {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.at) > rollupFor {
		c.rollup, c.at = c.fleet.Rollup(rollupNamespaces), time.Now()
	}
	return c.rollup
}

// Collect reads the sizes and counts.
func (c *fleetCollector) Collect(ch chan<- prometheus.Metric) {
	put := func(d *prometheus.Desc, t prometheus.ValueType, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, t, v, labels...)
	}

	sum := c.sum()
	put(c.agents, prometheus.GaugeValue, float64(sum.Online), "true")
	put(c.agents, prometheus.GaugeValue, float64(sum.Offline+sum.Lost), "false")
	put(c.hosts, prometheus.GaugeValue, float64(sum.Online), "online")
	put(c.hosts, prometheus.GaugeValue, float64(sum.Offline), "offline")
	put(c.hosts, prometheus.GaugeValue, float64(sum.Lost), "lost")
	put(c.folded, prometheus.GaugeValue, float64(sum.Folded))
	put(c.unwritable, prometheus.GaugeValue, float64(c.fleet.Unwritable()))
	for _, p := range sum.Processes {
		wanted := gozzard.StateStopped
		if p.Wanted {
			wanted = gozzard.StateRunning
		}
		put(c.rows, prometheus.GaugeValue, float64(p.N), strings.ToValidUTF8(p.Namespace, "\uFFFD"), wanted.String(),
			p.Condition.String(), cmp.Or(p.Health.String(), "none"))
	}

	put(c.left, prometheus.CounterValue, float64(c.fleet.Dropped()))

	if c.fabric == nil {
		return
	}

	f := c.fabric()
	for what, n := range map[string]uint64{"sent": f.Sent, "results": f.Results, "statuses": f.Statuses,
		"dropped": f.Dropped, "malformed": f.Malformed, "newer": f.Newer, "flooded": f.Flooded} {
		put(c.messages, prometheus.CounterValue, float64(n), what)
	}
}

func codeLabel(code gozzard.Code) string {
	switch code {
	case gozzard.CodeOK, gozzard.CodeAlreadyRunning, gozzard.CodeNotRunning, gozzard.CodeCheckFailed,
		gozzard.CodeCommandFailed, gozzard.CodeNoDefinition,
		gozzard.CodeRefused, gozzard.CodeUnknownAction, gozzard.CodeAlreadyRegistered, gozzard.CodeUnreachable,
		gozzard.CodeInterrupted,
		gozzard.CodeSuperseded, gozzard.CodeExpired, gozzard.CodeCancelled, gozzard.CodeBusy:
		return string(code)
	case "":
		return "none"
	}
	return "other"
}
