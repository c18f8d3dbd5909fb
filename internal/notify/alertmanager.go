package notify

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/gozzard/gozzard/internal/record"
)

// How Alertmanager learns about alerts. It takes an alert as resolved at its end, so one that fires has an end that every
// repetition moves, as Prometheus does it.
const (
	managerEnd    = 4 * beatEvery
	managerMoment = 5 * time.Minute // how long something without an end fires there
	managerBatch  = 500             // alerts in one request
)

// alertmanager posts alerts to Alertmanager itself.
type alertmanager struct {
	r    *record.Receiver
	w    *words
	http *http.Client
	now  func() time.Time
}

func newAlertmanager(e *Engine, r *record.Receiver) (sink, error) {
	c, err := e.dial.client(r.Settings.CA)
	if err != nil {
		return nil, err
	}
	return &alertmanager{r: r, w: e.wordsOf(r.Settings.Language), http: c, now: e.o.Now}, nil
}

func (h *alertmanager) Close() { h.http.CloseIdleConnections() }

// managerAlert is an alert as POST /api/v2/alerts has it.
type managerAlert struct {
	Labels       map[string]string `json:"labels"`
	Annotations  map[string]string `json:"annotations"`
	StartsAt     time.Time         `json:"startsAt"`
	EndsAt       time.Time         `json:"endsAt"`
	GeneratorURL string            `json:"generatorURL,omitempty"`
}

// Send posts the alerts of a message.
func (h *alertmanager) Send(ctx context.Context, m *Message) error { return h.post(ctx, []Message{*m}) }

// Repeat posts all alerts that fire.
func (h *alertmanager) Repeat(ctx context.Context, firing []Message) error {
	return h.post(ctx, firing)
}

func (h *alertmanager) post(ctx context.Context, list []Message) error {
	var alerts []managerAlert
	now := h.now()
	for i := range list {
		for j := range list[i].Alerts {
			a := &list[i].Alerts[j]
			end := a.Ends
			switch {
			case a.Moment:
				end = a.Starts.Add(managerMoment)
			case a.Firing():
				end = now.Add(managerEnd)
			}
			alerts = append(alerts, managerAlert{Labels: labelsOf(a, list[i].Name), Annotations: annotationsOf(h.w, a),
				StartsAt: a.Starts, EndsAt: end})
		}
	}

	for from := 0; from < len(alerts); from += managerBatch {
		body, err := json.Marshal(alerts[from:min(from+managerBatch, len(alerts))])
		if err != nil {
			return rejected{fmt.Errorf("cannot encode the alerts: %w", err)}
		}
		req, err := post(ctx, h.r, strings.TrimSuffix(h.r.Settings.URL, "/")+"/api/v2/alerts", body)
		if err != nil {
			return err
		}
		if _, err := do(h.http, req); err != nil {
			return err
		}
	}
	return nil
}
