// Package client is the Go client of Gozzard's own HTTP API. Its types are also the ones that the server reads and
// answers with, so the two cannot differ.
//
//	c, err := client.New("http://127.0.0.1:8080", client.Credentials{AppCode: "my-app", AppSecret: secret, Username: "me"})
//	accepted, err := c.Operate(ctx, client.Operation{Action: "start", Selection: client.Selection{Namespace: "shop", Names: []string{"web"}, All: true}})
//	task, err := c.Wait(ctx, accepted.TaskID, nil)
//
// Errors of the server are *gozzard.Error; gozzard.KindOf gives their kind.
package client

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/gozzard/gozzard"
)

// Credentials identify a caller: an app, and the user that it acts for. The user is given by a token, or by name if
// the app may name users. A person without an app has only a token.
type Credentials struct {
	AppCode   string `json:"bk_app_code"`
	AppSecret string `json:"bk_app_secret"`
	Username  string `json:"bk_username,omitempty"`
	Token     string `json:"bk_token,omitempty"`

	// CA is the certificate authority of an https server, in PEM. If it is empty, the authorities of this system
	// are trusted.
	CA string `json:"-"`
}

// authorization is the header with the credentials of an app.
const authorization = "X-Bkapi-Authorization"

// Client sends requests to one server. It is safe for concurrent use.
type Client struct {
	base   *url.URL
	header string // credentials of an app
	bearer string // token of a person without an app
	http   *http.Client
}

// New makes a client. It never sends a secret unencrypted over a network: a URL of http must be on this machine.
func New(rawURL string, c Credentials) (*Client, error) {
	base, err := parseServerURL(rawURL)
	if err != nil {
		return nil, err
	}

	// Trust the authority of the credentials, or those of this system.
	var trust *tls.Config
	if c.CA != "" {
		trust = &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: x509.NewCertPool()}
		if !trust.RootCAs.AppendCertsFromPEM([]byte(c.CA)) {
			return nil, gozzard.Errorf(gozzard.ErrInvalid,
				"the certificate authority in the credentials is not a certificate in PEM")
		}
	}

	// Prepare the header that every request carries.
	header, err := json.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("cannot encode credentials: %w", err)
	}
	bearer := ""
	if c.AppCode == "" {
		bearer = c.Token
	}

	return &Client{base: base, header: asciiJSON(header), bearer: bearer, http: newHTTPClient(trust)}, nil
}

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// URL is the address of the server.
func (c *Client) URL() string { return c.base.String() }

// authorize adds the credentials to a request.
func (c *Client) authorize(req *http.Request) {
	if c.bearer != "" {
		req.Header.Set("Authorization", "Bearer "+c.bearer)
		return
	}
	req.Header.Set(authorization, c.header)
}

func newHTTPClient(trust *tls.Config) *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			DialContext:           (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
			TLSClientConfig:       trust,
			TLSHandshakeTimeout:   10 * time.Second,
			ResponseHeaderTimeout: 90 * time.Second, // longer than the longest poll
			MaxIdleConnsPerHost:   16,
			IdleConnTimeout:       90 * time.Second,
		},
		// Credentials are for one server, so a redirect is not followed.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

func parseServerURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.RawQuery != "" ||
		u.Fragment != "" {
		return nil, gozzard.Errorf(gozzard.ErrInvalid, "%q is not the URL of a server, such as http://127.0.0.1:8080",
			text)
	}

	if u.Scheme == "http" && !isLoopback(u.Hostname()) {
		return nil, gozzard.Errorf(gozzard.ErrInvalid,
			"%s would send the app's secret unencrypted: use https for a server on another machine", text)
	}

	u.Path = strings.TrimRight(u.Path, "/")
	return u, nil
}

func isLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}

// asciiJSON writes every character beyond ASCII as an escape, because a header can carry only ASCII.
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
