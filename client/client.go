// Package client is the Go client of Gozzard's own HTTP API.
//
//	c, err := client.New("http://127.0.0.1:8080", client.Credentials{AppCode: "my-app", AppSecret: secret, Username: "me"})
//	accepted, err := c.Operate(ctx, client.Operation{Action: "start", Selection: client.Selection{Namespace: "shop", Names: []string{"web"}, All: true}})
//	task, err := c.Wait(ctx, accepted.TaskID, nil)
//
// Errors of the server are *gozzard.Error; gozzard.KindOf tells what can be done about them.
package client

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/gozzard/gozzard"
)

// maxAnswer bounds what is read of one answer: the attempts of the largest task fit.
const maxAnswer = 256 << 20

// Credentials say who is asking: an app, and the user it asks for, by a token or by name where the app may do that.
// A person without an app has a token only.
type Credentials struct {
	AppCode   string `json:"bk_app_code"`
	AppSecret string `json:"bk_app_secret"`
	Username  string `json:"bk_username,omitempty"`
	Token     string `json:"bk_token,omitempty"`

	// CA is the authority, in PEM, that an https server must have its certificate from; "": those that this system
	// trusts.
	CA string `json:"-"`
}

// Client talks to one server. It is safe for concurrent use.
type Client struct {
	base   *url.URL
	header string
	bearer string // of a person without an app
	http   *http.Client
}

// authorize says who is asking.
func (c *Client) authorize(req *http.Request) {
	if c.bearer != "" {
		req.Header.Set("Authorization", "Bearer "+c.bearer)
		return
	}
	req.Header.Set("X-Bkapi-Authorization", c.header)
}

// New makes a client. The secret is not sent in the clear: a URL of http must be on this machine.
func New(rawURL string, c Credentials) (*Client, error) {
	u, err := url.Parse(rawURL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.RawQuery != "" ||
		u.Fragment != "" {
		return nil, gozzard.Errorf(gozzard.ErrInvalid, "%q is not the URL of a server, such as http://127.0.0.1:8080",
			rawURL)
	}

	if u.Scheme == "http" && !isLoopback(u.Hostname()) {
		return nil, gozzard.Errorf(gozzard.ErrInvalid,
			"%s would carry the app's secret in the clear: use https beyond this machine", rawURL)
	}

	u.Path = strings.TrimRight(u.Path, "/")
	var trust *tls.Config

	if c.CA != "" {
		trust = &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: x509.NewCertPool()}
		if !trust.RootCAs.AppendCertsFromPEM([]byte(c.CA)) {
			return nil, gozzard.Errorf(gozzard.ErrInvalid, "the authority in the credentials is no certificate in PEM")
		}
	}

	header, err := json.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("cannot encode credentials: %w", err)
	}

	bearer := ""

	if c.AppCode == "" {
		bearer = c.Token
	}

	return &Client{base: u, header: asciiJSON(header), bearer: bearer, http: &http.Client{
		Transport: &http.Transport{
			DialContext:           (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
			TLSClientConfig:       trust,
			TLSHandshakeTimeout:   10 * time.Second,
			ResponseHeaderTimeout: 90 * time.Second, // above the longest poll
			MaxIdleConnsPerHost:   16,
			IdleConnTimeout:       90 * time.Second,
		},
		// credentials go to one server only
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// Close ends idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// URL is the server's.
func (c *Client) URL() string { return c.base.String() }

func isLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}

// asciiJSON writes JSON with escapes only: a header carries no other characters.
func asciiJSON(b []byte) string {
	var out strings.Builder
	for _, r := range string(b) {
		switch {
		case r < 0x7f:
			out.WriteRune(r)
		case r > 0xffff:
			r -= 0x10000
			fmt.Fprintf(&out, `\u%04x\u%04x`, 0xd800+(r>>10), 0xdc00+(r&0x3ff))
		default:
			fmt.Fprintf(&out, `\u%04x`, r)
		}
	}

	return out.String()
}

// retries are the pauses before a request that got no answer is sent again.
func retries() []time.Duration {
	return []time.Duration{200 * time.Millisecond, time.Second, 2 * time.Second}
}

// change sends a request that makes a task. Without an answer nobody knows whether it was accepted, so it carries a
// key and is repeated with it: the server makes one task of all.
func (c *Client) change(ctx context.Context, method, path, key string, in any) (Accepted, error) {
	body, err := json.Marshal(in)
	if err != nil {
		return Accepted{}, fmt.Errorf("cannot encode the request: %w", err)
	}
	if key == "" {
		var b [16]byte
		_, _ = rand.Read(b[:]) // never fails since Go 1.24: it ends the program instead
		key = hex.EncodeToString(b[:])
	}

	var out Accepted
	for _, pause := range append(retries(), -1) {
		err = c.do(ctx, call{method: method, path: path, key: key, body: body}, &out)
		if gozzard.KindOf(err) != gozzard.ErrUnavailable || err == nil || pause < 0 {
			break
		}
		select {
		case <-ctx.Done():
			return Accepted{}, ctx.Err()
		case <-time.After(pause):
		}
	}

	return out, err
}

// get reads something. It is not repeated: whoever polls asks again anyway.
func (c *Client) get(ctx context.Context, path string, q url.Values, out any) error {
	if len(q) > 0 {
		path += "?" + q.Encode()
	}
	return c.do(ctx, call{method: http.MethodGet, path: path}, out)
}

// call is one request. What is sent and wanted is JSON unless it says otherwise.
type call struct {
	method, path string
	key          string // Idempotency-Key
	body         []byte
	kind, accept string
}

// send gives the answer to a call as it is.
func (c *Client) send(ctx context.Context, what call) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, what.method, c.base.String()+what.path, bytes.NewReader(what.body))
	if err != nil {
		return nil, fmt.Errorf("cannot make the request: %w", err)
	}

	const asJSON = "application/json"
	c.authorize(req)
	req.Header.Set("Accept", cmp.Or(what.accept, asJSON))

	if what.body != nil {
		req.Header.Set("Content-Type", cmp.Or(what.kind, asJSON))
	}
	if what.key != "" {
		req.Header.Set("Idempotency-Key", what.key)
	}

	res, err := c.http.Do(req)
	if err != nil {
		return nil, c.transportError(ctx, err)
	}

	defer res.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer+1))
	switch {
	case err != nil:
		return nil, c.transportError(ctx, err)
	case len(answer) > maxAnswer:
		return nil, gozzard.Errorf(gozzard.ErrInternal, "the answer of %s has more than %d MiB", c.base.Host,
			maxAnswer>>20)
	case res.StatusCode >= 300:
		return nil, errorOf(res.StatusCode, answer)
	}

	return answer, nil
}

