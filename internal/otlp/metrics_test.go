package otlp_test

import (
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	collectorpb "go.opentelemetry.io/proto/slim/otlp/collector/metrics/v1"
	"google.golang.org/protobuf/proto"

	"github.com/gozzard/gozzard/internal/otlp"
)

// requests collects what a collector gets.
type requests struct {
	mu   sync.Mutex
	list []*collectorpb.ExportMetricsServiceRequest
	err  error
}

func (c *requests) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m, err := readMetrics(r.Body)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.list, c.err = append(c.list, m), err
	w.Header().Set("Content-Type", "application/x-protobuf")
}

func readMetrics(body io.Reader) (*collectorpb.ExportMetricsServiceRequest, error) {
	m := &collectorpb.ExportMetricsServiceRequest{}
	z, err := gzip.NewReader(body)
	if err != nil {
		return m, err
	}
	b, err := io.ReadAll(z)
	if err != nil {
		return m, err
	}
	return m, proto.Unmarshal(b, m)
}

// counts are how many points every request has, and how often each series came.
func (c *requests) counts() (points []int, series map[string]int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	series = map[string]int{}
	for _, r := range c.list {
		n := 0
		for _, m := range r.GetResourceMetrics()[0].GetScopeMetrics()[0].GetMetrics() {
			for _, p := range m.GetGauge().GetDataPoints() {
				n++
				series[m.GetName()+p.GetAttributes()[0].GetValue().GetStringValue()]++
			}
		}
		points = append(points, n)
	}
	return points, series, c.err
}

// firstOnly gathers the metrics of a registry for the first push only.
func firstOnly(r *prometheus.Registry) prometheus.Gatherer {
	gathered := false
	return prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) {
		if gathered {
			return nil, nil
		}
		gathered = true
		return r.Gather()
	})
}

// TestPushOfManySeries: families with many series are divided among requests of a bounded size, and each series comes once.
func TestPushOfManySeries(t *testing.T) {
	registry := prometheus.NewRegistry()
	want := 0
	for name, n := range map[string]int{"a": 1, "b": 12_001, "c": 3, "d": 4999, "e": 5000} {
		v := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name}, []string{"name"})
		for i := range n {
			v.WithLabelValues(fmt.Sprint(i)).Set(1)
		}
		registry.MustRegister(v)
		want += n
	}
	c := &requests{}
	server := httptest.NewServer(c)
	defer server.Close()
	client, err := otlp.New(otlp.Options{Endpoint: server.URL, Service: "test", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()

	// Push once: later pushes have nothing to send.
	ctx, cancel := context.WithCancel(t.Context())
	own := prometheus.NewRegistry()
	pushed := make(chan error, 1)
	go func() { pushed <- otlp.NewMetrics(client, firstOnly(registry), time.Second, own).Run(ctx) }()
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if families, err := own.Gather(); err == nil && len(families) == 1 && families[0].GetMetric()[1].GetCounter().GetValue() > 0 {
			break
		}
		if time.Now().After(end) {
			t.Fatal("no push has ended")
		}
	}
	cancel()
	if err := <-pushed; err != nil {
		t.Error(err)
	}

	points, series, err := c.counts()
	if err != nil {
		t.Fatal(err)
	}
	total := 0
	for _, n := range points {
		if total += n; n > 5000 || n == 0 {
			t.Errorf("a request has %d points", n)
		}
	}
	if total != want || len(series) != want {
		t.Errorf("%d points of %d series came, expected %d: %v", total, len(series), want, points)
	}
}
