package agentd

import (
	"fmt"
	"time"

	"github.com/gozzard/gozzard/internal/otlp"
)

// PushOptions say which OpenTelemetry collector gets the metrics of the agent. Without an endpoint nothing is sent.
type PushOptions struct {
	Endpoint string // URL
	Headers  string // file with headers of the requests
	CA       string // file of authorities
	Every    time.Duration
}

// check rejects settings that cannot work.
func (o *PushOptions) check() error {
	if o.Endpoint != "" && (o.Every < otlp.MinPush || o.Every > otlp.MaxPush) {
		return fmt.Errorf("--otlp-metrics %s: use 1s to 24h", o.Every)
	}
	return nil
}

// openCollector checks where the metrics are pushed to. Like openListener it comes before anything else of the agent. It
// does not connect.
func (a *Agent) openCollector() (err error) {
	o := &a.options.Push
	if o.Endpoint == "" {
		return nil
	}
	if err := o.check(); err != nil {
		return err
	}
	a.collector, err = otlp.New(otlp.Options{Endpoint: o.Endpoint, HeadersFile: o.Headers, CA: o.CA,
		Service: "gozzard-agent", Version: a.options.Version, Log: a.options.Log})
	return err
}

// openPush makes what pushes the metrics.
func (a *Agent) openPush() error {
	if a.collector != nil {
		a.collector.Identify(string(a.id))
		a.push = otlp.NewMetrics(a.collector, a, a.options.Push.Every, a.metrics.Registry())
	}
	return nil
}