func (c *Client) do(ctx context.Context, what call, out any) error {
	answer, err := c.send(ctx, what)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(answer, out); err != nil {
		return &gozzard.Error{Kind: gozzard.ErrInternal,
			Message: fmt.Sprintf("%s does not answer like a gozzard server", c.base.Host), Cause: err}
	}
	return nil
}

func (c *Client) transportError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err // without the URL, which is said already
	}
	return &gozzard.Error{Kind: gozzard.ErrUnavailable, Message: "no answer from " + c.base.String(), Cause: err}
}

// errorOf makes the error that an answer tells of. What is not of this API, such as a proxy's page, is told by its
// status.
func errorOf(status int, answer []byte) error {
	var body struct {
		Error struct {
			Kind      gozzard.ErrorKind `json:"kind"`
			Message   string            `json:"message"`
			Faults    []gozzard.Fault   `json:"faults"`
			RequestID string            `json:"request_id"`
		} `json:"error"`
	}
	if err := json.Unmarshal(answer, &body); err == nil && body.Error.Kind != "" {
		e := &gozzard.Error{Kind: body.Error.Kind, Message: body.Error.Message, Faults: body.Error.Faults}
		if e.Kind == gozzard.ErrInternal && body.Error.RequestID != "" {
			e.Message += " " + body.Error.RequestID
		}
		return e
	}

	kind := gozzard.ErrInternal
	switch status {
	case http.StatusUnauthorized:
		kind = gozzard.ErrUnauthenticated
	case http.StatusForbidden:
		kind = gozzard.ErrUserForbidden
	case http.StatusNotFound:
		kind = gozzard.ErrNotFound
	case http.StatusTooManyRequests:
		kind = gozzard.ErrRateLimited
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		kind = gozzard.ErrUnavailable
	}

	return gozzard.Errorf(kind, "the server answers %d %s", status, http.StatusText(status))
}
