package client

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/gozzard/gozzard"
)

// Release is one that was published on the server.
type Release struct {
	Version   string        `json:"version"`
	Created   time.Time     `json:"created"`
	Expires   time.Time     `json:"expires"`
	Published time.Time     `json:"published"`
	By        string        `json:"by"`
	Files     []ReleaseFile `json:"files"`
}

// ReleaseFile is the program of a release for one platform.
type ReleaseFile struct {
	Platform string `json:"platform"`
	Name     string `json:"name"`
	Size     int64  `json:"size"`
	SHA256   string `json:"sha256"`
	Missing  bool   `json:"missing"` // not uploaded yet
}

// Roll is a release on its way to hosts.
type Roll struct {
	ID       int64      `json:"id"`
	Version  string     `json:"version"`
	Stages   []int      `json:"stages"`
	State    string     `json:"state"` // waiting, running, done, stopped
	Reason   string     `json:"reason,omitempty"`
	Created  time.Time  `json:"created"`
	Changed  time.Time  `json:"changed"`
	By       string     `json:"by"`
	Approved string     `json:"approved,omitempty"`
	Hosts    []RollHost `json:"hosts"`
}

// RollHost is one host of a roll.
type RollHost struct {
	Agent  gozzard.AgentID `json:"agent"`
	Stage  int             `json:"stage"` // percent
	State  string          `json:"state"` // waiting, asked, done, offline, skipped, failed
	Reason string          `json:"reason,omitempty"`
}

// NewRoll is a roll as somebody wants it: in rising percents, on the enrolled hosts that are named or on all that
// are online.
type NewRoll struct {
	Version string            `json:"version"`
	Stages  []int             `json:"stages,omitempty"`
	Agents  []gozzard.AgentID `json:"agents,omitempty"`
}

// Releases lists what was published, newest first.
func (c *Client) Releases(ctx context.Context) ([]Release, error) {
	var out struct {
		Releases []Release `json:"releases"`
	}
	err := c.get(ctx, "/api/v1/releases", nil, &out)
	return out.Releases, err
}

// Publish tells the server of a release. Its programs that are Missing are to be uploaded.
func (c *Client) Publish(ctx context.Context, manifest, signature []byte) (r Release, err error) {
	err = c.write(ctx, http.MethodPost, "/api/v1/releases",
		map[string][]byte{"manifest": manifest, "signature": signature}, &r)
	return r, err
}

// UploadRelease sends a program of a release that was published.
func (c *Client) UploadRelease(ctx context.Context, version string, f ReleaseFile, from io.Reader) error {
	path := "/api/v1/releases/" + url.PathEscape(version) + "/files/" + url.PathEscape(f.SHA256)
	req, err := http.NewRequestWithContext(ctx, http.MethodPut, c.base.String()+path, io.NopCloser(from))
	if err != nil {
		return fmt.Errorf("cannot make the request: %w", err)
	}

	c.authorize(req)
	req.ContentLength = f.Size
	req.Header.Set("Content-Type", "application/octet-stream")
	res, err := c.http.Do(req)
	if err != nil {
		return c.transportError(ctx, err)
	}

	defer res.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(res.Body, 1<<20))
	if err != nil {
		return c.transportError(ctx, err)
	}
	if res.StatusCode >= 300 {
		return errorOf(res.StatusCode, answer)
	}

	return nil
}

// RemoveRelease has the server forget a release.
func (c *Client) RemoveRelease(ctx context.Context, version string) error {
	return c.do(ctx, call{method: http.MethodDelete, path: "/api/v1/releases/" + url.PathEscape(version)},
		new(map[string]any))
}

// Rolls lists the newest rolls, newest first.
func (c *Client) Rolls(ctx context.Context, limit int) ([]Roll, error) {
	var out struct {
		Rolls []Roll `json:"rolls"`
	}
	err := c.get(ctx, "/api/v1/rolls", url.Values{"limit": {strconv.Itoa(limit)}}, &out)
	return out.Rolls, err
}

// CreateRoll begins to bring a release to hosts.
func (c *Client) CreateRoll(ctx context.Context, in NewRoll) (r Roll, err error) {
	err = c.write(ctx, http.MethodPost, "/api/v1/rolls", in, &r)
	return r, err
}

// SetRoll makes the open roll of a release "approved" or "stopped".
func (c *Client) SetRoll(ctx context.Context, version, state string) (r Roll, err error) {
	err = c.write(ctx, http.MethodPut, "/api/v1/rolls/"+url.PathEscape(version), map[string]string{"state": state}, &r)
	return r, err
}
