package auditexport

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"time"
)

// Webhook posts rows to a URL. Any answer from 200 to 299 acknowledges them.
type Webhook struct {
	url    string
	secret []byte
	http   *http.Client
	now    func() time.Time
}

// The headers of a request. The signature is the HMAC-SHA256 of the timestamp, a point and the body.
const (
	HeaderTimestamp = "Gozzard-Audit-Timestamp"
	HeaderSignature = "Gozzard-Audit-Signature"
)

// minSecret is the shortest secret: shorter ones can be guessed from one request.
const minSecret = 16

// WebhookOptions say where the receiver is.
type WebhookOptions struct {
	URL    string
	Secret []byte
	CA     string // file of the authorities that sign its certificate; "": those of the system
}

// NewWebhook makes a Webhook. Rows go over plain HTTP to this machine only.
func NewWebhook(o WebhookOptions) (*Webhook, error) {
	u, err := url.Parse(o.URL)
	if err != nil || u.Host == "" || u.User != nil || u.Scheme != "https" && u.Scheme != "http" {
		return nil, fmt.Errorf("--audit-webhook %q: use a URL such as https://siem.example.com/gozzard", o.URL)
	}
	if u.Scheme == "http" && !loopback(u.Hostname()) {
		return nil, fmt.Errorf("--audit-webhook %s: use https beyond this machine", o.URL)
	}
	if o.Secret = bytes.TrimSpace(o.Secret); len(o.Secret) < minSecret {
		return nil, fmt.Errorf("--audit-webhook-secret-file: the secret must have at least %d bytes", minSecret)
	}
	pool, err := authorities(o.CA)
	if err != nil {
		return nil, fmt.Errorf("--audit-webhook-ca: %w", err)
	}

	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	return &Webhook{url: o.URL, secret: o.Secret, now: time.Now, http: &http.Client{Transport: transport,
		Timeout: 30 * time.Second,
		// the rows go to one place only
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}, nil
}

func loopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.Unmap().IsLoopback()
}

// Close closes idle connections.
func (h *Webhook) Close() error {
	h.http.CloseIdleConnections()
	return nil
}

// Send posts a batch.
func (h *Webhook) Send(ctx context.Context, list []Message) error {
	// Make the body.
	var b bytes.Buffer
	b.WriteString(`{"rows":[`)
	for i := range list {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(list[i].JSON)
	}
	b.WriteString("]}\n")

	// Sign and send it.
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, h.url, bytes.NewReader(b.Bytes()))
	if err != nil {
		return fmt.Errorf("cannot make a request to the webhook: %w", err)
	}
	at := strconv.FormatInt(h.now().Unix(), 10)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set(HeaderTimestamp, at)
	req.Header.Set(HeaderSignature, "sha256="+Sign(h.secret, at, b.Bytes()))
	res, err := h.http.Do(req)
	if err != nil {
		return fmt.Errorf("cannot reach the webhook: %w", err)
	}

	// Read the answer, so that the connection can be used again.
	defer func() { _ = res.Body.Close() }()
	_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, 64<<10))
	if res.StatusCode < 200 || res.StatusCode > 299 {
		return fmt.Errorf("the webhook answers %s", res.Status)
	}
	return nil
}

// Sign is the signature of a body, in hexadecimal.
func Sign(secret []byte, timestamp string, body []byte) string {
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(timestamp + "."))
	mac.Write(body)
	return hex.EncodeToString(mac.Sum(nil))
}
