package client

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
)

// Release is a release that was published on the server.
type Release struct {
	Version   string        `json:"version"`
	Created   Time          `json:"created"`
	Expires   Time          `json:"expires"`
	Published Time          `json:"published"`
	By        string        `json:"by"` // the caller that published it
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

// ReleaseList is every release that was published, newest first.
type ReleaseList struct {
	Releases []Release `json:"releases"`
}

// PublishRequest is the body of POST /api/v1/releases.
type PublishRequest struct {
	Manifest  []byte `json:"manifest"`  // the signed manifest, in base64
	Signature []byte `json:"signature"` // in base64
}

// UploadedFile is the answer to an upload.
type UploadedFile struct {
	SHA256  string `json:"sha256"`
	Version string `json:"version"`
}

// RemovedRelease is the answer to the removal of a release.
type RemovedRelease struct {
	State   string `json:"state"` // removed
	Version string `json:"version"`
}

// Releases lists every release that was published, newest first.
func (c *Client) Releases(ctx context.Context) ([]Release, error) {
	var out ReleaseList
	err := c.get(ctx, "/api/v1/releases", nil, &out)
	return out.Releases, err
}

// Publish gives a release to the server. The caller then uploads the programs that are Missing.
func (c *Client) Publish(ctx context.Context, manifest, signature []byte) (r Release, err error) {
	err = c.write(ctx, http.MethodPost, "/api/v1/releases", PublishRequest{manifest, signature}, &r)
	return r, err
}

// UploadRelease uploads a program of a published release.
func (c *Client) UploadRelease(ctx context.Context, version string, f ReleaseFile, from io.Reader) error {
	path := "/api/v1/releases/" + url.PathEscape(version) + "/files/" + url.PathEscape(f.SHA256)
	req, err := http.NewRequestWithContext(ctx, http.MethodPut, c.base.String()+path, io.NopCloser(from))
	if err != nil {
		return fmt.Errorf("cannot make the request: %w", err)
	}

	req.ContentLength = f.Size
	req.Header.Set("Content-Type", "application/octet-stream")
	_, err = c.exchange(ctx, req, 1<<20)
	return err
}

// RemoveRelease removes a release from the server.
func (c *Client) RemoveRelease(ctx context.Context, version string) error {
	return c.write(ctx, http.MethodDelete, "/api/v1/releases/"+url.PathEscape(version), nil, nil)
}
