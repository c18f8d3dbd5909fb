package enrol

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"
)

// ReleasePath is the API path of release files for members. Version and file name follow it.
const ReleasePath = "/api/v1/enrol/releases"

// MachineHeader has the digest of the member's machine in requests without a body.
const MachineHeader = "X-Gozzard-Machine"

// fetchTime is the timeout for one file.
const fetchTime = 15 * time.Minute

// Fetch downloads a file from the server. The server must have a certificate of the authority of the enrolment; the
// host shows its own certificate. The caller limits how much it reads, and closes the file.
func (k *Renewer) Fetch(ctx context.Context, path string) (io.ReadCloser, error) {
	bases, err := k.bases()
	if err != nil {
		return nil, err
	}
	return firstOf(bases, notAnswered, func(at *url.URL) (io.ReadCloser, error) { return k.fetchFrom(ctx, at, path) })
}

// fetchFrom downloads a file from one server.
func (k *Renewer) fetchFrom(ctx context.Context, base *url.URL, path string) (io.ReadCloser, error) {
	// Make the request.
	ctx, cancel := context.WithTimeout(ctx, fetchTime)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base.String()+path, http.NoBody)
	if err != nil {
		cancel()
		return nil, err
	}

	req.Header.Set(MachineHeader, k.machine)

	// Send it. A redirect is not followed.
	transport := &http.Transport{
		TLSClientConfig: k.TLS(), DisableKeepAlives: true, DisableCompression: true,
		TLSHandshakeTimeout: callTimeout, ResponseHeaderTimeout: callTimeout,
	}
	web := &http.Client{Transport: transport, CheckRedirect: noRedirect}
	res, err := web.Do(req)
	if err != nil {
		cancel()
		var u *url.Error
		if errors.As(err, &u) {
			err = u.Err
		}
		return nil, fmt.Errorf("cannot fetch from %s: %w", base.Host, err)
	}

	if res.StatusCode == http.StatusOK {
		return &download{res.Body, cancel}, nil
	}

	// Read the error.
	defer cancel()
	defer res.Body.Close()
	b, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil {
		return nil, fmt.Errorf("cannot fetch from %s: %w", base.Host, err)
	}

	return nil, fmt.Errorf("cannot fetch from %s: %w", base.Host, answerError(res.StatusCode, b))
}

// download is the body of an answer. Close releases its timer.
type download struct {
	io.ReadCloser
	cancel context.CancelFunc
}

// Close implements io.Closer.
func (d *download) Close() error {
	defer d.cancel()
	return d.ReadCloser.Close()
}
