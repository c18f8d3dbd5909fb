//go:build linux

package fleettest

import (
	"bytes"
	"compress/gzip"
	"encoding/hex"
	"encoding/pem"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	metricspb "go.opentelemetry.io/proto/slim/otlp/collector/metrics/v1"
	tracepb "go.opentelemetry.io/proto/slim/otlp/collector/trace/v1"
	spanpb "go.opentelemetry.io/proto/slim/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// Collector receives traces and metrics by OTLP, with the messages of the protocol's own library.
type Collector struct {
	*httptest.Server
	t testing.TB

	mu       sync.Mutex
	spans    []*spanpb.Span
	senders  []string // of the spans: the instance of each
	resource map[string]string
	metrics  []*metricspb.ExportMetricsServiceRequest
	headers  http.Header
	requests int
	held     int              // the number of a request that is held; 0: none is
	answer   http.HandlerFunc // instead of taking what comes; nil: it takes it
}

// StartCollector starts a collector on this machine.
func StartCollector(t testing.TB) *Collector {
	c := &Collector{t: t, resource: map[string]string{}}
	c.Server = httptest.NewServer(c)
	t.Cleanup(c.Close)
	return c
}

// StartCollectorAt is StartCollector at an address that is free.
func StartCollectorAt(t testing.TB, address string) *Collector {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	c := &Collector{t: t, resource: map[string]string{}}
	c.Server = httptest.NewUnstartedServer(c)
	_ = c.Listener.Close()
	c.Listener = l
	c.Start()
	t.Cleanup(c.Close)
	return c
}

// StartTLSCollector is StartCollector with TLS. It also returns a file with the authority of its certificate.
func StartTLSCollector(t testing.TB) (c *Collector, ca string) {
	t.Helper()
	c = &Collector{t: t, resource: map[string]string{}}
	c.Server = httptest.NewTLSServer(c)
	t.Cleanup(c.Close)
	ca = filepath.Join(t.TempDir(), "collector.pem")
	b := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Certificate().Raw})
	if err := os.WriteFile(ca, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return c, ca
}

// Answer sets what answers from now on instead of the collector; nil: the collector does.
func (c *Collector) Answer(h http.HandlerFunc) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answer = h
}

// ServeHTTP implements http.Handler.
func (c *Collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	c.requests++
	c.headers = r.Header.Clone()
	other := c.answer
	c.mu.Unlock()
	if other != nil {
		other(w, r)
		return
	}

	packed, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client was killed, or has given up
	}
	body, err := unpack(packed)
	if err != nil || r.Header.Get("Content-Type") != "application/x-protobuf" {
		c.t.Errorf("a request with the type %q: %v", r.Header.Get("Content-Type"), err)
	}
	switch r.URL.Path {
	case "/v1/traces":
		c.takeSpans(body)
	case "/v1/metrics":
		m := &metricspb.ExportMetricsServiceRequest{}
		if err := proto.Unmarshal(body, m); err != nil {
			c.t.Errorf("metrics cannot be read: %v", err)
		}
		c.mu.Lock()
		c.metrics = append(c.metrics, m)
		c.mu.Unlock()
	default:
		c.t.Errorf("a request for %s", r.URL.Path)
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
}

func unpack(b []byte) ([]byte, error) {
	z, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(z)
}

func (c *Collector) takeSpans(body []byte) {
	m := &tracepb.ExportTraceServiceRequest{}
	if err := proto.Unmarshal(body, m); err != nil {
		c.t.Errorf("spans cannot be read: %v", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range m.GetResourceSpans() {
		for _, a := range r.GetResource().GetAttributes() {
			c.resource[a.GetKey()] = a.GetValue().GetStringValue()
		}
		for _, s := range r.GetScopeSpans() {
			c.spans = append(c.spans, s.GetSpans()...)
			c.senders = append(c.senders, slices.Repeat([]string{c.resource["service.instance.id"]}, len(s.GetSpans()))...)
		}
	}
}

// Hold makes the collector answer nothing until release is called.
func (c *Collector) Hold() (release func()) {
	let := make(chan struct{})
	c.Answer(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // only then the server sees that the client gives up
		c.mu.Lock()
		mine := c.requests
		c.held = mine
		c.mu.Unlock()
		select {
		case <-let:
		case <-r.Context().Done():
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.held == mine {
			c.held = 0
		}
	})
	return sync.OnceFunc(func() { close(let) })
}

// WhileOneIsHeld acts, again and again, until it has acted from begin to end while one and the same request was held: so
// no act waits for the end of a request.
func (c *Collector) WhileOneIsHeld(act func()) {
	c.t.Helper()
	held := func() int {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.held
	}
	Until(c.t, 2*time.Minute, func() string { return "everything waits for the collector" }, func() bool {
		before := held()
		if before == 0 {
			return false
		}
		act()
		return held() == before
	})
}

// Requests counts the requests so far.
func (c *Collector) Requests() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.requests
}

// Header is a header of the last request.
func (c *Collector) Header(name string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.headers.Get(name)
}

// Resource says what sends.
func (c *Collector) Resource(name string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.resource[name]
}

// CollectedSpan is a span as tests look at it.
type CollectedSpan struct {
	Trace, ID, Parent, State string // in hexadecimal
	Name                     string
	Start, End               time.Time
	Attrs                    map[string]any
	Links                    []string // traces
	Failed                   bool
	Status                   string
	Server                   bool
	Sender                   string // the instance of the server that sent it
}

// Spans are all spans that came, of a trace or, with "", of all.
func (c *Collector) Spans(trace string) (list []CollectedSpan) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, s := range c.spans {
		if trace != "" && hex.EncodeToString(s.GetTraceId()) != trace {
			continue
		}
		o := CollectedSpan{Trace: hex.EncodeToString(s.GetTraceId()), ID: hex.EncodeToString(s.GetSpanId()),
			Parent: hex.EncodeToString(s.GetParentSpanId()), State: s.GetTraceState(), Name: s.GetName(),
			Start: time.Unix(0, int64(s.GetStartTimeUnixNano())), End: time.Unix(0, int64(s.GetEndTimeUnixNano())),
			Attrs: map[string]any{}, Failed: s.GetStatus().GetCode() == spanpb.Status_STATUS_CODE_ERROR,
			Status: s.GetStatus().GetMessage(), Server: s.GetKind() == spanpb.Span_SPAN_KIND_SERVER,
			Sender: c.senders[i]}
		for _, a := range s.GetAttributes() {
			switch v := a.GetValue(); {
			case v.GetStringValue() != "":
				o.Attrs[a.GetKey()] = v.GetStringValue()
			case v.GetBoolValue():
				o.Attrs[a.GetKey()] = true
			default:
				o.Attrs[a.GetKey()] = v.GetIntValue()
			}
		}
		for _, l := range s.GetLinks() {
			o.Links = append(o.Links, hex.EncodeToString(l.GetTraceId()))
		}
		list = append(list, o)
	}
	return list
}

// Await waits until a trace has a number of spans, and returns them by name.
func (c *Collector) Await(trace string, n int) map[string]CollectedSpan {
	c.t.Helper()
	Until(c.t, time.Minute, func() string {
		var b bytes.Buffer
		for _, s := range c.Spans("") {
			b.WriteString(s.Trace + " " + s.Name + "\n")
		}
		return "the trace " + trace + " is not complete; there is\n" + b.String()
	}, func() bool { return len(c.Spans(trace)) >= n })
	byName := map[string]CollectedSpan{}
	for _, s := range c.Spans(trace) {
		byName[s.Name] = s
	}
	return byName
}
