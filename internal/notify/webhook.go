package notify

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/gozzard/gozzard/internal/record"
)

// The headers of a webhook. The signature is the HMAC-SHA256 of the timestamp, a point and the body.
const (
	HeaderTimestamp = "Gozzard-Timestamp"
	HeaderSignature = "Gozzard-Signature"
	HeaderMessage   = "Gozzard-Message" // the id of the message: the same when it is sent again
)

// webhook posts messages in the format of Alertmanager's webhooks, version 4.
type webhook struct {
	r    *record.Receiver
	w    *words
	http *http.Client
	now  func() time.Time
}

func newWebhook(e *Engine, r *record.Receiver) (sink, error) {
	c, err := e.dial.client(r.Settings.CA)
	if err != nil {
		return nil, err
	}
	return &webhook{r: r, w: e.wordsOf(r.Settings.Language), http: c, now: e.o.Now}, nil
}

func (h *webhook) Close() { h.http.CloseIdleConnections() }

func (h *webhook) Repeat(context.Context, []Message) error { return nil }

// hookBody is the body of Alertmanager's webhooks.
type hookBody struct {
	Version           string            `json:"version"`
	GroupKey          string            `json:"groupKey"`
	TruncatedAlerts   int               `json:"truncatedAlerts"`
	Status            string            `json:"status"`
	Receiver          string            `json:"receiver"`
	GroupLabels       map[string]string `json:"groupLabels"`
	CommonLabels      map[string]string `json:"commonLabels"`
	CommonAnnotations map[string]string `json:"commonAnnotations"`
	ExternalURL       string            `json:"externalURL"`
	Alerts            []hookAlert       `json:"alerts"`
}

// hookAlert is an alert in such a body.
type hookAlert struct {
	Status       string            `json:"status"`
	Labels       map[string]string `json:"labels"`
	Annotations  map[string]string `json:"annotations"`
	StartsAt     time.Time         `json:"startsAt"`
	EndsAt       time.Time         `json:"endsAt"` // the year 1 while it fires, as Alertmanager writes it
	GeneratorURL string            `json:"generatorURL"`
	Fingerprint  string            `json:"fingerprint"`
}

// newHookBody renders a message.
func newHookBody(w *words, r *record.Receiver, m *Message) hookBody {
	b := hookBody{Version: "4", GroupKey: "{}:" + labelText(m.Group), TruncatedAlerts: m.LeftOut(), Status: m.Status(), Receiver: r.Name,
		GroupLabels: m.Group, Alerts: []hookAlert{}}
	if b.GroupLabels == nil {
		b.GroupLabels = map[string]string{}
	}
	for i := range m.Alerts {
		a := &m.Alerts[i]
		x := hookAlert{Status: "firing", Labels: labelsOf(a, m.Name), Annotations: annotationsOf(w, a),
			StartsAt: a.Starts, EndsAt: a.Ends, Fingerprint: a.Fingerprint}
		if !a.Firing() {
			x.Status = "resolved"
		}
		b.Alerts = append(b.Alerts, x)
		b.CommonLabels = common(b.CommonLabels, x.Labels, i == 0)
		b.CommonAnnotations = common(b.CommonAnnotations, x.Annotations, i == 0)
	}
	if len(m.Alerts) == 0 {
		b.CommonLabels, b.CommonAnnotations = map[string]string{}, map[string]string{}
	}
	return b
}

// common is what two sets have in common; of the first one everything.
func common(all, next map[string]string, first bool) map[string]string {
	out := map[string]string{}
	for k, v := range next {
		if first || all[k] == v {
			out[k] = v
		}
	}
	return out
}

// labelText is a set of labels as Alertmanager writes it, the keys in order.
func labelText(labels map[string]string) string {
	text := "{"
	for i, k := range sortedKeys(labels) {
		if i > 0 {
			text += ", "
		}
		text += k + "=" + strconv.Quote(labels[k])
	}
	return text + "}"
}

// Send posts a message.
func (h *webhook) Send(ctx context.Context, m *Message) error {
	body, err := json.Marshal(newHookBody(h.w, h.r, m))
	if err != nil {
		return rejected{fmt.Errorf("cannot encode the message: %w", err)}
	}
	req, err := post(ctx, h.r, h.r.Settings.URL, body)
	if err != nil {
		return err
	}
	req.Header.Set(HeaderMessage, m.ID)
	if h.r.Settings.Secret != "" {
		at := strconv.FormatInt(h.now().Unix(), 10)
		req.Header.Set(HeaderTimestamp, at)
		req.Header.Set(HeaderSignature, "sha256="+sign([]byte(h.r.Settings.Secret), at, body))
	}
	_, err = do(h.http, req)
	return err
}

// post makes a request with a body of JSON.
func post(ctx context.Context, r *record.Receiver, url string, body []byte) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("cannot make a request to the receiver: %w", withoutURL(err))
	}
	req.Header.Set("Content-Type", "application/json")
	if r.Settings.Authorization != "" {
		req.Header.Set("Authorization", r.Settings.Authorization)
	}
	return req, nil
}

// sign is the signature of a body, in hexadecimal.
func sign(secret []byte, timestamp string, body []byte) string {
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(timestamp + "."))
	mac.Write(body)
	return hex.EncodeToString(mac.Sum(nil))
}
