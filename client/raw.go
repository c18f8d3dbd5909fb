package client

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"

	"github.com/gozzard/gozzard"
)

// maxRaw is the largest answer of a raw request that is read, in bytes.
const maxRaw = 16 << 20

// Answer is what a server answers to a raw request.
type Answer struct {
	Status int
	Body   []byte
}

// Raw sends a request to any path of a server, also of one that is not Gozzard, and returns the answer as it is. The
// request carries the credentials, unless the header already has others.
func (c *Client) Raw(ctx context.Context, method, path string, header http.Header, body []byte) (Answer, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.base.String()+path, bytes.NewReader(body))
	if err != nil {
		return Answer{}, fmt.Errorf("cannot make the request: %w", err)
	}
	for name, values := range header {
		req.Header[name] = values
	}
	if req.Header.Get(authorization) == "" {
		c.authorize(req)
	}

	res, err := c.http.Do(req)
	if err != nil {
		return Answer{}, c.transportError(ctx, err)
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(res.Body, maxRaw+1))
	switch {
	case err != nil:
		return Answer{}, c.transportError(ctx, err)
	case len(answer) > maxRaw:
		return Answer{}, gozzard.Errorf(gozzard.ErrInternal, "the answer of %s has more than %d MiB", c.base.Host, maxRaw>>20)
	}
	return Answer{Status: res.StatusCode, Body: answer}, nil
}
