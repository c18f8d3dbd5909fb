package otlp

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	resourcepb "go.opentelemetry.io/proto/slim/otlp/resource/v1"
	"google.golang.org/protobuf/proto"
)

// The limits of one request. The collector decides nothing about them.
const (
	requestTime = 10 * time.Second
	maxAnswer   = 64 << 10         // bytes of an answer that are read
	maxWait     = time.Minute      // that a collector may ask for
	firstPause  = time.Second      // before a request is sent again
	longPause   = 30 * time.Second // the longest of those pauses
)

// Options say where the collector is and what sends to it. Endpoint and Service are required.
type Options struct {
	Endpoint    string // URL; the path of the signal, such as /v1/traces, is added
	HeadersFile string // with headers of every request, which may be secrets: only its owner may read it; "": none
	CA          string // file of the authorities that sign the certificate of the collector; "": those of the system

	Service string // "gozzard" for a server, "gozzard-agent" for an agent
	Version string // of this program

	Log *slog.Logger
	Now func() time.Time // nil: time.Now
}

// Client posts to a collector.
type Client struct {
	o        Options
	base     string
	headers  http.Header
	http     *http.Client
	resource *resourcepb.Resource
}

// New makes a Client. It does not connect.
func New(o Options) (*Client, error) {
	u, err := url.Parse(o.Endpoint)
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" ||
		u.Scheme != "https" && u.Scheme != "http" {
		return nil, errors.New("--otlp-endpoint: use a URL without a password, such as https://collector.example.com:4318")
	}
	if u.Scheme == "http" && !loopback(u.Hostname()) {
		return nil, fmt.Errorf("--otlp-endpoint %s: use https beyond this machine", o.Endpoint)
	}
	headers, err := readHeaders(o.HeadersFile)
	if err != nil {
		return nil, fmt.Errorf("--otlp-headers-file: %w", err)
	}
	pool, err := authorities(o.CA)
	if err != nil {
		return nil, fmt.Errorf("--otlp-ca: %w", err)
	}
	if o.Now == nil {
		o.Now = time.Now
	}

	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	transport.MaxResponseHeaderBytes = maxAnswer
	transport.MaxIdleConnsPerHost = 2
	return &Client{o: o, base: strings.TrimRight(o.Endpoint, "/"), headers: headers, resource: o.resource(),
		http: &http.Client{Transport: transport, Timeout: requestTime,
			// the headers are for one place only
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}, nil
}

// resource says what sends.
func (o *Options) resource() *resourcepb.Resource {
	host, _ := os.Hostname() // "" is as good as an error
	return &resourcepb.Resource{Attributes: keyValues([]Attr{
		String("service.name", o.Service), String("service.version", o.Version), String("host.name", host)})}
}

// Identify adds which server or agent sends. It must be called before anything is sent.
func (c *Client) Identify(instance string) {
	c.resource.Attributes = append(c.resource.Attributes, keyValues([]Attr{String("service.instance.id", instance)})...)
}

// Close closes idle connections.
func (c *Client) Close() error {
	c.http.CloseIdleConnections()
	return nil
}

// postError is an answer other than success.
type postError struct {
	err   error
	again bool          // a later try may succeed
	wait  time.Duration // that the collector asks for; 0: none
}

func (e *postError) Error() string { return e.err.Error() }
func (e *postError) Unwrap() error { return e.err }

// post sends a message once. answer is read if the collector sends one.
func (c *Client) post(ctx context.Context, path string, message, answer proto.Message) error {
	// Make the request.
	b, err := proto.Marshal(message)
	if err != nil {
		return &postError{err: fmt.Errorf("cannot encode for the collector: %w", err)}
	}
	var body bytes.Buffer
	z := gzip.NewWriter(&body)
	_, _ = z.Write(b) // a buffer takes everything
	_ = z.Close()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base+path, &body)
	if err != nil {
		return &postError{err: fmt.Errorf("cannot make a request to the collector: %w", err)}
	}
	for name, values := range c.headers {
		req.Header[name] = values
	}
	req.Header.Set("Content-Type", "application/x-protobuf")
	req.Header.Set("Content-Encoding", "gzip")
	req.Header.Set("User-Agent", "gozzard/"+c.o.Version)

	// Send it, and read no more of the answer than belongs to one.
	res, err := c.http.Do(req)
	if err != nil {
		return &postError{err: fmt.Errorf("cannot reach the collector: %w", err), again: true}
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode < 200 || res.StatusCode > 299 {
		_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, maxAnswer))
		return refused(res, c.o.Now())
	}
	return readAnswer(res, answer)
}

// refused is the error of an answer other than success. The text of the answer is not in it: it may be anything.
func refused(res *http.Response, now time.Time) error {
	e := &postError{err: fmt.Errorf("the collector answers %d %s", res.StatusCode, http.StatusText(res.StatusCode))}
	switch res.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		e.again = true
		after := res.Header.Get("Retry-After")
		if n, err := strconv.Atoi(after); err == nil && n > 0 {
			e.wait = min(time.Duration(min(n, 3600))*time.Second, maxWait)
		} else if at, err := http.ParseTime(after); err == nil {
			e.wait = min(max(at.Sub(now), 0), maxWait)
		}
	}
	return e
}

// readAnswer reads the answer of a success. What was sent is gone in any case, so no answer makes it be sent again.
func readAnswer(res *http.Response, answer proto.Message) error {
	b, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer+1))
	switch {
	case err != nil:
		return &postError{err: fmt.Errorf("cannot read the answer of the collector: %w", err)}
	case len(b) > maxAnswer:
		return &postError{err: fmt.Errorf("the answer of the collector is longer than %d bytes: is it a collector?", maxAnswer)}
	case strings.HasPrefix(res.Header.Get("Content-Type"), "application/json"):
		return nil // it is a collector that has no other form
	}
	if err := proto.Unmarshal(b, answer); err != nil {
		return &postError{err: errors.New("the answer is not one of a collector: check the address and its path")}
	}
	return nil
}

func loopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.Unmap().IsLoopback()
}

func authorities(file string) (*x509.CertPool, error) {
	if file == "" {
		return nil, nil
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(b) {
		return nil, fmt.Errorf("%s has no certificate in PEM", file)
	}
	return pool, nil
}
