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

// ReleasePath is where the server hands releases on to members, by version and file.
const ReleasePath = "/api/v1/enrol/releases"

// MachineHeader carries the digest of a member's machine where a request has no body.
const MachineHeader = "X-Gozzard-Machine"

// fetchTime is how long a member takes for one file at most.
const fetchTime = 15 * time.Minute

// Fetch reads a file of the server as a member: the server proves itself by the authority of the enrolment, the
// host by its certificate. Whoever reads it bounds what he reads, and closes it.
func (k *Renewer) Fetch(ctx context.Context, path string) (io.ReadCloser, error) {
	k.mu.Lock()
	m := *k.m
	k.mu.Unlock()
	base, err := serverURL(m.Server)
	if err != nil {
		return nil, err
	}

	ctx, cancel := context.WithTimeout(ctx, fetchTime)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base.String()+path, http.NoBody)
	if err != nil {
		cancel()
		return nil, err
	}

	req.Header.Set(MachineHeader, k.machine)
	transport := &http.Transport{TLSClientConfig: k.TLS(), DisableKeepAlives: true, DisableCompression: true,
		TLSHandshakeTimeout: callTimeout, ResponseHeaderTimeout: callTimeout}
	web := &http.Client{Transport: transport, CheckRedirect: func(*http.Request,
		[]*http.Request) error {
		return http.ErrUseLastResponse
	}}

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
		return &fetched{res.Body, cancel}, nil
	}

	defer cancel()
	defer res.Body.Close()
	b, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil {
		return nil, fmt.Errorf("cannot fetch from %s: %w", base.Host, err)
	}

	return nil, fmt.Errorf("cannot fetch from %s: %w", base.Host, refusal(res.StatusCode, b))
}

// fetched gives its time back when it is closed.
type fetched struct {
	io.ReadCloser
	cancel context.CancelFunc
}

// Close implements io.Closer.
func (f *fetched) Close() error {
	defer f.cancel()
	return f.ReadCloser.Close()
}
